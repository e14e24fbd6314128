"""Kubernetes' own objects, only the fields that a decision reads, decoded straight from JSON into frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import field

from kerf_api import labels
from kerf_api.bounds import Seconds
from kerf_api.v1.meta import ObjectMeta, Taint, Value

Quantities = Mapping[str, str | int | float]


# --- selectors --------------------------------------------------------------------------------------------------
class Expression(Value, frozen=True, kw_only=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Value, frozen=True, kw_only=True):
    """None (absent) selects nothing, an empty one everything."""

    match_labels: Mapping[str, str] = field(default_factory=dict)
    match_expressions: tuple[Expression, ...] = ()


class NodeSelectorTerm(Value, frozen=True, kw_only=True):
    match_expressions: tuple[Expression, ...] = ()
    match_fields: tuple[Expression, ...] = ()


class NodeSelector(Value, frozen=True, kw_only=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


# --- pods -------------------------------------------------------------------------------------------------------
class DeviceClaim(Value, frozen=True, kw_only=True):
    """A claim of devices (dynamic resource allocation), by its name within the pod.

    Of a pod's own list: which ResourceClaim that is, or the template of one (then the pod's status names the claim).
    """

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class DeviceClaimStatus(Value, frozen=True, kw_only=True):
    """The ResourceClaim that was made for a pod's claim; none was needed if it names none."""

    name: str = ""
    resource_claim_name: str = ""


class ResourceNeeds(Value, frozen=True, kw_only=True):
    requests: Quantities = field(default_factory=dict)
    limits: Quantities = field(default_factory=dict)
    claims: tuple[DeviceClaim, ...] = ()


class ContainerPort(Value, frozen=True, kw_only=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(Value, frozen=True, kw_only=True):
    name: str = ""
    resources: ResourceNeeds = ResourceNeeds()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""


class PreferredTerm(Value, frozen=True, kw_only=True):
    weight: int = 1
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Value, frozen=True, kw_only=True):
    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredTerm, ...] = field(default=(), name="preferredDuringSchedulingIgnoredDuringExecution")


class PodAffinityTerm(Value, frozen=True, kw_only=True):
    """Of a pod in the API server the selector contains the values of the keys, of a template it does not."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The present name of the topology key, as the labels of nodes have it."""
        return labels.normalise(self.topology_key)


class WeightedPodAffinityTerm(Value, frozen=True, kw_only=True):
    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Value, frozen=True, kw_only=True):
    """Affinity or anti-affinity between pods; the same shape."""

    required: tuple[PodAffinityTerm, ...] = field(default=(), name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[WeightedPodAffinityTerm, ...] = field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Value, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Value, frozen=True, kw_only=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Kubernetes' rule: an empty key with Exists matches all, an empty effect matches every effect."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return bool(self.key) and self.value == taint.value


class TopologySpreadConstraint(Value, frozen=True, kw_only=True):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The present name of the topology key, as the labels of nodes have it."""
        return labels.normalise(self.topology_key)


class ClaimSource(Value, frozen=True, kw_only=True):
    claim_name: str = ""


class ClaimTemplateSpec(Value, frozen=True, kw_only=True):
    storage_class_name: str | None = None


class ClaimTemplate(Value, frozen=True, kw_only=True):
    spec: ClaimTemplateSpec = ClaimTemplateSpec()


class EphemeralSource(Value, frozen=True, kw_only=True):
    volume_claim_template: ClaimTemplate = ClaimTemplate()


class Volume(Value, frozen=True, kw_only=True):
    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None


class SchedulingGate(Value, frozen=True, kw_only=True):
    name: str = ""


class PodSpec(Value, frozen=True, kw_only=True):
    node_name: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Quantities = field(default_factory=dict)
    resources: ResourceNeeds | None = None
    resource_claims: tuple[DeviceClaim, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    priority: int = 0
    priority_class_name: str = ""
    preemption_policy: str = ""
    scheduler_name: str = "default-scheduler"
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    termination_grace_period_seconds: Seconds | None = None
    host_network: bool = False


class PodCondition(Value, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class Requested(Value, frozen=True, kw_only=True):
    requests: Quantities = field(default_factory=dict)


class ContainerStatus(Value, frozen=True, kw_only=True):
    """The requests that the kubelet applied to a container (`resources`) and admitted (`allocated_resources`), and how
    often it has restarted the container."""

    name: str = ""
    resources: Requested | None = None
    allocated_resources: Quantities = field(default_factory=dict)
    restart_count: int = 0


class PodStatus(Value, frozen=True, kw_only=True):
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    start_time: datetime | None = None
    nominated_node_name: str = ""
    resource_claim_statuses: tuple[DeviceClaimStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: Requested | None = None
    allocated_resources: Quantities = field(default_factory=dict)


class Pod(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


# --- nodes ------------------------------------------------------------------------------------------------------
class NodeCondition(Value, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: datetime | None = None


class NodeSpec(Value, frozen=True, kw_only=True):
    provider_id: str = field(default="", name="providerID")
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeStatus(Value, frozen=True, kw_only=True):
    capacity: Quantities = field(default_factory=dict)
    allocatable: Quantities = field(default_factory=dict)
    conditions: tuple[NodeCondition, ...] = ()


class Node(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def ready(self) -> bool:
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)

    @property
    def registered(self) -> bool:
        return self.metadata.labels.get(labels.REGISTERED) == "true"

    @property
    def initialized(self) -> bool:
        return self.metadata.labels.get(labels.INITIALIZED) == "true"


# --- the others -------------------------------------------------------------------------------------------------
class PodDisruptionBudgetSpec(Value, frozen=True, kw_only=True):
    selector: LabelSelector | None = None
    min_available: str | int | None = None
    max_unavailable: str | int | None = None
    unhealthy_pod_eviction_policy: str = "IfHealthyBudget"


class PodDisruptionBudgetStatus(Value, frozen=True, kw_only=True):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed_generation: int = 0


class PodDisruptionBudget(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PodTemplate(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class DaemonSetSpec(Value, frozen=True, kw_only=True):
    template: PodTemplate = PodTemplate()


class DaemonSet(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: DaemonSetSpec = DaemonSetSpec()


class Namespace(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta


class PairSelectorSpec(Value, frozen=True, kw_only=True):
    """A selector of pairs only; absent it selects nothing."""

    selector: Mapping[str, str] | None = None


class Service(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: PairSelectorSpec = PairSelectorSpec()


class ReplicationController(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: PairSelectorSpec = PairSelectorSpec()
