"""The kinds that the controller watches: where each lives in the API, and the value it is decoded into.

Some are watched only while a setting asks for what they say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kerf.model.kubernetes import devices, objects, storage, workloads
from kerf.model.settings import Settings
from kerf_api.foreign import names_foreign
from kerf_api.v1.capacitybuffer import CapacityBuffer
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import Value
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodeoverlay import NodeOverlay
from kerf_api.v1.nodepool import NodePool


@dataclass(frozen=True, slots=True)
class Kind:
    """A resource of the API. `api_version` is `v1` or `group/version`; `cluster_scoped` objects have no namespace."""

    name: str
    api_version: str
    plural: str
    type: type[Any]
    cluster_scoped: bool = False

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def names(self) -> str:
        """Its name for several objects, as `EC2NodeClasses`."""
        return f"{self.name}{'es' if self.name.endswith('s') else 's'}"

    @property
    def resource(self) -> str:
        """As messages about permissions name it, such as `nodepools.karpenter.sh`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of the collection, an object or its subresource."""
        prefix = f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"
        parts = ["", "namespaces", namespace] if namespace and not self.cluster_scoped else [""]
        parts += [part for part in (self.plural, name, subresource) if part]
        return prefix + "/".join(parts)


NODE_POOL = Kind("NodePool", "karpenter.sh/v1", "nodepools", NodePool, True)
NODE_CLAIM = Kind("NodeClaim", "karpenter.sh/v1", "nodeclaims", NodeClaim, True)
NODE_CLASS = Kind("EC2NodeClass", "karpenter.k8s.aws/v1", "ec2nodeclasses", EC2NodeClass, True)
NODE_OVERLAY = Kind("NodeOverlay", "karpenter.sh/v1alpha1", "nodeoverlays", NodeOverlay, True)
NODE = Kind("Node", "v1", "nodes", objects.Node, True)
POD = Kind("Pod", "v1", "pods", objects.Pod)
PDB = Kind("PodDisruptionBudget", "policy/v1", "poddisruptionbudgets", objects.PodDisruptionBudget)
DAEMON_SET = Kind("DaemonSet", "apps/v1", "daemonsets", objects.DaemonSet)
NAMESPACE = Kind("Namespace", "v1", "namespaces", objects.Namespace, True)
PVC = Kind("PersistentVolumeClaim", "v1", "persistentvolumeclaims", storage.PersistentVolumeClaim)
PV = Kind("PersistentVolume", "v1", "persistentvolumes", storage.PersistentVolume, True)
STORAGE_CLASS = Kind("StorageClass", "storage.k8s.io/v1", "storageclasses", storage.StorageClass, True)
CSI_NODE = Kind("CSINode", "storage.k8s.io/v1", "csinodes", storage.CSINode, True)
VOLUME_ATTACHMENT = Kind("VolumeAttachment", "storage.k8s.io/v1", "volumeattachments", storage.VolumeAttachment, True)
SERVICE = Kind("Service", "v1", "services", objects.Service)
REPLICATION_CONTROLLER = Kind("ReplicationController", "v1", "replicationcontrollers", objects.ReplicationController)
CAPACITY_BUFFER = Kind("CapacityBuffer", "autoscaling.x-k8s.io/v1beta1", "capacitybuffers", CapacityBuffer)
POD_TEMPLATE = Kind("PodTemplate", "v1", "podtemplates", workloads.StoredTemplate)
DEPLOYMENT = Kind("Deployment", "apps/v1", "deployments", workloads.Deployment)
REPLICA_SET = Kind("ReplicaSet", "apps/v1", "replicasets", workloads.ReplicaSet)
STATEFUL_SET = Kind("StatefulSet", "apps/v1", "statefulsets", workloads.StatefulSet)
DEVICE_CLASS = Kind("DeviceClass", "resource.k8s.io/v1", "deviceclasses", devices.DeviceClass, True)
RESOURCE_SLICE = Kind("ResourceSlice", "resource.k8s.io/v1", "resourceslices", devices.ResourceSlice, True)
RESOURCE_CLAIM = Kind("ResourceClaim", "resource.k8s.io/v1", "resourceclaims", devices.ResourceClaim)

#: Kinds of which other controllers have objects too, with node classes of their own.
SHARED = (NODE_POOL, NODE_CLAIM)

#: Watched whatever the settings say, in the order in which it is first listed: what others refer to comes first.
WATCHED = (
    NODE_POOL,
    NODE_CLASS,
    NODE_CLAIM,
    NODE,
    CSI_NODE,
    NAMESPACE,
    STORAGE_CLASS,
    PV,
    PVC,
    VOLUME_ATTACHMENT,
    DAEMON_SET,
    PDB,
    POD,
)
#: What pods belong to: watched while there are default spread constraints, whose selectors come from these.
WORKLOADS = (SERVICE, REPLICATION_CONTROLLER, REPLICA_SET, STATEFUL_SET)
#: What overlays say of types and prices: watched with the gate NodeOverlay.
OVERLAYS = (NODE_OVERLAY,)
#: CapacityBuffers and what they refer to: watched with the gate CapacityBuffer.
BUFFERS = (POD_TEMPLATE, DEPLOYMENT, REPLICA_SET, STATEFUL_SET, CAPACITY_BUFFER)
#: What devices there are and who has them: watched unless claims of devices are ignored.
DEVICES = (DEVICE_CLASS, RESOURCE_SLICE, RESOURCE_CLAIM)
#: All that may be watched.
KNOWN = tuple(dict.fromkeys((*WORKLOADS, *BUFFERS, *OVERLAYS, *DEVICES, *WATCHED)))
BY_NAME = {kind.name: kind for kind in KNOWN}


def own(value: Any | None) -> Any | None:
    """The value, unless it is a NodePool or NodeClaim of another controller: then None."""
    if isinstance(value, NodePool):
        ref = value.spec.template.spec.node_class_ref
    elif isinstance(value, NodeClaim):
        ref = value.spec.node_class_ref
    else:
        return value
    return None if names_foreign(ref.group, ref.kind) else value


def foreign(value: Any | None) -> Any | None:
    """The value if it is a NodePool or NodeClaim of another controller, and None otherwise."""
    return value if own(value) is None else None


def watched(settings: Settings) -> tuple[Kind, ...]:
    """What is watched with these settings, in the order in which it is first listed."""
    wanted = {*WATCHED}
    if settings.default_constraints:
        wanted |= {*WORKLOADS}
    if settings.gates.capacity_buffer:
        wanted |= {*BUFFERS}
    if settings.gates.node_overlay:
        wanted |= {*OVERLAYS}
    if not settings.ignore_dra_requests:
        wanted |= {*DEVICES}
    return tuple(kind for kind in KNOWN if kind in wanted)


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """An object's address: kind name, namespace (empty when cluster-scoped), name."""

    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, kind: Kind, value: Any) -> Ref:
        return cls(kind.name, "" if kind.cluster_scoped else value.metadata.namespace, value.metadata.name)

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.namespace + '/' if self.namespace else ''}{self.name}"


def ref(value: Value) -> Ref:
    """The address of a decoded object of a watched kind."""
    return Ref.of(_BY_TYPE[type(value)], value)


_BY_TYPE: dict[type[Any], Kind] = {kind.type: kind for kind in KNOWN}
