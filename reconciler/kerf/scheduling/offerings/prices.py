"""Prices of offerings, in millionths of a dollar per hour: of a type that may be launched, of a node that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from kerf.model.aws.instance_type import InstanceType, Offering, suiting
from kerf.model.snapshot import Snapshot
from kerf_api import labels
from kerf_api.requirements import Requirements

#: A launch takes the first of these that its claim allows and that is to be had. Source: scheduling reference §4.4.
_LAUNCH_ORDER = (labels.RESERVED, labels.SPOT, labels.ON_DEMAND)


def compatible(instance_type: InstanceType, requirements: Requirements, snapshot: Snapshot) -> Iterator[Offering]:
    """The offerings that these requirements allow, that are for sale and not out of stock."""
    return _suitable(instance_type, suiting(requirements), snapshot)


def compatible_by_type(
    types: Mapping[str, InstanceType], requirements: Requirements, snapshot: Snapshot
) -> Mapping[str, Sequence[Offering]]:
    """`compatible` for many types."""
    suits = suiting(requirements)
    return {name: list(_suitable(type_, suits, snapshot)) for name, type_ in types.items()}


def _suitable(instance_type: InstanceType, suits: Callable[[Offering], bool], snapshot: Snapshot) -> Iterator[Offering]:
    for offering in instance_type.offerings:
        if offering.available and not snapshot.out_of_stock_now(offering) and suits(offering):
            yield offering


def cheapest(instance_type: InstanceType, requirements: Requirements, snapshot: Snapshot) -> int | None:
    """The lowest price at which the type can be had under the requirements; None when it cannot."""
    return min((o.price for o in compatible(instance_type, requirements, snapshot)), default=None)


def worst_launch_price(instance_type: InstanceType, requirements: Requirements, snapshot: Snapshot) -> int | None:
    """The highest price a launch may end at: within the capacity type that it would take first."""
    return worst_launch(compatible(instance_type, requirements, snapshot))


def worst_launch(offers: Iterable[Offering]) -> int | None:
    """The highest price at which a launch from these offerings of a type may end; None when there are none."""
    worst: dict[str, int] = {}
    for offer in offers:
        worst[offer.capacity_type] = max(offer.price, worst.get(offer.capacity_type, offer.price))
    return next((worst[one] for one in _LAUNCH_ORDER if one in worst), None)


def reserved_price(instance_type: InstanceType, requirements: Requirements, snapshot: Snapshot) -> int | None:
    """The price on demand of a type that a launch takes from a reservation; None when it takes none."""
    offers = compatible(instance_type, requirements, snapshot)
    return max((o.on_demand for o in offers if o.capacity_type == labels.RESERVED), default=None)


def dollars(micro: int) -> str:
    """A price as a person writes it."""
    return f"${micro / 1_000_000:.4f}"


def saves(micro: int) -> str:
    """A saving per hour as a person writes it; among reserved capacity there is none."""
    return f"saves {dollars(micro)} an hour" if micro else "saves no money"


def price_of(node_labels: Mapping[str, str], catalogue: Iterable[InstanceType]) -> int | None:
    """The price of a running node by its labels (type, zone, capacity type), in stock or not; None when unknown."""
    offering = offering_of(node_labels, catalogue)
    return offering.price if offering is not None else None


def offering_of(node_labels: Mapping[str, str], catalogue: Iterable[InstanceType]) -> Offering | None:
    """The first offering that a running node may come from by the same labels; None when there is none."""
    name = node_labels.get(labels.INSTANCE_TYPE)
    zone, capacity_type = node_labels.get(labels.ZONE), node_labels.get(labels.CAPACITY_TYPE)
    for instance_type in catalogue:
        if instance_type.name == name:
            for offering in instance_type.offerings:
                if offering.zone == zone and offering.capacity_type == capacity_type:
                    return offering
    return None
