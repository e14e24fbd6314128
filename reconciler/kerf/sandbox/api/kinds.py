"""The kinds that the sandbox keeps: those that the controller knows, and those that other parts of a cluster need."""

from __future__ import annotations

from msgspec import field

from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf_api.v1.meta import ObjectMeta, Value


class Plain(Value, frozen=True, kw_only=True):
    """An object of which only the metadata is read."""

    metadata: ObjectMeta


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


LEASE = Kind("Lease", "coordination.k8s.io/v1", "leases", CoordinationLease)
EVENT = Kind("Event", "v1", "events", Event)
PRIORITY_CLASS = Kind("PriorityClass", "scheduling.k8s.io/v1", "priorityclasses", Plain, True)
CONFIG_MAP = Kind("ConfigMap", "v1", "configmaps", Plain)

ALL = (
    *kinds.KNOWN,
    LEASE,
    EVENT,
    PRIORITY_CLASS,
    CONFIG_MAP,
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
        "CapacityBuffer",
    }
)
#: Kinds defined by CustomResourceDefinitions.
CUSTOM = frozenset({"NodePool", "NodeClaim", "EC2NodeClass", "NodeOverlay", "CapacityBuffer"})
#: Bookkeeping that no decision depends on: a change of these does not wake the controller.
QUIET = frozenset({"Lease", "Event"})
