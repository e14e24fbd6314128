"""Which instance types and offerings a fleet call may name: the filters of a launch, in their order.

A candidate is a type with those of its offerings that can be bought now and suit the claim. Source: AWS provider
reference §2.1 and §2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kerf.model.aws.instance_type import ACCELERATORS, Catalogue, InstanceType, Offering, OfferingKey, suiting
from kerf_api import labels
from kerf_api.requirements import Requirements
from kerf_api.resources import Resources

#: Labels with the number of GPUs and of other accelerators; types without any have no value.
_ACCELERATORS = (f"{labels.AWS_GROUP}/instance-gpu-count", f"{labels.AWS_GROUP}/instance-accelerator-count")


@dataclass(frozen=True, slots=True)
class Candidate:
    """`offerings` is never empty."""

    type: InstanceType
    offerings: tuple[Offering, ...]

    @property
    def price(self) -> tuple[int, int]:
        """Of its cheapest offering: the price, and the price on demand of what is reserved."""
        return min(_order(offering) for offering in self.offerings)


Candidates = Sequence[Candidate]
#: Kinds of reservations: the type, and whether EC2 may take the machine back. At one price the first is taken.
_BLOCK = ("capacity-block", False)
_KINDS = (("default", False), _BLOCK, ("default", True))


def available(
    catalogue: Catalogue,
    wanted: Requirements,
    requests: Resources,
    out_of_stock: Mapping[OfferingKey, datetime],
    now: datetime,
) -> list[Candidate]:
    """Types that meet the requirements, hold the requests, and have an offering that does and can be bought now."""
    stocked_out = {key for key, until in out_of_stock.items() if until > now}
    named, suits = wanted.allowed(labels.INSTANCE_TYPE), suiting(wanted)
    found: list[Candidate] = []
    for type_ in catalogue:
        if not named.has(type_.name):
            continue  # the usual reason, and the quickest to see
        if type_.requirements.conflict(wanted) is None:
            roomy = type_.holding(requests).offerings
            offerings = tuple(o for o in roomy if o.available and stocked_out.isdisjoint(o.keys) and suits(o))
            if offerings:
                found.append(Candidate(type_, offerings))
    return found


def reserved_first(candidates: Candidates) -> Candidates:
    """Only what is reserved, where something is: of one kind, for one call can ask for one only.

    Of several reservations of a type in one zone that with most machines left; of capacity blocks a single one.
    """
    held = [o for c in candidates for o in c.offerings if _kind(o) in _KINDS]
    if not held:
        return candidates
    kind = _kind(min(held, key=lambda o: (*_order(o), _KINDS.index(_kind(o)))))
    found = _filtered(candidates, lambda o: _kind(o) == kind)
    if kind == _BLOCK:
        first = min(((c, o) for c in found for o in c.offerings), key=lambda pair: (_order(pair[1]), pair[1].key))
        return [Candidate(first[0].type, (first[1],))]
    return [Candidate(c.type, _roomiest(c.offerings)) for c in found]


def _order(offering: Offering) -> tuple[int, int]:
    return offering.price, offering.on_demand


def _kind(offering: Offering) -> tuple[str, bool] | None:
    held = offering.reservation
    return None if held is None else (held.type, held.interruptible)


def _roomiest(offerings: Iterable[Offering]) -> tuple[Offering, ...]:
    """One for each zone; all are reserved."""
    found: dict[str, tuple[int, str, Offering]] = {}
    for offering in offerings:
        if offering.reservation is not None:
            rank = (-offering.reservation.left, offering.reservation.id, offering)
            found[offering.zone] = min(found.get(offering.zone, rank), rank, key=lambda known: known[:2])
    return tuple(found[zone][2] for zone in sorted(found))


def without_exotic(candidates: Candidates) -> Candidates:
    """Without bare metal and accelerators, unless that would leave nothing: who wants one names it."""
    plain = [c for c in candidates if not exotic(c.type)]
    return plain or candidates


def exotic(type_: InstanceType) -> bool:
    """Whether a type is bare metal or has an accelerator: by its resources, or by its labels."""
    if "metal" in type_.name.partition(".")[2] or any(type_.capacity[name] for name in ACCELERATORS):
        return True
    return any(key in type_.requirements and type_.requirements[key].values for key in _ACCELERATORS)


def without_dear_spot(candidates: Candidates) -> Candidates:
    """Without spot offerings that cost more than the cheapest on-demand one, where both are to be had."""
    prices = {
        kind: [o.price for c in candidates for o in c.offerings if o.capacity_type == kind]
        for kind in (labels.ON_DEMAND, labels.SPOT)
    }
    if not all(prices.values()):
        return candidates
    ceiling = min(prices[labels.ON_DEMAND])
    return _filtered(candidates, lambda o: o.capacity_type != labels.SPOT or o.price <= ceiling)


def of_capacity_type(candidates: Candidates, capacity_type: str) -> Candidates:
    """With only the offerings of one capacity type."""
    return _filtered(candidates, lambda o: o.capacity_type == capacity_type)


def cheapest(candidates: Candidates, limit: int) -> Candidates:
    """The first so many by price; ties by name."""
    return sorted(candidates, key=lambda c: (c.price, c.type.name))[:limit]


def missing_min_values(candidates: Candidates, wanted: Requirements) -> str | None:
    """The first key, by name, of which the types have fewer distinct values than asked for; None when none."""
    for key in sorted(wanted):
        least = wanted[key].min_values
        if least is not None and len(_values(candidates, key)) < least:
            return key
    return None


def _values(candidates: Candidates, key: str) -> set[str]:
    return {value for c in candidates if key in c.type.requirements for value in c.type.requirements[key].values}


def has_min_values(wanted: Requirements) -> bool:
    return any(row.min_values is not None for row in wanted.values())


def _filtered(candidates: Candidates, keep: Callable[[Offering], bool]) -> list[Candidate]:
    rest = ((c, tuple(o for o in c.offerings if keep(o))) for c in candidates)
    return [Candidate(c.type, offerings) for c, offerings in rest if offerings]
