"""The Snapshot: everything that a decision may depend on, frozen, `now` included.

Its maps are read-only views of the cluster's indexes; they hold still while a decision is made. A snapshot for a
worker process, a file or a test is a copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from kerf.model.aws.accounts import NO_ACCOUNTS, Accounts
from kerf.model.aws.cloud import ClassFacts, ClusterFacts, DryRun, FleetError, Impairment, Instance, PlacementGroup
from kerf.model.aws.instance_type import Catalogue, Offering, OfferingKey
from kerf.model.aws.interruptions import Interruption
from kerf.model.aws.inventory import Inventory
from kerf.model.aws.launch_marks import LaunchMark
from kerf.model.changes.following import COMPARED, FOLLOWED, GROUND, NOT_FOR_STEPS, WHOLE, by_following
from kerf.model.changes.indexes import InstanceIndex, PodIndex
from kerf.model.changes.journal import Journal
from kerf.model.changes.pdbs import Budget, Selectors
from kerf.model.failures import Failure
from kerf.model.instants import ALWAYS
from kerf.model.kept import Field
from kerf.model.kubernetes import devices, objects, storage, workloads
from kerf.model.overlays import PoolKey
from kerf.model.plan import Action, Nomination, Reason, Source
from kerf.model.settings import Settings
from kerf_api import labels
from kerf_api.foreign import own_pool
from kerf_api.resources import Resources
from kerf_api.v1.capacitybuffer import CapacityBuffer
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import Taint
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodeoverlay import NodeOverlay
from kerf_api.v1.nodepool import NodePool, NodePoolSpec


@dataclass(frozen=True, slots=True)
class StateNode:
    """A node as the scheduler and the disruption rules see it: a NodeClaim, a Node, or both (paired by provider ID)."""

    claim: NodeClaim | None
    node: objects.Node | None

    @property
    def name(self) -> str:
        """The Node's name; before there is one, the claim's."""
        return self.node.name if self.node is not None else self.claim.name if self.claim is not None else ""

    @property
    def provider_id(self) -> str:
        if self.claim is not None and self.claim.status.provider_id:
            return self.claim.status.provider_id
        return self.node.spec.provider_id if self.node is not None else ""

    @property
    def pool_name(self) -> str:
        """Its NodePool; empty for a Node of another controller's NodePool."""
        return own_pool(self.labels)

    @property
    def registered(self) -> bool:
        return self.node is not None and (self.claim is None or self.node.registered)

    @property
    def initialized(self) -> bool:
        return self.node is not None and (self.claim is None or self.node.initialized)

    @property
    def labels(self) -> Mapping[str, str]:
        """The Node's once it is registered, the claim's before."""
        if self.node is not None and (self.registered or self.claim is None):
            return self.node.metadata.labels
        return self.claim.metadata.labels if self.claim is not None else {}

    @property
    def annotations(self) -> Mapping[str, str]:
        if self.node is not None and (self.registered or self.claim is None):
            return self.node.metadata.annotations
        return self.claim.metadata.annotations if self.claim is not None else {}

    @property
    def taints(self) -> tuple[Taint, ...]:
        """Those that a pod must tolerate to be planned here: start-up and ephemeral ones vanish until initialised."""
        if self.claim is None or self.initialized:
            return self.node.spec.taints if self.node is not None else ()
        taints = self.claim.spec.taints if not self.registered or self.node is None else self.node.spec.taints
        startup = self.claim.spec.startup_taints
        return tuple(
            t
            for t in taints
            if not labels.is_ephemeral_taint(t.key, t.effect) and not any(t.matches(s) for s in startup)
        )

    @property
    def capacity(self) -> Resources:
        return self._resources("capacity")

    @property
    def allocatable(self) -> Resources:
        return self._resources("allocatable")

    def _resources(self, which: str) -> Resources:
        """The Node's figures; until it is initialised the claim's fill what is missing or zero."""
        own = Resources.parse(getattr(self.node.status, which)) if self.node is not None else Resources()
        if self.claim is None or self.initialized:
            return own
        promised = Resources.parse(getattr(self.claim.status, which))
        return Resources({**promised, **{name: value for name, value in own.items() if value}})

    @property
    def deleting(self) -> bool:
        """Going away: the claim (or a Node without one) is being deleted."""
        if self.claim is not None:
            return self.claim.metadata.deleting or self.claim.is_true("InstanceTerminating")
        return self.node is not None and self.node.metadata.deleting


