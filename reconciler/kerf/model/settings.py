"""Settings that decisions depend on. Names and defaults are Karpenter's; the runtime reads them from flags and env."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from kerf.model.kubernetes.objects import TopologySpreadConstraint
from kerf_api.approval import OFF, PlanFirst
from kerf_api.thresholds import NO_THRESHOLDS, Thresholds


@dataclass(frozen=True, slots=True)
class FeatureGates:
    node_repair: bool = False
    reserved_capacity: bool = True
    spot_to_spot_consolidation: bool = False
    node_overlay: bool = False
    static_capacity: bool = False
    capacity_buffer: bool = False
    node_class_cel: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    cluster_name: str
    batch_idle: timedelta = timedelta(seconds=1)
    batch_max: timedelta = timedelta(seconds=10)
    #: A pod that comes alone waits for others so long, and no longer than `batch_idle`.
    batch_lone: timedelta = timedelta(milliseconds=200)
    #: A node that is full is ordered before its batch closes.
    early_orders: bool = True
    preference_policy: str = "Respect"
    min_values_policy: str = "Strict"
    improve: timedelta = timedelta(seconds=1)
    #: What pods without a spread of their own are spread by; their selectors follow from what the pods belong to.
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    #: Pods are nominated to the node that was made for them (`status.nominatedNodeName`), which then comes first for
    #: them.
    nominate_pods: bool = False
    #: Claims that have expired wait for the budgets of their NodePools.
    expire_within_budgets: bool = False
    #: What consolidation has to bring where a NodePool does not say so itself.
    thresholds: Thresholds = NO_THRESHOLDS
    #: Whether changes wait for approval where neither a NodePool nor its EC2NodeClass has the annotation.
    plan_first: PlanFirst = OFF
    #: The soak time of canaries where neither a NodePool nor its EC2NodeClass has the annotation; zero: no canary.
    canary_soak: timedelta = timedelta(0)
    #: Pods that claim devices (dynamic resource allocation) are no concern of ours.
    ignore_dra_requests: bool = True
    vm_memory_overhead_percent: float = 0.075
    reserved_enis: int = 0
    interruption_queue: str = ""
    isolated_vpc: bool = False
    #: Zones that ARC zonal shift has shifted the cluster away from are left alone.
    zonal_shift: bool = False
    #: No launch is tried dry before an EC2NodeClass is reported as valid.
    disable_dry_run: bool = False
    gates: FeatureGates = FeatureGates()
    #: While nothing happens, what an EC2NodeClass selects is looked up this often.
    refresh: timedelta = timedelta(minutes=5)

    #: Of NodeClaims that another client deletes few are drained at once, or so many of a hundred of all nodes; with
    #: more the drain is held for so long (nothing: never).
    deletion_guard_percent: int = 10
    deletion_guard_wait: timedelta = timedelta(minutes=10)
    #: How old a source may be for an action that destroys (design: "Fresh or not at all").
    stale_after: timedelta = timedelta(seconds=90)
    #: An instance without a claim is collected only when it is older than this.
    adoption_time: timedelta = timedelta(seconds=60)
    launch_timeout: timedelta = timedelta(minutes=5)
    registration_timeout: timedelta = timedelta(minutes=15)
    #: A consolidation command is decided again after this long before it starts.
    validation_delay: timedelta = timedelta(seconds=15)
    min_drain_time: timedelta = timedelta(seconds=5)
    disruption_period: timedelta = timedelta(seconds=10)
    max_instance_types: int = 60
