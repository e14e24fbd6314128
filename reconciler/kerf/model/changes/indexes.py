"""Pods, instances and specs of NodePools as a Snapshot holds them: by key, and by the facts that decisions need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, ValuesView
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from kerf.model.aws.cloud import Instance
from kerf.model.changes.journal import Journal
from kerf.model.kubernetes import objects
from kerf_api import labels
from kerf_api.v1.nodepool import NodePool, NodePoolSpec


class PodIndex(Mapping[str, objects.Pod]):
    """All pods by `namespace/name`, with the views that decisions need; kept up by the cluster's indexes.

    `nominated` are the pods that are not bound and have a `status.nominatedNodeName`, by the name of that node.
    """

    __slots__ = ("by_key", "by_node", "nominated", "pending")

    def __init__(
        self,
        by_key: Mapping[str, objects.Pod],
        by_node: Mapping[str, Mapping[str, objects.Pod]],
        pending: Mapping[str, objects.Pod],
        nominated: Mapping[str, Mapping[str, objects.Pod]] = MappingProxyType({}),
    ) -> None:
        self.by_key, self.by_node, self.pending, self.nominated = by_key, by_node, pending, nominated

    def __getitem__(self, key: str) -> objects.Pod:
        return self.by_key[key]

    def __contains__(self, key: object) -> bool:
        return key in self.by_key

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_key)

    def __len__(self) -> int:
        return len(self.by_key)

    def values(self) -> ValuesView[objects.Pod]:
        """Those of the mapping itself: the inherited ones look up each key by itself."""
        return self.by_key.values()

    def on(self, node_name: str) -> Iterable[objects.Pod]:
        """Pods bound to a node, in no particular order; sort before a decision depends on it."""
        return self.by_node.get(node_name, {}).values()

    def expected_on(self, node_name: str) -> Iterable[objects.Pod]:
        """Pods for which the kube-scheduler keeps room on a node, in no particular order."""
        return self.nominated.get(node_name, {}).values()


def bound_to(index: PodIndex, homes: Mapping[str, str]) -> PodIndex:
    """The index as it is when the pods with these keys run on these nodes; `homes` maps keys to names of nodes."""
    moved = {
        key: replace(index[key], spec=replace(index[key].spec, node_name=name))
        for key, name in homes.items()
        if key in index
    }
    on_nodes = {name: dict(found) for name, found in index.by_node.items()}
    nominated = {name: dict(found) for name, found in index.nominated.items()}
    for key, pod in moved.items():
        on_nodes.get(index[key].spec.node_name, {}).pop(key, None)
        nominated.get(index[key].status.nominated_node_name, {}).pop(key, None)
        on_nodes.setdefault(pod.spec.node_name, {})[key] = pod
    pending = {key: pod for key, pod in index.pending.items() if key not in moved}
    return PodIndex({**index.by_key, **moved}, on_nodes, pending, nominated)


class InstanceIndex(Mapping[str, Instance]):
    """Instances by ID, in order of ID, and by the launch group of their tags."""

    __slots__ = ("_claim_names", "by_group", "by_id")

    def __init__(self, by_id: Mapping[str, Instance], by_group: Mapping[str, tuple[Instance, ...]]) -> None:
        self.by_id, self.by_group = by_id, by_group
        self._claim_names: frozenset[str] | None = None

    @classmethod
    def of(cls, instances: Mapping[str, Instance]) -> InstanceIndex:
        by_id = {id_: instances[id_] for id_ in sorted(instances)}
        groups: dict[str, list[Instance]] = {}
        for instance in by_id.values():
            groups.setdefault(instance.tags.get(labels.LAUNCH_GROUP, ""), []).append(instance)
        return cls(by_id, {group: tuple(members) for group, members in groups.items() if group})

    @property
    def claim_names(self) -> frozenset[str]:
        """The names of NodeClaims that tags of live instances bear, whether such a NodeClaim is there or not."""
        if self._claim_names is None:
            tagged = (one.tags.get(labels.TAG_NODECLAIM, "") for one in self.by_id.values() if one.live)
            self._claim_names = frozenset(filter(None, tagged))
        return self._claim_names

    def __getitem__(self, id_: str) -> Instance:
        return self.by_id[id_]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_id)

    def __len__(self) -> int:
        return len(self.by_id)


class SpecIndex:
    """The specs of NodePools by name. The journal names only those that differ from the ones before."""

    NAME: Final = "pool_specs"

    def __init__(self, journal: Journal) -> None:
        self._journal, self._specs = journal, dict[str, NodePoolSpec]()

    @property
    def view(self) -> Mapping[str, NodePoolSpec]:
        """Live, read-only."""
        return MappingProxyType(self._specs)

    def shared(self, pool: NodePool) -> NodePool:
        """The NodePool with the spec that is known already, if it has an equal one."""
        known = self._specs.get(pool.name)
        return replace(pool, spec=known) if known is not None and known == pool.spec else pool

    def replace(self, old: NodePool | None, new: NodePool | None) -> None:
        """One came (no `old`), changed, or went (no `new`); each as `shared` gives it."""
        if old is not None and new is not None and old.spec is new.spec:
            return
        if old is not None:
            self._specs.pop(old.name, None)
            self._journal.touch(self.NAME, old.name)
        if new is not None:
            self._specs[new.name] = new.spec
            self._journal.touch(self.NAME, new.name)