@dataclass(frozen=True, slots=True)
class Batch:
    """Arrival times of the first and the latest pending pod that no plan has served yet.

    `maiden`: no plan at all has served any since this process began; it is unknown where the pending pods may be
    placed. `again`: none has come; those that were served still wait. `lone`: it is a single one, and none came for a
    while before it. `tried_at`, `try_at`: when nodes were looked for that can be ordered before it closes, and when
    that is due again. `ahead_at`: when its pods were solved for ahead of its close. `opened_at`: the first node was
    initialized since the latest plan; `recheck_at`: it is due to look for pods that lost their capacity there.
    `asks_at`: there is no other cause for a plan before then.
    """

    first: datetime
    last: datetime
    maiden: bool = False
    again: bool = False
    lone: bool = False
    tried_at: datetime | None = None
    try_at: datetime | None = None
    ahead_at: datetime | None = None
    opened_at: datetime | None = None
    recheck_at: datetime | None = None
    asks_at: datetime | None = None

    def closes(self, settings: Settings) -> datetime:
        """When its pods get their plan: none has come for a while, and at the latest some time after the first."""
        if self.asks_at is not None:
            return self.asks_at
        idle = min(settings.batch_lone, settings.batch_idle) if self.lone else settings.batch_idle
        return min(self.last + idle, self.first + settings.batch_max)


