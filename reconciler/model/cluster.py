"""The cluster's indexes: they follow events one object at a time and hand out Snapshots without copying.

The only mutable thing in the pure rooms; a caller owns it and one thread uses it. An object replaces its older self
only if it is newer (resource versions compare as integers), so that what act wrote is not undone by a watch that lags;
a deleted object's UID stays known for a while for the same reason. Law: any sequence of events leaves the same state
as a rebuild from the survivors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from api.v1.nodeclaim import NodeClaim
from reconciler.model import kinds, pods
from reconciler.model.kinds import Kind, Ref
from reconciler.model.objects import Node, Pod
from reconciler.model.settings import Settings
from reconciler.model.snapshot import PodIndex, Snapshot, StateNode

#: How many UIDs of deleted objects are remembered, per kind.
_TOMBSTONES = 20000


class Cluster:
    """Indexes over watched objects. `apply` and `remove` cost O(1); `snapshot` costs O(1)."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, Any]] = {kind.name: {} for kind in kinds.WATCHED}
        self._gone: dict[str, dict[str, None]] = {kind.name: {} for kind in kinds.WATCHED}
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._pending: dict[str, Pod] = {}
        self._state_nodes: dict[str, StateNode] = {}
        #: Names of claims and of nodes by provider ID; sets that keep no order.
        self._claims_of: dict[str, dict[str, None]] = {}
        self._nodes_of: dict[str, dict[str, None]] = {}
        #: The resource version of each kind's latest complete list.
        self._listed_at: dict[str, int] = {}

    # --- events -------------------------------------------------------------------------------------------------
    def apply(self, kind: Kind, value: Any) -> bool:
        """Take in an object that was added or changed. False when a newer one (or its deletion) is known."""
        key, table = _key(kind, value), self._objects[kind.name]
        old = table.get(key)
        if self._stale(kind, old, value):
            return False
        if old is not None and old.metadata.uid != value.metadata.uid:
            self._bury(kind, old.metadata.uid)
        table[key] = value
        self._index(kind, key, old, value)
        return True

    def _stale(self, kind: Kind, old: Any | None, value: Any) -> bool:
        """Whether this is old news: of a dead object, of one that changed since, or of one that a later list lacks."""
        if value.metadata.uid in self._gone[kind.name]:
            return True
        if old is None:
            return 0 < _version(value) <= self._listed_at.get(kind.name, 0)
        return _version(value) < _version(old)

    def remove(self, kind: Kind, namespace: str, name: str, uid: str = "") -> Any | None:
        """Forget an object; its last known value, or None. A UID that is not the known one changes nothing."""
        key = f"{namespace}/{name}" if namespace and not kind.cluster_scoped else name
        old = self._objects[kind.name].get(key)
        if uid:
            self._bury(kind, uid)
        if old is None or (uid and old.metadata.uid != uid):
            return None
        del self._objects[kind.name][key]
        self._bury(kind, old.metadata.uid)
        self._index(kind, key, old, None)
        return old

    def replace_all(self, kind: Kind, values: Iterable[Any], resource_version: str = "") -> list[Any]:
        """Take in a complete list as of a resource version: what is not in it is removed, and returned.

        An object that is newer than the list (our own write, made while it was read) stays.
        """
        uids: dict[str, str] = {}
        for value in values:
            self.apply(kind, value)
            uids[_key(kind, value)] = value.metadata.uid
        listed_at = int(resource_version) if resource_version.isdigit() else None
        lost = [
            value
            for key, value in self._objects[kind.name].items()
            if uids.get(key) != value.metadata.uid and (listed_at is None or _version(value) <= listed_at)
        ]
        for value in lost:
            self.remove(kind, value.metadata.namespace, value.metadata.name, value.metadata.uid)
        if listed_at is not None:
            self._listed_at[kind.name] = listed_at
        return lost

    def get(self, ref: Ref) -> Any | None:
        key = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
        return self._objects[ref.kind].get(key)

    def objects(self, kind: Kind) -> Mapping[str, Any]:
        """A kind's objects by key: a live view, read-only."""
        return MappingProxyType(self._objects[kind.name])

    def count(self, kind: Kind) -> int:
        return len(self._objects[kind.name])

    # --- indexes ------------------------------------------------------------------------------------------------
    def _bury(self, kind: Kind, uid: str) -> None:
        if not uid:
            return
        graves = self._gone[kind.name]
        graves[uid] = None
        if len(graves) > _TOMBSTONES:
            del graves[next(iter(graves))]

    def _index(self, kind: Kind, key: str, old: Any | None, new: Any | None) -> None:
        if kind is kinds.POD:
            self._index_pod(key, old, new)
        elif kind is kinds.NODE_CLAIM:
            self._index_claim(old, new)
        elif kind is kinds.NODE:
            self._index_node(old, new)

    def _index_pod(self, key: str, old: Pod | None, new: Pod | None) -> None:
        if old is not None and old.spec.node_name:
            on_node = self._by_node.get(old.spec.node_name, {})
            on_node.pop(key, None)
            if not on_node:
                self._by_node.pop(old.spec.node_name, None)
        self._pending.pop(key, None)
        if new is None:
            return
        if new.spec.node_name:
            self._by_node.setdefault(new.spec.node_name, {})[key] = new
        elif pods.provisionable(new):
            self._pending[key] = new

    def _index_claim(self, old: NodeClaim | None, new: NodeClaim | None) -> None:
        if old is not None:
            del self._state_nodes[old.name]
            _leave(self._claims_of, old.status.provider_id, old.name)
        if new is not None:
            self._state_nodes[new.name] = StateNode(new, None)
            _join(self._claims_of, new.status.provider_id, new.name)
        for provider in dict.fromkeys(value.status.provider_id for value in (old, new) if value is not None):
            self._pair(provider)

    def _index_node(self, old: Node | None, new: Node | None) -> None:
        if old is not None:
            self._state_nodes.pop(_bare(old.name), None)
            _leave(self._nodes_of, old.spec.provider_id, old.name)
        if new is not None:
            self._state_nodes[_bare(new.name)] = StateNode(None, new)
            _join(self._nodes_of, new.spec.provider_id, new.name)
        for provider in dict.fromkeys(value.spec.provider_id for value in (old, new) if value is not None):
            self._pair(provider)

    def _pair(self, provider: str) -> None:
        """Claims of a provider ID take its node (the first by name, should there be several); others stand alone."""
        if not provider:
            return
        claims, names = self._claims_of.get(provider, {}), sorted(self._nodes_of.get(provider, {}))
        first = names[0] if names and claims else ""
        for name in claims:
            self._state_nodes[name] = StateNode(self._objects["NodeClaim"][name], self._objects["Node"].get(first))
        for name in names:
            if name == first:
                self._state_nodes.pop(_bare(name), None)
            else:
                self._state_nodes[_bare(name)] = StateNode(None, self._objects["Node"][name])

    # --- views --------------------------------------------------------------------------------------------------
    def snapshot(self, *, now: datetime, settings: Settings, **facts: Any) -> Snapshot:
        """The state as of now. `facts` are the Snapshot's other fields (catalogues, instances, …)."""
        view = {name: MappingProxyType(table) for name, table in self._objects.items()}
        return Snapshot(
            now=now,
            settings=settings,
            node_pools=view["NodePool"],
            node_classes=view["EC2NodeClass"],
            node_claims=view["NodeClaim"],
            nodes=view["Node"],
            state_nodes=MappingProxyType(self._state_nodes),
            pods=PodIndex(view["Pod"], MappingProxyType(self._by_node), MappingProxyType(self._pending)),
            pdbs=view["PodDisruptionBudget"],
            daemon_sets=view["DaemonSet"],
            volume_claims=view["PersistentVolumeClaim"],
            volumes=view["PersistentVolume"],
            storage_classes=view["StorageClass"],
            volume_attachments=view["VolumeAttachment"],
            namespaces=view["Namespace"],
            **facts,
        )


def build(objects: Iterable[Any], *, now: datetime, settings: Settings, **facts: Any) -> Snapshot:
    """A snapshot of these objects, for tests, files and the command line."""
    cluster = Cluster()
    for value in objects:
        cluster.apply(kinds.BY_NAME[kinds.ref(value).kind], value)
    return cluster.snapshot(now=now, settings=settings, **facts)


def _key(kind: Kind, value: Any) -> str:
    meta = value.metadata
    return meta.name if kind.cluster_scoped else f"{meta.namespace}/{meta.name}"


def _bare(node_name: str) -> str:
    """The state-node key of a Node without a claim; a claim may have the same name as some other Node."""
    return f"node/{node_name}"


def _join(names: dict[str, dict[str, None]], provider: str, name: str) -> None:
    if provider:
        names.setdefault(provider, {})[name] = None


def _leave(names: dict[str, dict[str, None]], provider: str, name: str) -> None:
    members = names.get(provider, {})
    members.pop(name, None)
    if not members:
        names.pop(provider, None)


def _version(value: Any) -> int:
    text = value.metadata.resource_version
    return int(text) if text.isdigit() else 0
