"""The cluster's indexes: they follow events one object at a time and hand out Snapshots without copying.

The only mutable thing in the pure rooms; a caller owns it and one thread uses it. An object replaces its older self
only if it is newer (resource versions compare as integers), so that what act wrote is not undone by a watch that lags;
a deleted object's UID stays known for a while for the same reason. Law: any sequence of events leaves the same state
as a rebuild from the survivors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from kerf.model import kinds
from kerf.model.aws.instance_type import Catalogue
from kerf.model.changes import pool_status
from kerf.model.changes.following import Following
from kerf.model.changes.grouping import Grouping
from kerf.model.changes.indexes import InstanceIndex, PodIndex, SpecIndex
from kerf.model.changes.journal import Journal
from kerf.model.changes.pdbs import PdbIndex
from kerf.model.kinds import Kind, Ref
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.overlays import NOTHING, Overlaid, Overlays
from kerf.model.settings import Settings
from kerf.model.snapshot import BY_FOLLOWING, Snapshot, StateNode
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim

#: How many UIDs of deleted objects are remembered, per kind.
_TOMBSTONES = 20000
_NO_INSTANCES = InstanceIndex({}, {})
#: Where the Snapshot has the objects of a kind.
FIELDS: Mapping[str, str] = {
    "NodePool": "node_pools",
    "EC2NodeClass": "node_classes",
    "NodeOverlay": "node_overlays",
    "NodeClaim": "node_claims",
    "Node": "nodes",
    "Pod": "pods",
    "PodDisruptionBudget": "pdbs",
    "DaemonSet": "daemon_sets",
    "PersistentVolumeClaim": "volume_claims",
    "PersistentVolume": "volumes",
    "StorageClass": "storage_classes",
    "CSINode": "csi_nodes",
    "VolumeAttachment": "volume_attachments",
    "Namespace": "namespaces",
    "Service": "services",
    "ReplicationController": "replication_controllers",
    "CapacityBuffer": "capacity_buffers",
    "PodTemplate": "pod_templates",
    "Deployment": "deployments",
    "ReplicaSet": "replica_sets",
    "StatefulSet": "stateful_sets",
    "DeviceClass": "device_classes",
    "ResourceSlice": "resource_slices",
    "ResourceClaim": "resource_claims",
}
#: By kind, the Snapshot's indexes by something that the objects have.
_GROUPINGS: Mapping[str, tuple[tuple[str, Callable[[Any], str]], ...]] = {
    "Node": (("nodes_by_provider", lambda node: node.spec.provider_id),),
    "NodeClaim": (
        ("claims_by_provider", lambda claim: claim.status.provider_id),
        ("claims_by_instance", lambda claim: claim.assigned_instance),
        ("claims_by_group", lambda claim: claim.metadata.annotations.get(labels.LAUNCH_GROUP, "")),
        ("claims_by_pool", lambda claim: claim.pool_name),
        ("claims_by_class", lambda claim: claim.spec.node_class_ref.name),
    ),
    "VolumeAttachment": (("attachments_by_node", lambda attachment: attachment.spec.node_name),),
    "ResourceSlice": (("slices_by_node", lambda found: found.spec.node_name),),
}

#: NodeClaims of other controllers by provider ID.
_FOREIGN = "foreign_by_provider"
_SHARED = frozenset(kind.name for kind in kinds.SHARED)
#: The fields of a Snapshot that the journal follows: the tables of objects and the indexes of these.
_FOLLOWED = {*FIELDS.values(), _FOREIGN, SpecIndex.NAME, "state_nodes", "pdb_budgets", "pdb_selectors"}
_FOLLOWED |= {name for rows in _GROUPINGS.values() for name, _ in rows}
if _DIFFERENT := _FOLLOWED ^ {*BY_FOLLOWING[Following.FOLLOWED]}:
    raise TypeError(f"declared as followed and not followed, or the reverse: {sorted(_DIFFERENT)}")
#: The fields of a Snapshot that do not come from here: who makes one gives them.
FACTS = tuple(f.name for f in fields(Snapshot) if f.name not in {*_FOLLOWED, "overlaid", "overlay_faults", "journal"})


class Cluster:
    """Indexes over watched objects. `apply`, `remove` and `snapshot` cost O(1); the first snapshot after a change that
    concerns NodeOverlays works out their effect."""

    def __init__(self) -> None:
        #: All that are known, and those that the Snapshot shows: without the objects of other controllers.
        self._objects: dict[str, dict[str, Any]] = {kind.name: {} for kind in kinds.KNOWN}
        self._shown = {**self._objects, **{kind.name: dict[str, Any]() for kind in kinds.SHARED}}
        self._gone: dict[str, dict[str, None]] = {kind.name: {} for kind in kinds.KNOWN}
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._nominated: dict[str, dict[str, Pod]] = {}
        self._pending: dict[str, Pod] = {}
        self._state_nodes: dict[str, StateNode] = {}
        self._journal = Journal()
        self._groupings = {kind: [Grouping(*row, self._journal) for row in rows] for kind, rows in _GROUPINGS.items()}
        by_name = {grouping.name: grouping for rows in self._groupings.values() for grouping in rows}
        self._foreign = Grouping(_FOREIGN, lambda claim: claim.status.provider_id, self._journal)
        self._pdbs, self._specs = PdbIndex(self._journal), SpecIndex(self._journal)
        self._overlays = Overlays()
        self._claims_of, self._nodes_of = by_name["claims_by_provider"].view, by_name["nodes_by_provider"].view
        #: Claims by the instance that they have, or are to have; live, read-only.
        self.claims_by_instance: Final = by_name["claims_by_instance"].view
        #: The receivers of each object of a kind, as it was and as it is.
        self._followers: dict[str, tuple[Callable[[Any, Any], None], ...]] = {
            kinds.NODE_CLAIM.name: (self._index_claim,),
            kinds.NODE.name: (self._index_node,),
            kinds.PDB.name: (self._pdbs.replace,),
            kinds.NODE_POOL.name: (self._specs.replace, self._overlays.follow),
            kinds.NODE_OVERLAY.name: (self._overlays.follow,),
        }
        #: The resource version of each kind's latest complete list.
        self._listed_at: dict[str, int] = {}

    # --- events -------------------------------------------------------------------------------------------------
    def apply(self, kind: Kind, value: Any) -> bool:
        """Take in an object that was added or changed. False when a newer one (or its deletion) is known."""
        key, table = _key(kind, value), self._objects[kind.name]
        value = self._specs.shared(value) if kind is kinds.NODE_POOL else value
        old = table.get(key)
        if self._stale(kind, old, value):
            return False
        if old is not None and old.metadata.uid != value.metadata.uid:
            self._bury(kind, old.metadata.uid)
        table[key] = value
        self._index(kind, key, old, value)
        return True

    def _stale(self, kind: Kind, old: Any | None, value: Any) -> bool:
        """Whether this event is outdated: of an object that is dead, changed since, or absent from a later list."""
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

    def replace_all(
        self, kind: Kind, values: Iterable[Any], resource_version: str = ""
    ) -> list[tuple[Any | None, Any | None]]:
        """Take in a complete list as of a resource version; the changes, as pairs of before and after.

        What is not in the list is removed, but for an object that is newer than the list (our own write, made while it
        was read). What has not changed costs next to nothing.
        """
        uids: dict[str, str] = {}
        changes: list[tuple[Any | None, Any | None]] = []
        table = self._objects[kind.name]
        for value in values:
            key = _key(kind, value)
            uids[key] = value.metadata.uid
            old = table.get(key)
            if not _same(old, value) and self.apply(kind, value):
                changes.append((old, value))
        listed_at = int(resource_version) if resource_version.isdigit() else None
        lost = [
            value
            for key, value in table.items()
            if uids.get(key) != value.metadata.uid and (listed_at is None or _version(value) <= listed_at)
        ]
        for value in lost:
            self.remove(kind, value.metadata.namespace, value.metadata.name, value.metadata.uid)
        if listed_at is not None:
            self._listed_at[kind.name] = listed_at
        return [*changes, *((value, None) for value in lost)]

    def get(self, ref: Ref) -> Any | None:
        """An object by its address, those of other controllers included."""
        key = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
        return self._objects[ref.kind].get(key)

    def objects(self, kind: Kind) -> Mapping[str, Any]:
        """A kind's objects by key, without those of other controllers: a live view, read-only."""
        return MappingProxyType(self._shown[kind.name])

    def claims_of(self, node_name: str) -> tuple[NodeClaim, ...]:
        """The claims behind a Node; none when it is not there."""
        node: Node | None = self._objects[kinds.NODE.name].get(node_name)
        return tuple(self._claims_of.get(node.spec.provider_id, ())) if node is not None else ()

    def expected_on(self, node_name: str) -> Mapping[str, Pod]:
        """Pods that are not bound and are expected on a Node, by key; it need not exist."""
        return self._nominated.get(node_name, {})

    def pending(self, pod: Pod) -> bool:
        """Whether a pod waits for a place."""
        return pods.provisionable(pod, self._objects[kinds.NODE.name])

    @property
    def pending_count(self) -> int:
        """How many pods wait for a place."""
        return len(self._pending)

    def count(self, kind: Kind) -> int:
        """How many objects of a kind there are, without those of other controllers."""
        return len(self._shown[kind.name])

    # --- indexes ------------------------------------------------------------------------------------------------
    def _bury(self, kind: Kind, uid: str) -> None:
        if not uid:
            return
        graves = self._gone[kind.name]
        graves[uid] = None
        if len(graves) > _TOMBSTONES:
            del graves[next(iter(graves))]

    def _index(self, kind: Kind, key: str, old: Any | None, new: Any | None) -> None:
        if kind.name in _SHARED:
            if kind is kinds.NODE_CLAIM:
                self._foreign.replace(kinds.foreign(old), kinds.foreign(new))
            old, new = kinds.own(old), kinds.own(new)
            if old is None and new is None:
                return
            _put(self._shown[kind.name], key, new)
        table = FIELDS[kind.name] if kind is not kinds.NODE_POOL else pool_status.table_of(old, new, FIELDS[kind.name])
        if table is not None:
            self._journal.touch(table, key)
        for grouping in self._groupings.get(kind.name, ()):
            grouping.replace(old, new)
        if kind is kinds.POD:
            self._index_pod(key, old, new)
        for follow in self._followers.get(kind.name, ()):
            follow(old, new)

    def _index_pod(self, key: str, old: Pod | None, new: Pod | None) -> None:
        if old is not None:
            if new is None or new.spec.node_name != old.spec.node_name:
                self._journal.touch("pods_on", old.spec.node_name)
            _unfile(self._by_node, old.spec.node_name, key)
            self._expect_no_more(old, key)
        if self._pending.pop(key, None) is not None:
            self._journal.touch("pending", key)
        if new is None:
            return
        self._journal.touch("pods_on", new.spec.node_name)
        if name := pods.expected_on(new):
            self._journal.touch("expected_on", name)
            self._nominated.setdefault(name, {})[key] = new
        if new.spec.node_name:
            self._by_node.setdefault(new.spec.node_name, {})[key] = new
        elif self.pending(new):
            self._pending[key] = new
            self._journal.touch("pending", key)

    def _expect_no_more(self, pod: Pod, key: str) -> None:
        if name := pods.expected_on(pod):
            self._journal.touch("expected_on", name)
            _unfile(self._nominated, name, key)

    def _index_expected(self, node_name: str) -> None:
        """A Node came or went: pods that are expected on it are pending as long as it does not exist."""
        for key, pod in self.expected_on(node_name).items():
            if self.pending(pod):
                self._pending[key] = pod
            else:
                self._pending.pop(key, None)
            self._journal.touch("pending", key)

    def _index_claim(self, old: NodeClaim | None, new: NodeClaim | None) -> None:
        if old is not None:
            self._stand(old.name, None)
        if new is not None:
            self._stand(new.name, StateNode(new, None))
        for provider in dict.fromkeys(value.status.provider_id for value in (old, new) if value is not None):
            self._pair(provider)

    def _index_node(self, old: Node | None, new: Node | None) -> None:
        if old is not None:
            self._stand(_bare(old.name), None)
        if new is not None:
            self._stand(_bare(new.name), StateNode(None, new))
        if old is None or new is None:
            self._index_expected((new or old).name)  # type: ignore[union-attr]
        for provider in dict.fromkeys(value.spec.provider_id for value in (old, new) if value is not None):
            self._pair(provider)

    def _pair(self, provider: str) -> None:
        """Claims of a provider ID take its node (the first by name, should there be several); others stand alone."""
        if not provider:
            return
        claims, nodes = self._claims_of.get(provider, ()), self._nodes_of.get(provider, ())
        first = nodes[0] if nodes and claims else None
        for claim in claims:
            self._stand(claim.name, StateNode(claim, first))
        for node in nodes:
            self._stand(_bare(node.name), None if node is first else StateNode(None, node))

    def _stand(self, key: str, state: StateNode | None) -> None:
        """The state node of this key, or (None) none."""
        if state is not None:
            self._state_nodes[key] = state
        else:
            self._state_nodes.pop(key, None)
        self._journal.touch("state_nodes", key)

    # --- views --------------------------------------------------------------------------------------------------
    def snapshot(self, *, now: datetime, settings: Settings, **facts: Any) -> Snapshot:
        """The state as of now. `facts` are the Snapshot's other fields (catalogues, instances, …)."""
        tables: dict[str, Any] = {FIELDS[name]: MappingProxyType(table) for name, table in self._shown.items()}
        tables |= {grouping.name: grouping.view for rows in self._groupings.values() for grouping in rows}
        tables[_FOREIGN] = self._foreign.view
        pods_by_key = tables.pop("pods")
        if not isinstance(facts.get("instances", _NO_INSTANCES), InstanceIndex):
            facts["instances"] = InstanceIndex.of(facts["instances"])
        overlaid = self._overlaid(facts.get("catalogues", {})) if settings.gates.node_overlay else NOTHING
        return Snapshot(
            now=now,
            settings=settings,
            overlaid=overlaid.catalogues,
            overlay_faults=overlaid.faults,
            state_nodes=MappingProxyType(self._state_nodes),
            pool_specs=self._specs.view,
            pdb_budgets=self._pdbs.budgets,
            pdb_selectors=self._pdbs.selectors,
            pods=PodIndex(
                pods_by_key,
                MappingProxyType(self._by_node),
                MappingProxyType(self._pending),
                MappingProxyType(self._nominated),
            ),
            journal=self._journal,
            **tables,
            **facts,
        )

    def _overlaid(self, catalogues: Mapping[str, Catalogue]) -> Overlaid:
        """Worked out when overlays, pools or catalogues have changed; else it is the same object as before."""
        overlays, pools = self._shown[kinds.NODE_OVERLAY.name], self._shown[kinds.NODE_POOL.name]
        return self._overlays.over(overlays, pools, catalogues)


