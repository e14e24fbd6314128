"""The kinds that the sandbox keeps: those that a controller may watch, and those that workload controllers need."""

from __future__ import annotations

from msgspec import field

from api.v1.meta import ObjectMeta, Value
from reconciler.model import kinds
from reconciler.model.kinds import Kind
from reconciler.model.objects import LabelSelector, PodTemplate


class Plain(Value, frozen=True, kw_only=True):
    """An object of which only the metadata is read."""

    metadata: ObjectMeta


class WorkloadSpec(Value, frozen=True, kw_only=True):
    replicas: int = 1
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    pod_management_policy: str = "OrderedReady"


class WorkloadStatus(Value, frozen=True, kw_only=True):
    replicas: int = 0
    ready_replicas: int = 0


class Workload(Value, frozen=True, kw_only=True):
    """A Deployment, ReplicaSet or StatefulSet."""

    metadata: ObjectMeta
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class ObjectReference(Value, frozen=True, kw_only=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Event(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    involved_object: ObjectReference = ObjectReference()
    type: str = "Normal"
    reason: str = ""
    message: str = ""


class LeaseSpec(Value, frozen=True, kw_only=True):
    holder_identity: str = ""
    lease_duration_seconds: int = 15
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int = 0


class CoordinationLease(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: LeaseSpec = field(default_factory=LeaseSpec)


DEPLOYMENT = Kind("Deployment", "apps/v1", "deployments", Workload)
REPLICA_SET = Kind("ReplicaSet", "apps/v1", "replicasets", Workload)
STATEFUL_SET = Kind("StatefulSet", "apps/v1", "statefulsets", Workload)
LEASE = Kind("Lease", "coordination.k8s.io/v1", "leases", CoordinationLease)
EVENT = Kind("Event", "v1", "events", Event)
PRIORITY_CLASS = Kind("PriorityClass", "scheduling.k8s.io/v1", "priorityclasses", Plain, True)
CONFIG_MAP = Kind("ConfigMap", "v1", "configmaps", Plain)
SERVICE = Kind("Service", "v1", "services", Plain)

ALL = (
    *kinds.KNOWN,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    LEASE,
    EVENT,
    PRIORITY_CLASS,
    CONFIG_MAP,
    SERVICE,
)
BY_NAME = {kind.name: kind for kind in ALL}

#: Kinds whose status is written apart from the rest.
WITH_STATUS = frozenset(
    {
        "NodePool",
        "NodeClaim",
        "EC2NodeClass",
        "NodeOverlay",
        "Node",
        "Pod",
        "PodDisruptionBudget",
        "DaemonSet",
        "Namespace",
        "PersistentVolumeClaim",
        "PersistentVolume",
        "VolumeAttachment",
        "Deployment",
        "ReplicaSet",
        "StatefulSet",
    }
)
#: Kinds defined by CustomResourceDefinitions.
CUSTOM = frozenset({"NodePool", "NodeClaim", "EC2NodeClass", "NodeOverlay"})
#: Bookkeeping that no decision depends on: a change of these does not wake the controller.
QUIET = frozenset({"Lease", "Event"})
