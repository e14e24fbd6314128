"""CapacityBuffer, autoscaling.x-k8s.io/v1beta1: room that is kept for pods that do not exist yet."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from kerf_api.v1.meta import Condition, ObjectMeta, Value


class LocalRef(Value, frozen=True, kw_only=True):
    """An object of a known kind in the same namespace."""

    name: str = ""


class ScalableRef(Value, frozen=True, kw_only=True):
    """A workload in the same namespace; no group means `apps`."""

    kind: str = ""
    name: str = ""
    api_group: str = ""


class CapacityBufferSpec(Value, frozen=True, kw_only=True):
    provisioning_strategy: str = "buffer.x-k8s.io/active-capacity"
    pod_template_ref: LocalRef | None = None
    scalable_ref: ScalableRef | None = None
    replicas: int | None = None
    percentage: int | None = None
    limits: Mapping[str, str | int | float] = field(default_factory=dict)


class CapacityBufferStatus(Value, frozen=True, kw_only=True):
    pod_template_ref: LocalRef | None = None
    pod_template_generation: int | None = None
    replicas: int | None = None
    provisioning_strategy: str = ""
    conditions: tuple[Condition, ...] = ()


class CapacityBuffer(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: CapacityBufferSpec = CapacityBufferSpec()
    status: CapacityBufferStatus = CapacityBufferStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"
