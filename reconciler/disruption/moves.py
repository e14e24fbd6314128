"""Single-node consolidation: whether a node can go, either because its pods fit elsewhere or for a cheaper node.

A node is not deleted when the kube-scheduler, which knows nothing of the plan, may place some of its pods so that the
others need as dear a node again: that would go on for ever.
A replacement must be strictly cheaper at the worst price that its launch may end at. Spot nodes are replaced by spot
nodes only where the gate is open and enough cheaper types remain, so that the new one is not replaced again at once.
Source: disruption reference §3.2 to §3.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from api import labels
from api.requirements import IN, Requirements, requirement
from reconciler.disruption.candidates import Blocker, Candidate
from reconciler.disruption.simulation import Manner, Solve, simulate
from reconciler.disruption.view import View
from reconciler.model.instance_type import InstanceType
from reconciler.model.snapshot import Snapshot
from reconciler.scheduling import prices
from reconciler.scheduling.solution import NewNode

DELETE, REPLACE = "delete", "replace"
SPOT_TO_SPOT_TYPES: Final = 15
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Move:
    """A candidate goes; `new` is what comes for it, if anything. `saving` in millionths of a dollar per hour."""

    candidate: Candidate
    new: NewNode | None
    saving: int

    @property
    def kind(self) -> str:
        return DELETE if self.new is None else REPLACE


def judge(view: View, candidate: Candidate, ask: Solve) -> Move | Blocker:
    """The move that this candidate allows, or why there is none."""
    outcome = simulate(view, [candidate], ask, Manner.SPARING)
    if outcome.blocker is not None:
        return outcome.blocker
    if not outcome.new_nodes:
        return _regret(view, candidate, ask) or Move(candidate, None, candidate.price)
    if len(outcome.new_nodes) > 1:
        return Blocker("TooManyNodes", f"its pods would need {len(outcome.new_nodes)} new nodes")
    new = _cheaper(view, candidate, outcome.new_nodes[0])
    return new if isinstance(new, Blocker) else Move(candidate, new, candidate.price - new.price)


def _regret(view: View, candidate: Candidate, ask: Solve) -> Blocker | None:
    """Why its deletion may save nothing although its pods fit elsewhere: nobody tells the kube-scheduler how.

    It may leave pods over, for which nodes are bought; only if these are cheaper does it come to an end some time.
    """
    for manner in (Manner.SCATTERED, Manner.SCATTERED_LARGE_FIRST):
        outcome = simulate(view, [candidate], ask, manner)
        if outcome.blocker is not None:
            return outcome.blocker
        if outcome.new_nodes and sum(new.price for new in outcome.new_nodes) >= candidate.price:
            left = ", ".join(sorted(key for new in outcome.new_nodes for key in new.pods)[:_SHOWN])
            return Blocker("WouldComeBack", f"there may be no room left for {left}, whose new node would be no cheaper")
    return None


def _cheaper(view: View, candidate: Candidate, new: NewNode) -> NewNode | Blocker:
    """The new node with only the types that are surely cheaper than the candidate."""
    spot_to_spot = labels.SPOT in new.capacity_types and _capacity_type(candidate) == labels.SPOT
    if spot_to_spot and not view.snapshot.settings.gates.spot_to_spot_consolidation:
        return Blocker("SpotToSpotDisabled", "replacing spot by spot needs the gate SpotToSpotConsolidation")
    if labels.SPOT in new.capacity_types and labels.RESERVED not in new.capacity_types:
        new = _pinned_to_spot(new)
    known = view.types_of(view.snapshot.node_pools[new.pool])
    types = {name: known[name].holding(new.requests) for name in new.instance_types if name in known}
    kept = [
        name for name in new.instance_types if _beats(view.snapshot, types.get(name), new.requirements, candidate.price)
    ]
    if not kept:
        return Blocker("NotCheaper", "no replacement would be cheaper")
    if spot_to_spot:
        if len(kept) < SPOT_TO_SPOT_TYPES:
            return Blocker("TooFewSpotTypes", f"only {len(kept)} cheaper spot types, not {SPOT_TO_SPOT_TYPES}")
        kept = _enough(kept, types, new.requirements)
    missing = _shortfall(kept, types, new.requirements)
    if missing is not None:
        return Blocker("MinValues", f"the cheaper types do not satisfy minValues of {missing}")
    first = prices.cheapest(types[kept[0]], new.requirements, view.snapshot)
    return replace(new, instance_types=tuple(kept), price=first if first is not None else new.price)


def _capacity_type(candidate: Candidate) -> str:
    return candidate.state.labels.get(labels.CAPACITY_TYPE, "")


def _pinned_to_spot(new: NewNode) -> NewNode:
    """If spot then cannot be had, the launch fails and the old node stays, instead of a dearer one being bought."""
    pinned = new.requirements & (requirement(labels.CAPACITY_TYPE, IN, (labels.SPOT,)),)
    return replace(new, capacity_types=(labels.SPOT,), requirements=pinned)


def _beats(snapshot: Snapshot, found: InstanceType | None, requirements: Requirements, price: int) -> bool:
    worst = prices.worst_launch_price(found, requirements, snapshot) if found is not None else None
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