@dataclass(frozen=True, slots=True)
class LaunchFailure:
    """What a fleet call left undone: its errors, when, how often this group has been tried, and how many instances are
    `missing`.

    `pool` is the NodePool. `since` is the first of the launches that failed one after another for a common error; None
    when it is not known. `at_least`: earlier ones may have failed, too.
    """

    errors: tuple[FleetError, ...]
    at: datetime
    attempts: int = 1
    missing: int = 1
    pool: str = ""
    since: datetime | None = None
    at_least: bool = False

    @property
    def began(self) -> datetime:
        """The first known launch that failed like this one."""
        return self.since or self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """See the module. `pods.pending` holds provisionable pods only. Maps are by name unless said otherwise.

    Each field declares how the memory follows it (`following.py`).
    """

    now: datetime = field(metadata=WHOLE)
    settings: Settings = field(metadata=GROUND)
    node_pools: Mapping[str, NodePool] = field(default_factory=dict, metadata=FOLLOWED)
    #: The specs of NodePools by name. A write of a NodePool's status does not change them.
    pool_specs: Mapping[str, NodePoolSpec] = field(default_factory=dict, metadata=FOLLOWED)
    node_classes: Mapping[str, EC2NodeClass] = field(default_factory=dict, metadata=FOLLOWED)
    node_overlays: Mapping[str, NodeOverlay] = field(default_factory=dict, metadata=FOLLOWED)
    node_claims: Mapping[str, NodeClaim] = field(default_factory=dict, metadata=FOLLOWED)
    nodes: Mapping[str, objects.Node] = field(default_factory=dict, metadata=FOLLOWED)
    #: Claims and nodes paired; by claim name, or `node/<name>` for a Node without a claim.
    state_nodes: Mapping[str, StateNode] = field(default_factory=dict, metadata=FOLLOWED)
    #: Nodes by provider ID; claims by provider ID, by the instance they have or are to have, by launch group, by
    #: NodePool and by node class. What has none of it is not in; each group is sorted by name.
    nodes_by_provider: Mapping[str, tuple[objects.Node, ...]] = field(default_factory=dict, metadata=FOLLOWED)
    claims_by_provider: Mapping[str, tuple[NodeClaim, ...]] = field(default_factory=dict, metadata=FOLLOWED)
    claims_by_instance: Mapping[str, tuple[NodeClaim, ...]] = field(default_factory=dict, metadata=FOLLOWED)
    claims_by_group: Mapping[str, tuple[NodeClaim, ...]] = field(default_factory=dict, metadata=FOLLOWED)
    claims_by_pool: Mapping[str, tuple[NodeClaim, ...]] = field(default_factory=dict, metadata=FOLLOWED)
    claims_by_class: Mapping[str, tuple[NodeClaim, ...]] = field(default_factory=dict, metadata=FOLLOWED)
    #: NodeClaims of other controllers by provider ID; no other table has their NodePools or NodeClaims.
    foreign_by_provider: Mapping[str, tuple[NodeClaim, ...]] = field(default_factory=dict, metadata=FOLLOWED)
    #: Volume attachments by node name.
    attachments_by_node: Mapping[str, tuple[storage.VolumeAttachment, ...]] = field(
        default_factory=dict, metadata=FOLLOWED
    )
    pods: PodIndex = field(default_factory=lambda: PodIndex({}, {}, {}), metadata=FOLLOWED)
    #: The next four are by `namespace/name`.
    pdbs: Mapping[str, objects.PodDisruptionBudget] = field(default_factory=dict, metadata=FOLLOWED)
    #: What they say of evictions: `pdb_selectors` by namespace.
    pdb_budgets: Mapping[str, Budget] = field(default_factory=dict, metadata=FOLLOWED)
    pdb_selectors: Mapping[str, Selectors] = field(default_factory=dict, metadata=FOLLOWED)
    daemon_sets: Mapping[str, objects.DaemonSet] = field(default_factory=dict, metadata=FOLLOWED)
    volume_claims: Mapping[str, storage.PersistentVolumeClaim] = field(default_factory=dict, metadata=FOLLOWED)
    volumes: Mapping[str, storage.PersistentVolume] = field(default_factory=dict, metadata=FOLLOWED)
    storage_classes: Mapping[str, storage.StorageClass] = field(default_factory=dict, metadata=FOLLOWED)
    volume_attachments: Mapping[str, storage.VolumeAttachment] = field(default_factory=dict, metadata=FOLLOWED)
    #: By the name of their Node.
    csi_nodes: Mapping[str, storage.CSINode] = field(default_factory=dict, metadata=FOLLOWED)
    namespaces: Mapping[str, objects.Namespace] = field(default_factory=dict, metadata=FOLLOWED)
    #: What pods belong to, by `namespace/name`; empty unless something that is asked for needs it (`kinds.watched`).
    services: Mapping[str, objects.Service] = field(default_factory=dict, metadata=FOLLOWED)
    replication_controllers: Mapping[str, objects.ReplicationController] = field(
        default_factory=dict, metadata=FOLLOWED
    )
    replica_sets: Mapping[str, workloads.ReplicaSet] = field(default_factory=dict, metadata=FOLLOWED)
    stateful_sets: Mapping[str, workloads.StatefulSet] = field(default_factory=dict, metadata=FOLLOWED)
    deployments: Mapping[str, workloads.Deployment] = field(default_factory=dict, metadata=FOLLOWED)
    #: By `namespace/name`; empty unless the gate CapacityBuffer is open.
    capacity_buffers: Mapping[str, CapacityBuffer] = field(default_factory=dict, metadata=FOLLOWED)
    pod_templates: Mapping[str, workloads.StoredTemplate] = field(default_factory=dict, metadata=FOLLOWED)
    #: Empty while claims of devices are ignored; claims are by `namespace/name`, a node's own slices by its name.
    device_classes: Mapping[str, devices.DeviceClass] = field(default_factory=dict, metadata=FOLLOWED)
    resource_slices: Mapping[str, devices.ResourceSlice] = field(default_factory=dict, metadata=FOLLOWED)
    resource_claims: Mapping[str, devices.ResourceClaim] = field(default_factory=dict, metadata=FOLLOWED)
    slices_by_node: Mapping[str, tuple[devices.ResourceSlice, ...]] = field(default_factory=dict, metadata=FOLLOWED)
    #: The cluster's own facts (for user data); None until they are known.
    cluster: ClusterFacts | None = field(default=None, metadata=GROUND)
    #: What AWS made of each EC2NodeClass, as of when, and the types each can launch.
    class_facts: Mapping[str, ClassFacts] = field(default_factory=dict, metadata=COMPARED)
    resolved_at: Mapping[str, datetime] = field(default_factory=dict, metadata=COMPARED)
    #: What AWS last said of a launch from each EC2NodeClass that was tried dry.
    dry_runs: Mapping[str, DryRun] = field(default_factory=dict, metadata=COMPARED)
    catalogues: Mapping[str, Catalogue] = field(default_factory=dict, metadata=COMPARED)
    #: The types of those NodePools of which NodeOverlays change anything, by pool and class (see `types_for`); and why
    #: overlays are applied nowhere, by overlay.
    overlaid: Mapping[PoolKey, Catalogue] = field(default_factory=dict, metadata=COMPARED)
    overlay_faults: Mapping[str, Reason] = field(default_factory=dict, metadata=COMPARED)
    #: Live instances of this cluster by ID, own launches included before Describe shows them.
    instances: InstanceIndex = field(default_factory=lambda: InstanceIndex({}, {}), metadata=COMPARED)
    #: Offerings that are out of stock, until when.
    out_of_stock: Mapping[OfferingKey, datetime] = field(default_factory=dict, metadata=COMPARED)
    #: What failed fleet calls left, by launch group.
    launch_failures: Mapping[str, LaunchFailure] = field(default_factory=dict, metadata=COMPARED)
    #: Since when Kerf leads, with no other controller in between; None while it does not.
    leading_since: datetime | None = field(default=ALWAYS, metadata=GROUND)
    #: Which launch groups and requests on NodeClaims bear a valid mark, by the NodeClaim's name.
    launch_marks: Mapping[str, LaunchMark] = field(default_factory=dict, metadata=COMPARED)
    #: Zones that traffic is shifted away from, by name and by ID: until when.
    shifted: Mapping[str, datetime] = field(default_factory=dict, metadata=COMPARED)
    interruptions: tuple[Interruption, ...] = field(default=(), metadata=NOT_FOR_STEPS)
    #: The impairments of instances, by ID, of impaired instances; and when EC2 was asked for that.
    impairments: Mapping[str, tuple[Impairment, ...]] = field(default_factory=dict, metadata=WHOLE)
    examined_at: datetime | None = field(default=None, metadata=WHOLE)
    #: Launch templates and instance profiles, by kind; a kind that was not listed yet is not in.
    inventories: Mapping[str, Inventory] = field(default_factory=dict, metadata=WHOLE)
    batch: Batch | None = field(default=None, metadata=NOT_FOR_STEPS)
    #: By key of `state_nodes`: a pod is expected there until then.
    nominated_until: Mapping[str, datetime] = field(default_factory=dict, metadata=COMPARED)
    #: What the latest provisioning pass promised, in the order in which it decided.
    nominations: tuple[Nomination, ...] = field(default=(), metadata=NOT_FOR_STEPS)
    #: By key of `state_nodes`: for how many pods of CapacityBuffers the latest provisioning pass kept room there.
    buffer_pods: Mapping[str, int] = field(default_factory=dict, metadata=COMPARED)
    #: By key of `state_nodes`: when the passes began to find that a node cannot be read because of a bug.
    unread_since: Mapping[str, datetime] = field(default_factory=dict, metadata=COMPARED)
    #: The UIDs of the pods for which the latest provisioning passes had no work left, and of those that these passes
    #: refused for another reason.
    left_over: frozenset[str] = field(default=frozenset(), metadata=NOT_FOR_STEPS)
    had_turn: frozenset[str] = field(default=frozenset(), metadata=NOT_FOR_STEPS)
    #: The candidates for disruption for which the latest plan had no work left: the method, and the key of
    #: `state_nodes`.
    candidates_left_over: frozenset[tuple[str, str]] = field(default=frozenset(), metadata=NOT_FOR_STEPS)
    #: Fields that the API server dropped from a write a while ago: another write of nothing else would be of no use.
    dropped_fields: frozenset[Field] = field(default=frozenset(), metadata=WHOLE)
    #: By name of a Node: when its taints, labels or allocatable resources were last seen to change; for some minutes.
    node_changed_at: Mapping[str, datetime] = field(default_factory=dict, metadata=COMPARED)
    #: What is being done right now, by lane: asked of the API server or of EC2, and not answered yet.
    under_way: tuple[Action, ...] = field(default=(), metadata=NOT_FOR_STEPS)
    #: When each source was last complete; a source that is missing has never been.
    fresh_at: Mapping[Source, datetime] = field(default_factory=dict, metadata=COMPARED)
    #: Proposals of the slow half (consolidation), newest first; each is checked again before it is used.
    proposals: tuple[Proposal, ...] = field(default=(), metadata=NOT_FOR_STEPS)
    #: By key of `state_nodes`: why the slow half, when it looked last, found no move for a node.
    kept: Mapping[str, Reason] = field(default_factory=dict, metadata=WHOLE)
    #: What consolidation has promised, of which it is not known yet what came of it.
    accounts: Accounts = field(default=NO_ACCOUNTS, metadata=WHOLE)
    #: Back-offs: by subject (`nodepool/x`, `eviction/ns/pod`, `launch/group`): not before this instant.
    not_before: Mapping[str, datetime] = field(default_factory=dict, metadata=COMPARED)
    #: Actions that fail, by verb and object (`failures.key`).
    failures: Mapping[str, Failure] = field(default_factory=dict, metadata=COMPARED)
    #: What has changed in the tables that follow events; None for a copy, which follows nothing.
    journal: Journal | None = field(default=None, metadata=WHOLE)

    @property
    def promises(self) -> dict[str, str]:
        """By UID of pods, the key of `state_nodes` at which the latest plan expects them, in its order."""
        return {one.pod_uid: one.target for one in self.nominations if not one.over}

    def fresh(self, *sources: Source) -> bool:
        """Whether all these sources were complete recently enough for an action that destroys."""
        limit = self.now - self.settings.stale_after
        found = [self.fresh_at.get(source) for source in sources]
        return all(at is not None and limit <= at <= self.now for at in found)

    def types_for(self, pool_name: str, class_name: str) -> Catalogue:
        """The types that a NodePool can launch from a node class, as overlays have them; without a pool (""), the
        class's own. Empty while the class's are not known."""
        own = self.overlaid.get((pool_name, class_name))
        return self.catalogues.get(class_name, ()) if own is None else own

    def full_subnets(self, class_name: str) -> frozenset[str]:
        """The class's subnets into which nothing can be launched now."""
        facts = self.class_facts.get(class_name)
        return facts.full_subnets if facts is not None else frozenset()

    def placement_group(self, class_name: str) -> PlacementGroup | None:
        """The one that the class selects, as far as it is known."""
        facts = self.class_facts.get(class_name)
        return facts.placement_group if facts is not None else None

    def spare(self, group: str) -> tuple[Instance, ...]:
        """Live instances of a launch group that no claim has, by ID."""
        taken = self.claims_by_instance
        return tuple(i for i in self.instances.by_group.get(group, ()) if i.live and i.id not in taken)

    def shifted_until(self, zone: str, zone_id: str = "") -> datetime | None:
        """Until when traffic is shifted away from a zone, of which name or ID will do; None when it is not."""
        found = (self.shifted.get(name) for name in (zone, zone_id) if name)
        return max((until for until in found if until is not None and until > self.now), default=None)

    def with_node_pools(self, *changed: NodePool) -> Snapshot:
        """The snapshot with these NodePools, and their specs, in place of those of their names."""
        pools = {**self.node_pools, **{pool.name: pool for pool in changed}}
        specs = {**self.pool_specs, **{pool.name: pool.spec for pool in changed}}
        return replace(self, node_pools=pools, pool_specs=specs)

    def detached(self) -> Snapshot:
        """A copy that shares no map with the cluster's indexes: for another process, a file, or a later look."""
        own: dict[str, Any] = {
            f.name: dict(value)
            for f in fields(self)
            if isinstance(value := getattr(self, f.name), Mapping) and not isinstance(value, (PodIndex, InstanceIndex))
        }
        by_node = {name: dict(pods) for name, pods in self.pods.by_node.items()}
        nominated = {name: dict(pods) for name, pods in self.pods.nominated.items()}
        pods = PodIndex(dict(self.pods.by_key), by_node, dict(self.pods.pending), nominated)
        return replace(self, pods=pods, journal=None, **own)

    def out_of_stock_now(self, offering: Offering) -> bool:
        found = (self.out_of_stock.get(key) for key in offering.keys) if self.out_of_stock else ()
        return any(until is not None and until > self.now for until in found)


#: The fields of the Snapshot by the way in which the memory follows them.
BY_FOLLOWING = by_following(Snapshot)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A move that the slow half found: these claims are removed, these claims (as specs) come; worth so much per hour.

    `versions` maps the objects it rests on (`nodeclaim/x`, `node/x`, `nodepool/x`) to their resource versions.
    """

    id: str
    reason: str
    kind: str
    candidates: tuple[str, ...]
    replacements: tuple[NodeClaim, ...]
    saving: int
    versions: Mapping[str, str]
    pods: frozenset[str] = frozenset()
    made_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Findings:
    """What the slow half found: moves, and by key of `state_nodes` why nodes that it looked at stay.

    `until`: the same snapshot would be answered the same at any time before; None when it may be answered otherwise at
    any time.
    """

    proposals: tuple[Proposal, ...] = ()
    kept: Mapping[str, Reason] = field(default_factory=dict)
    until: datetime | None = None
