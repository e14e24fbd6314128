"""Devices that are asked for by claim (dynamic resource allocation, resource.k8s.io/v1), only the fields that are read.

A ResourceSlice says what there is, a ResourceClaim what is wanted and what was given, a DeviceClass what kinds mean.
Amounts are quantities as they are written; `reconciler/kerf/scheduling/devices` says what all of it means.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from kerf.model.kubernetes.objects import NodeSelector, Quantities, Toleration
from kerf_api.v1.meta import ObjectMeta, Taint, Value

Quantity = str | int | float


# --- what there is ------------------------------------------------------------------------------------------------
class Attribute(Value, frozen=True, kw_only=True):
    """One of the four is set."""

    whole: int | None = field(default=None, name="int")
    truth: bool | None = field(default=None, name="bool")
    text: str | None = field(default=None, name="string")
    version: str | None = None


class ValidRange(Value, frozen=True, kw_only=True):
    min: Quantity = 0
    max: Quantity | None = None
    step: Quantity | None = None


class RequestPolicy(Value, frozen=True, kw_only=True):
    """How much a request of a shared capacity may be; a request that names nothing gets the default."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: ValidRange | None = None


class DeviceCapacity(Value, frozen=True, kw_only=True):
    value: Quantity = 0
    request_policy: RequestPolicy | None = None


class Counter(Value, frozen=True, kw_only=True):
    value: Quantity = 0


class CounterSet(Value, frozen=True, kw_only=True):
    name: str = ""
    counters: Mapping[str, Counter] = field(default_factory=dict)


class Consumption(Value, frozen=True, kw_only=True):
    counter_set: str = ""
    counters: Mapping[str, Counter] = field(default_factory=dict)


class SliceDevice(Value, frozen=True, kw_only=True):
    """Where it can be reached from is stated here only with `perDeviceNodeSelection` of its slice."""

    name: str = ""
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    capacity: Mapping[str, DeviceCapacity] = field(default_factory=dict)
    consumes_counters: tuple[Consumption, ...] = ()
    allow_multiple_allocations: bool = False
    taints: tuple[Taint, ...] = ()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False


class ResourcePool(Value, frozen=True, kw_only=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class ResourceSliceSpec(Value, frozen=True, kw_only=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[SliceDevice, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: ResourceSliceSpec = ResourceSliceSpec()


# --- what is wanted -----------------------------------------------------------------------------------------------
class CELSelector(Value, frozen=True, kw_only=True):
    expression: str = ""


class DeviceSelector(Value, frozen=True, kw_only=True):
    cel: CELSelector | None = None


class DeviceClassSpec(Value, frozen=True, kw_only=True):
    selectors: tuple[DeviceSelector, ...] = ()


class DeviceClass(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: DeviceClassSpec = DeviceClassSpec()


class CapacityRequests(Value, frozen=True, kw_only=True):
    requests: Quantities = field(default_factory=dict)


class ExactRequest(Value, frozen=True, kw_only=True):
    """`name` is set in alternatives only."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool = False
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequests | None = None


class DeviceRequest(Value, frozen=True, kw_only=True):
    """Either `exactly`, or the first of several that can be had."""

    name: str = ""
    exactly: ExactRequest | None = None
    first_available: tuple[ExactRequest, ...] = ()


class DeviceConstraint(Value, frozen=True, kw_only=True):
    """About the devices of these requests (of all, if none is named)."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class ClaimedDevices(Value, frozen=True, kw_only=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()


class ResourceClaimSpec(Value, frozen=True, kw_only=True):
    devices: ClaimedDevices = ClaimedDevices()


# --- what was given -----------------------------------------------------------------------------------------------
class DeviceResult(Value, frozen=True, kw_only=True):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    consumed_capacity: Quantities = field(default_factory=dict)


class AllocatedDevices(Value, frozen=True, kw_only=True):
    results: tuple[DeviceResult, ...] = ()


class Allocation(Value, frozen=True, kw_only=True):
    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None


class Consumer(Value, frozen=True, kw_only=True):
    """Who may use the claim: a pod (no API group), or something that we know nothing of."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(Value, frozen=True, kw_only=True):
    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()


class ResourceClaim(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"
