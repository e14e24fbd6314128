"""An instance type as the scheduler sees it: requirements, capacity, overhead, offerings."""

from __future__ import annotations

from dataclasses import dataclass

from api import labels
from api.requirements import IN, Requirements, requirement
from api.resources import Resources

#: A (type, zone, capacity type) that can be bought.
OfferingKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Offering:
    """One zone and capacity type of a type. `price` is in millionths of a dollar per hour.

    `available` says that the price is known and the zone has a usable subnet; what is out of stock for now is not
    here but in `Snapshot.out_of_stock`.
    """

    instance_type: str
    zone: str
    capacity_type: str
    price: int
    available: bool = True
    zone_id: str = ""

    @property
    def key(self) -> OfferingKey:
        return (self.instance_type, self.zone, self.capacity_type)

    def requirements(self) -> Requirements:
        pairs = {labels.ZONE: self.zone, labels.CAPACITY_TYPE: self.capacity_type}
        if self.zone_id:
            pairs[labels.ZONE_ID] = self.zone_id
        return Requirements(requirement(key, IN, (value,)) for key, value in pairs.items())


@dataclass(frozen=True, slots=True)
class InstanceType:
    """`allocatable` is capacity less kube-reserved, system-reserved and the eviction threshold."""

    name: str
    requirements: Requirements
    capacity: Resources
    allocatable: Resources
    offerings: tuple[Offering, ...]


#: The types that a NodePool can use, by name.
Catalogue = tuple[InstanceType, ...]
