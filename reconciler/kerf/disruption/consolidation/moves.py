"""Moves of consolidation: whether some nodes can be removed, either because their pods fit elsewhere or for cheaper
nodes.

Nodes are not removed when the kube-scheduler, which knows nothing of the plan, may place some of their pods so that the
others need an equally expensive node again: that would continue for ever.
Replacements must be strictly cheaper at the worst prices that their launches may end at. Spot nodes are replaced by
spot nodes only where the gate is open and, for one alone, enough cheaper types remain, so that the new one is not
replaced again at once. Among reserved capacity, which costs nothing more, the price on demand decides.
Source: disruption reference §3.2 to §3.4, §3.7.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf
from typing import Final

from kerf.disruption.asking import SCATTERED, Manner, Solve
from kerf.disruption.candidates.candidates import Blocker, Candidate
from kerf.disruption.consolidation.worth import most as most_for
from kerf.disruption.consolidation.worth import price_of, shortfall
from kerf.disruption.simulation import not_made, simulate
from kerf.disruption.view import View
from kerf.model.aws.instance_type import InstanceType, Offering
from kerf.scheduling.answers.solution import NewNode
from kerf.scheduling.offerings import prices
from kerf_api import labels
from kerf_api.requirements import IN, Requirements, requirement

DELETE, REPLACE = "delete", "replace"
SPOT_TO_SPOT_TYPES: Final = 15
_SHOWN: Final = 5
#: By type, what is for sale of it.
_Offers = Mapping[str, Sequence[Offering]]


@dataclass(frozen=True, slots=True)
class Move:
    """The candidates are removed; `new` are the nodes that come for them, if any. `saving` in millionths of a dollar
    per hour.

    Of that `sure` is what remains when the kube-scheduler leaves pods over, for which nodes are bought.
    """

    candidates: tuple[Candidate, ...]
    new: tuple[NewNode, ...]
    saving: int
    sure: int

    @property
    def kind(self) -> str:
        return REPLACE if self.new else DELETE


def judge(view: View, candidates: Sequence[Candidate], ask: Solve) -> Move | Blocker:
    """The move that removes these candidates together, or why there is none."""
    outcome = simulate(view, candidates, ask, Manner.SPARING)
    if outcome.blocker is not None:
        return outcome.blocker
    new = replacements(view, candidates, outcome.new_nodes)
    if isinstance(new, Blocker):
        return new
    if (barred := not_made(view, new)) is not None:  # of fewer types than the scheduler's, they may be like a late one
        return barred
    comes = sum(one.price for one in new)
    saving = price_of(candidates) - comes
    lost = loss(view, candidates, new, ask, saving if new else min(one.price for one in candidates))
    if isinstance(lost, Blocker):
        return lost
    return shortfall(view, candidates, comes, lost) or Move(tuple(candidates), new, saving, saving - lost)


def loss(view: View, candidates: Sequence[Candidate], new: Sequence[NewNode], ask: Solve, most: int) -> int | Blocker:
    """What nodes cost for pods that may be left over, for the kube-scheduler does not know the plan.

    Only if that is less than `most` do such moves come to an end some time.
    """
    lost = 0
    for manner in SCATTERED:
        outcome = simulate(view, candidates, ask, manner, new)
        if outcome.blocker is not None:
            return outcome.blocker
        price = sum(one.price for one in outcome.new_nodes)
        if outcome.new_nodes and price >= most:
            left = ", ".join(sorted(key for one in outcome.new_nodes for key in one.pods)[:_SHOWN])
            return Blocker(
                "WouldComeBack", f"there may be no capacity left for {left}, for which a new node would be no cheaper"
            )
        lost = max(lost, price)
    return lost


# --- replacing --------------------------------------------------------------------------------------------------
def replacements(view: View, candidates: Sequence[Candidate], new: Sequence[NewNode]) -> tuple[NewNode, ...] | Blocker:
    """These new nodes, each with only such types that all together surely are as cheap as is asked for."""
    if len(new) > len(candidates):
        return Blocker("TooManyNodes", f"its pods would need {len(new)} new nodes")
    if new and all(one.reserved for one in candidates):
        return _smaller_reservations(view, candidates, new)
    price, below = price_of(candidates), most_for(view, candidates) + 1
    kept = _within(view, candidates, new, below)
    if isinstance(kept, Blocker) and below < price:
        cheaper = _within(view, candidates, new, price)
        if not isinstance(cheaper, Blocker):
            return shortfall(view, candidates, sum(_surely(view, one) for one in cheaper)) or kept
    return kept


def _within(
    view: View, candidates: Sequence[Candidate], new: Sequence[NewNode], below: int
) -> tuple[NewNode, ...] | Blocker:
    """The new nodes with the types by which all together cost less than `below`."""
    planned = sum(one.price for one in new)
    kept = []
    for one in new:
        limit = below if len(new) == 1 else below * one.price // planned if planned else 0
        found = _cheaper(view, candidates, one, limit, alone=len(new) == 1)
        if isinstance(found, Blocker):
            return found
        kept.append(found)
    return tuple(kept)


def _surely(view: View, new: NewNode) -> int:
    """What the new node costs at most, of the type of which that is least."""
    types = view.types_of(view.snapshot.node_pools[new.pool])
    worst = (prices.worst_launch_price(types[n], new.requirements, view.snapshot) for n in new.instance_types)
    return min((price for price in worst if price is not None), default=new.price)


def _cheaper(
    view: View, candidates: Sequence[Candidate], new: NewNode, limit: int, *, alone: bool
) -> NewNode | Blocker:
    """The new node with only the types that surely cost less than the limit. `alone` it comes for all candidates."""
    spot_to_spot = labels.SPOT in new.capacity_types and all(_capacity_type(c) == labels.SPOT for c in candidates)
    if spot_to_spot and not view.snapshot.settings.gates.spot_to_spot_consolidation:
        return Blocker("SpotToSpotDisabled", "replacing spot by spot needs the gate SpotToSpotConsolidation")
    if labels.SPOT in new.capacity_types and labels.RESERVED not in new.capacity_types:
        new = _pinned_to_spot(new)
    known = view.types_of(view.snapshot.node_pools[new.pool])
    types = {name: known[name].holding(new.requests) for name in new.instance_types if name in known}
    cap = _cap_of_same(candidates, new.instance_types) if alone and len(candidates) > 1 else None
    limit = limit if cap is None else min(limit, cap)
    least = SPOT_TO_SPOT_TYPES if spot_to_spot and len(candidates) == 1 else 1
    offers = prices.compatible_by_type(types, new.requirements, view.snapshot)
    for pick, sold in _narrowed(new, offers):
        kept = [name for name in pick.instance_types if _beats(sold.get(name, ()), limit)]
        if len(kept) >= least:
            break
    if not kept:
        return Blocker("NotCheaper", "no replacement would be cheaper")
    if len(kept) < least:
        return Blocker("TooFewSpotTypes", f"only {len(kept)} cheaper spot types, not {least}")
    if least > 1:
        kept = _enough(kept, types, pick.requirements)
    missing = _shortfall(kept, types, pick.requirements)
    if missing is not None:
        return Blocker("MinValues", f"the cheaper types do not satisfy minValues of {missing}")
    first = prices.cheapest(types[kept[0]], pick.requirements, view.snapshot)
    return replace(pick, instance_types=tuple(kept), price=first if first is not None else pick.price)


def _narrowed(new: NewNode, offers: _Offers) -> Iterator[tuple[NewNode, _Offers]]:
    """The new node and its offerings by type; then, for the price of spot differs from zone to zone, without its most
    expensive zones, down to one."""
    yield new, offers
    if labels.SPOT not in new.capacity_types:
        return
    least = dict.fromkeys(new.zones, inf)
    for offer in chain.from_iterable(offers.values()):
        least[offer.zone] = min(offer.price, least.get(offer.zone, inf))
    zones = sorted(new.zones, key=lambda zone: (least[zone], zone))
    for number in range(len(zones) - 1, 0, -1):
        chosen = frozenset(zones[:number])
        sold = {name: [offer for offer in own if offer.zone in chosen] for name, own in offers.items()}
        yield _in_zones(new, chosen), sold


def _in_zones(new: NewNode, zones: Collection[str]) -> NewNode:
    chosen = new.requirements & (requirement(labels.ZONE, IN, zones),)
    return replace(new, zones=tuple(sorted(zones)), requirements=chosen)


def _capacity_type(candidate: Candidate) -> str:
    return candidate.state.labels.get(labels.CAPACITY_TYPE, "")


def _cap_of_same(candidates: Sequence[Candidate], offered: Collection[str]) -> int | None:
    """The least that a candidate costs whose type is among those offered: rather than one like it, it had stayed."""
    same = [one.price for one in candidates if one.state.labels.get(labels.INSTANCE_TYPE, "") in offered]
    return min(same, default=None)


def _pinned_to_spot(new: NewNode) -> NewNode:
    """If spot then cannot be had, the launch fails and the old node stays, instead of a launch that costs more."""
    pinned = new.requirements & (requirement(labels.CAPACITY_TYPE, IN, (labels.SPOT,)),)
    return replace(new, capacity_types=(labels.SPOT,), requirements=pinned)


def _beats(offers: Iterable[Offering], price: int) -> bool:
    worst = prices.worst_launch(offers)
    return worst is not None and worst < price


def _enough(kept: list[str], types: Mapping[str, InstanceType], requirements: Requirements) -> list[str]:
    """The cheapest 15, or as many as minValues needs."""
    count = SPOT_TO_SPOT_TYPES
    while count < len(kept) and _shortfall(kept[:count], types, requirements) is not None:
        count += 1
    return kept[:count]


def _shortfall(kept: list[str], types: Mapping[str, InstanceType], requirements: Requirements) -> str | None:
    """The first key (by name) of which these types have fewer values than minValues asks."""
    for key in sorted(requirements):
        row = requirements[key]
        if row.min_values is None:
            continue
        offered = {value for name in kept for value in types[name].requirements.allowed(key).values if row.has(value)}
        if len(offered) < row.min_values:
            return key
    return None


# --- reserved capacity ------------------------------------------------------------------------------------------
def _smaller_reservations(
    view: View, candidates: Sequence[Candidate], new: Sequence[NewNode]
) -> tuple[NewNode, ...] | Blocker:
    """The new nodes with the types whose prices on demand, all together, are surely less than those of the candidates.

    All candidates are on reserved capacity, which costs nothing more: the move saves no money, and leaves the larger
    reservations to pods that need them. A new node that could come up otherwise costs more than all of them.
    """
    known = [_reserved(view, one) for one in new]
    planned = sum(min(found.values(), default=0) for found in known)
    below = sum(one.reserved for one in candidates)
    kept = []
    for one, found in zip(new, known, strict=True):
        limit = below if len(new) == 1 else below * min(found.values(), default=0) // planned if planned else 0
        if len(candidates) > 1 and len(new) == 1:  # rather than one like it, a candidate had stayed
            same = [c.reserved for c in candidates if c.state.labels.get(labels.INSTANCE_TYPE, "") in found]
            limit = min([limit, *same])
        names = sorted((name for name, price in found.items() if price < limit), key=lambda name: (found[name], name))
        if not names:
            return Blocker("NotCheaper", "no replacement would be a smaller reservation")
        few = _shortfall(names, view.types_of(view.snapshot.node_pools[one.pool]), one.requirements)
        if few is not None:
            return Blocker("MinValues", f"the smaller reservations do not satisfy minValues of {few}")
        kept.append(replace(one, instance_types=tuple(names)))
    return tuple(kept)


def _reserved(view: View, new: NewNode) -> dict[str, int]:
    """The prices on demand of the types that the new node has from reservations, by name; none if it may be bought."""
    if set(new.capacity_types) != {labels.RESERVED}:
        return {}
    types = view.types_of(view.snapshot.node_pools[new.pool])
    held = {name: types[name].holding(new.requests) for name in new.instance_types if name in types}
    found = {name: prices.reserved_price(one, new.requirements, view.snapshot) for name, one in held.items()}
    return {name: price for name, price in found.items() if price is not None}
