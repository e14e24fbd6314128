"""An instance type as the scheduler sees it: requirements, capacity, overhead, offerings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from kerf.model.kubernetes.devices import ResourceSliceSpec
from kerf_api import labels
from kerf_api.kubelet.reading import Reserved
from kerf_api.requirements import DOES_NOT_EXIST, IN, NOT_IN, Requirement, Requirements, requirement
from kerf_api.resources import Resources

#: A (type, zone, capacity type) that can be bought; of reserved capacity the third is the reservation's ID.
OfferingKey = tuple[str, str, str]


def in_group(key: OfferingKey, placement_group: str) -> OfferingKey:
    """The same offering within a placement group, where it may be out of stock although it is not elsewhere."""
    return (key[0], key[1], f"{key[2]} in {placement_group}") if placement_group else key


#: What an offering settles of a machine's labels.
OFFERING_LABELS = (labels.ZONE, labels.CAPACITY_TYPE, labels.ZONE_ID, *labels.RESERVATION_LABELS)
#: The values that an offering has of these, in order; "" for none.
Market = tuple[str, ...]
_NONE: tuple[str, ...] = ("",) * len(labels.RESERVATION_LABELS)
_HUGE_PAGES = "hugepages-"
#: The resources of GPUs and other accelerators.
ACCELERATORS = (
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "amd.com/gpu",
    "nvidia.com/gpu",
    "habana.ai/gaudi",
)


@dataclass(frozen=True, slots=True)
class Reservation:
    """A capacity reservation behind an offering: so many machines may still be launched into it.

    `type` is `default` or `capacity-block`. Source: EC2, DescribeCapacityReservations.
    """

    id: str
    left: int
    type: str = "default"
    interruptible: bool = False


@dataclass(frozen=True, slots=True)
class Offering:
    """One zone and capacity type of a type; a reserved one is of one reservation. `price` is in millionths of a dollar
    per hour.

    `available` says that the price is known and the zone has a usable subnet; what is out of stock for now is not
    here but in `Snapshot.out_of_stock`. One that is `unpriced` would be available if its price were known. `capacity`
    is what machines from here have instead of what the type has of these resources. `placement_group` is the ID of the
    one that machines from here are launched into; `shifted`: traffic is shifted away from the zone. Reserved capacity
    is paid for whether or not it is used: its price is 0, and `on_demand`, the price of the type on demand, orders it.
    """

    instance_type: str
    zone: str
    capacity_type: str
    price: int
    available: bool = True
    zone_id: str = ""
    capacity: Resources | None = None
    unpriced: bool = False
    reservation: Reservation | None = None
    placement_group: str = ""
    shifted: bool = False
    on_demand: int = 0

    @property
    def key(self) -> OfferingKey:
        sold = self.capacity_type if self.reservation is None else self.reservation.id
        return (self.instance_type, self.zone, sold)

    @property
    def keys(self) -> tuple[OfferingKey, ...]:
        """What it is called when it is out of stock: by itself, and within its placement group."""
        own = self.key
        return (own, in_group(own, self.placement_group)) if self.placement_group else (own,)

    @property
    def market(self) -> Market:
        held = self.reservation
        own = _NONE if held is None else labels.of_reservation(held.id, held.type, held.interruptible).values()
        return (self.zone, self.capacity_type, self.zone_id, *own)

    @property
    def labels(self) -> dict[str, str]:
        """The labels of a machine from here that its type does not settle."""
        return {key: value for key, value in zip(OFFERING_LABELS, self.market, strict=True) if value}

    def requirements(self) -> Requirements:
        return Requirements(requirement(key, IN, (value,)) for key, value in self.labels.items())

    def suits(self, wanted: Requirements) -> bool:
        """Whether what is wanted of zone, capacity type, zone ID and reservation admits it."""
        return in_market(map(wanted.get, OFFERING_LABELS), self.market)


@dataclass(frozen=True, slots=True)
class InstanceType:
    """`allocatable` is capacity less kube-reserved, system-reserved and the eviction threshold.

    `price_overlay` and `capacity_overlay`: a NodeOverlay has changed the price of an offering, the capacity. `devices`
    are the slices that a node of the type will publish, where that is known. `reserved` is what expressions of the
    node class come to: field, resource and quantity, such as ("kubeReserved", "cpu", "120m").
    """

    name: str
    requirements: Requirements
    capacity: Resources
    allocatable: Resources
    offerings: tuple[Offering, ...]
    price_overlay: bool = False
    capacity_overlay: bool = False
    devices: tuple[ResourceSliceSpec, ...] = ()
    reserved: tuple[Reserved, ...] = ()

    def with_capacity(self, own: Mapping[str, int]) -> InstanceType:
        """The same with these amounts of some resources; what the system keeps of each is what it was.

        Huge pages are memory that nothing else can have.
        """
        left = {**self.allocatable}
        for name, amount in own.items():
            left[name] = amount - (self.capacity[name] - self.allocatable[name])
        pages = sum(own[name] - self.capacity[name] for name in own if name.startswith(_HUGE_PAGES))
        if pages:
            left["memory"] = max(left.get("memory", 0) - pages, 0)
        return replace(self, capacity=Resources({**self.capacity, **own}), allocatable=Resources(left))

    def groups(self) -> tuple[InstanceType, ...]:
        """The type once for each capacity that offerings of it have, with these offerings; its own comes first."""
        if all(offering.capacity is None for offering in self.offerings):
            return (self,)
        grouped: dict[Resources | None, list[Offering]] = {None: []}
        for offering in self.offerings:
            grouped.setdefault(offering.capacity, []).append(offering)
        return tuple(
            replace(self if own is None else self.with_capacity(own), offerings=tuple(offerings))
            for own, offerings in grouped.items()
            if offerings
        )

    def holding(self, requests: Resources) -> InstanceType:
        """The type with only those offerings whose machines have room for so much."""
        if requests.fits(self.allocatable) and all(offering.capacity is None for offering in self.offerings):
            return self
        rooms = [group for group in self.groups() if requests.fits(group.allocatable)]
        return replace(self, offerings=tuple(offering for group in rooms for offering in group.offerings))

    def launched(self, zone: str, capacity_type: str) -> InstanceType:
        """The type as a machine from this zone and capacity type has it."""
        sold = (o for o in self.offerings if (o.zone, o.capacity_type) == (zone, capacity_type))
        own = next((offering.capacity for offering in sold), None)
        return self if own is None else self.with_capacity(own)


def suiting(wanted: Requirements) -> Callable[[Offering], bool]:
    """`Offering.suits` for many offerings: they have few markets."""
    rows, known = tuple(map(wanted.get, OFFERING_LABELS)), dict[Market, bool]()

    def suits(offering: Offering) -> bool:
        market = offering.market
        found = known.get(market)
        if found is None:
            found = known[market] = in_market(rows, market)
        return found

    return suits


def in_market(wanted: Iterable[Requirement | None], market: Market) -> bool:
    """Whether a market is what is wanted of each of `OFFERING_LABELS`."""
    return all(map(_admitted, wanted, OFFERING_LABELS, market))


def _admitted(wanted: Requirement | None, key: str, value: str) -> bool:
    """A zone ID that is not known may be any; who is in no reservation has none of its labels."""
    if wanted is None:
        return True
    if value:
        return wanted.has(value)
    return key not in labels.RESERVATION_LABELS or wanted.operator in (NOT_IN, DOES_NOT_EXIST)


#: The types that a NodePool can use, by name.
Catalogue = tuple[InstanceType, ...]