def build(objects: Iterable[Any], *, now: datetime, settings: Settings, **facts: Any) -> Snapshot:
    """A snapshot of these objects, for tests, files and the command line."""
    cluster = Cluster()
    for value in objects:
        cluster.apply(kinds.BY_NAME[kinds.ref(value).kind], value)
    return cluster.snapshot(now=now, settings=settings, **facts)


def _unfile(table: dict[str, dict[str, Pod]], name: str, key: str) -> None:
    """Take a pod out of those of a node; no node is kept without pods."""
    there = table.get(name, {})
    there.pop(key, None)
    if not there:
        table.pop(name, None)


def _put(table: dict[str, Any], key: str, value: Any | None) -> None:
    """The entry of a key; None removes it."""
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def _key(kind: Kind, value: Any) -> str:
    meta = value.metadata
    return meta.name if kind.cluster_scoped else f"{meta.namespace}/{meta.name}"


def _bare(node_name: str) -> str:
    """The state-node key of a Node without a claim; a claim may have the same name as some other Node."""
    return f"node/{node_name}"


def _same(old: Any | None, value: Any) -> bool:
    """Whether the object is known in this very version."""
    known = old.metadata if old is not None else None
    return known is not None and known.uid == value.metadata.uid and 0 < _version(old) == _version(value)


def _version(value: Any) -> int:
    text = value.metadata.resource_version
    return int(text) if text.isdigit() else 0
