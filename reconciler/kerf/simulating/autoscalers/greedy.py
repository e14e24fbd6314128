"""Karpenter's order of consolidation.

Candidates are sorted by savings ratio. The longest prefix that at most one cheaper node replaces is found by bisection;
without such a prefix a single candidate. There is one command at a time, with 15 s between the choice of the command
and its second check. Emptiness is Kerf's method, which is Karpenter's. Source: disruption reference §1.1, §1.7, §3.2,
§3.7, §3.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import reduce
from operator import add, and_
from typing import Final

from kerf.disruption.asking import Manner, Solve
from kerf.disruption.candidates.budgets import Ledger
from kerf.disruption.candidates.candidates import Candidate
from kerf.disruption.candidates.costs import empty
from kerf.disruption.candidates.pacing import settled
from kerf.disruption.command import command_id
from kerf.disruption.commands import start_together
from kerf.disruption.consolidation.moves import replacements
from kerf.disruption.consolidation.proposals import consolidatable
from kerf.disruption.methods.methods import METHODS, Method, by_savings
from kerf.disruption.propose import interleaved
from kerf.disruption.simulation import simulate
from kerf.disruption.view import View
from kerf.model.plan import NOTHING, Plan
from kerf.scheduling.answers.nodeclaims import to_claim
from kerf.scheduling.answers.solution import NewNode
from kerf.scheduling.offerings import prices
from kerf.simulating.autoscalers.pacing import EVERY, Changes, Pace, candidates
from kerf_api.v1.budgets import UNDERUTILIZED

#: Candidates, and their replacement, if any.
_Choice = tuple[tuple[Candidate, ...], NewNode | None]


def greedy(changes: Changes) -> tuple[Method, ...]:
    """The methods of disruption, with this order instead of Kerf's consolidation."""
    kept = tuple(method for method in METHODS if method.name != "consolidation")
    return (*kept, Method("greedy", Greedy(changes)))


class Greedy:
    """See the module."""

    VALIDATION: Final = timedelta(seconds=15)
    MOST: Final = 100

    def __init__(self, changes: Changes) -> None:
        self._changes, self._pace = changes, Pace()
        self._chosen: _Choice | None = None
        self._check_at: datetime | None = None

    def __call__(self, view: View, ledger: Ledger, ask: Solve) -> Plan:
        now = view.snapshot.now
        if ledger.used or not settled(view):
            return NOTHING
        if self._chosen is not None and self._check_at is not None:
            if now < self._check_at:
                return Plan(next_due=self._check_at)
            chosen, self._chosen = self._chosen, None
            return self._checked(view, ledger, ask, chosen) + Plan(next_due=now + EVERY)
        waits = self._pace.waits(now, self._changes())
        if waits is not None:
            return waits
        self._chosen = self._choose(view, ledger, ask)
        if self._chosen is None:
            return self._pace.found_nothing(now, self._changes())
        self._check_at = now + self.VALIDATION
        return Plan(next_due=self._check_at)

    def _choose(self, view: View, ledger: Ledger, ask: Solve) -> _Choice | None:
        order = sorted((one for one in candidates(view) if _eligible(view, one)), key=by_savings)
        affordable = ledger.affordable(order, UNDERUTILIZED)
        return self._several(view, affordable, ask) or self._single(view, affordable, ask)

    def _several(self, view: View, order: Sequence[Candidate], ask: Solve) -> _Choice | None:
        """The longest prefix of two or more, if feasibility is monotonic."""
        best, low, high = None, 1, min(len(order) - 1, self.MOST)
        while low <= high:
            middle = (low + high) // 2
            found = _decided(view, order[: middle + 1], ask)
            if found is not None:
                best, low = found, middle + 1
            else:
                high = middle - 1
        return best

    def _single(self, view: View, order: Sequence[Candidate], ask: Solve) -> _Choice | None:
        """The first candidate that can be removed alone; the NodePools take turns."""
        found = (_decided(view, [one], ask) for one in interleaved(order))
        return next((choice for choice in found if choice is not None), None)

    def _checked(self, view: View, ledger: Ledger, ask: Solve, chosen: _Choice) -> Plan:
        """The command, if the choice still holds."""
        before, planned = chosen
        here = {one.key: one for one in candidates(view) if _eligible(view, one)}
        going = [here[one.key] for one in before if one.key in here]
        if len(going) < len(before) or ledger.affordable(going, UNDERUTILIZED) != going:
            return NOTHING
        again = _simulated(view, going, ask)
        if again is None or (again[1] is None) != (planned is None):
            return NOTHING
        if planned is not None and not set(planned.instance_types) <= set(again[1].instance_types if again[1] else ()):
            return NOTHING
        salt = command_id(going[0].claim.metadata.uid, UNDERUTILIZED, view.snapshot.now)
        claims = [to_claim(view.snapshot, planned, salt=salt)] if planned is not None else []
        for one in going:
            ledger.take(one.pool.name, one.key)
        return start_together(view, going, UNDERUTILIZED, "greedy", claims)


def _eligible(view: View, one: Candidate) -> bool:
    return consolidatable(view, one.key) and not empty(one.pods)


def _decided(view: View, going: Sequence[Candidate], ask: Solve) -> _Choice | None:
    """These candidates, if at most one node that costs less replaces them."""
    found = _simulated(view, going, ask)
    if found is None or found[1] is None:
        return found
    kept = replacements(view, going, (found[1],))
    return (found[0], kept[0]) if isinstance(kept, tuple) else None


def _simulated(view: View, going: Sequence[Candidate], ask: Solve) -> _Choice | None:
    """These candidates, if all of their pods have a place with at most one new node, of any price."""
    outcome = simulate(view, going, ask, Manner.SPARING)
    if outcome.blocker is not None:
        return None
    if not outcome.new_nodes:
        return tuple(going), None
    one = _in_one(view, outcome.new_nodes)
    return (tuple(going), one) if one is not None else None


def _in_one(view: View, new: Sequence[NewNode]) -> NewNode | None:
    """One node for the pods of all of these.

    Karpenter's scheduler fills one node before it adds another. Kerf's takes the nodes with the lowest total price.
    Pods that may have to be apart stay apart.
    """
    if len(new) == 1:
        return new[0]
    if len({one.pool for one in new}) > 1 or any(_constrained(view, key) for one in new for key in one.pods):
        return None
    requirements, requested = (
        reduce(and_, (one.requirements for one in new)),
        reduce(add, (one.requests for one in new)),
    )
    costs = {
        name: prices.cheapest(type_.holding(requested), requirements, view.snapshot)
        for name, type_ in view.types_of(view.snapshot.node_pools[new[0].pool]).items()
        if type_.requirements.conflict(requirements) is None
    }
    names = sorted((cost, name) for name, cost in costs.items() if cost is not None)
    if not names:
        return None
    pods = tuple(sorted(key for one in new for key in one.pods))
    types = tuple(name for _, name in names)
    return replace(
        new[0], requirements=requirements, requests=requested, pods=pods, instance_types=types, price=names[0][0]
    )


def _constrained(view: View, key: str) -> bool:
    """Whether another pod may have to be on another node than this one."""
    spec = view.snapshot.pods[key].spec
    return spec.affinity is not None or bool(spec.topology_spread_constraints)
