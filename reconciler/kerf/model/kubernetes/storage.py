"""Kubernetes' objects of storage, only the fields that a decision reads: volumes, their claims, classes and drivers."""

from __future__ import annotations

from collections.abc import Mapping

from kerf.model.kubernetes.objects import NodeSelector
from kerf_api.v1.meta import ObjectMeta, Value

#: The annotation that named the class of a claim before the field did; where both are set, it counts.
OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


class PersistentVolumeClaimSpec(Value, frozen=True, kw_only=True):
    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()


class PersistentVolumeClaimStatus(Value, frozen=True, kw_only=True):
    #: Pending, Bound, or Lost: its volume is gone, and what was on it.
    phase: str = ""


class PersistentVolumeClaim(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def class_name(self) -> str | None:
        """The name of its StorageClass; None for the default one."""
        return self.metadata.annotations.get(OLD_CLASS, self.spec.storage_class_name)


class CSISource(Value, frozen=True, kw_only=True):
    driver: str = ""


class VolumeNodeAffinity(Value, frozen=True, kw_only=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Value, frozen=True, kw_only=True):
    csi: CSISource | None = None
    #: Only whether these are there is read: an EBS volume from before CSI, volumes of the node itself.
    aws_elastic_block_store: Mapping[str, object] | None = None
    local: Mapping[str, object] | None = None
    host_path: Mapping[str, object] | None = None
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: PersistentVolumeSpec = PersistentVolumeSpec()


class TopologySelectorExpression(Value, frozen=True, kw_only=True):
    """`key In values`; the API has no operator here."""

    key: str
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Value, frozen=True, kw_only=True):
    match_label_expressions: tuple[TopologySelectorExpression, ...] = ()


class StorageClass(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class AttachmentSource(Value, frozen=True, kw_only=True):
    persistent_volume_name: str = ""


class VolumeAttachmentSpec(Value, frozen=True, kw_only=True):
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


class VolumeNodeResources(Value, frozen=True, kw_only=True):
    #: How many volumes of the driver the node can attach; absent: they are not counted.
    count: int | None = None


class CSINodeDriver(Value, frozen=True, kw_only=True):
    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Value, frozen=True, kw_only=True):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Value, frozen=True, kw_only=True):
    """The storage drivers on the Node of the same name."""

    metadata: ObjectMeta
    spec: CSINodeSpec = CSINodeSpec()

    @property
    def attachable(self) -> Mapping[str, int]:
        """How many volumes the node can attach, by driver; a driver without a limit is not in."""
        limits = {driver.name: driver.allocatable for driver in self.spec.drivers}
        return {name: most.count for name, most in limits.items() if most is not None and most.count is not None}
