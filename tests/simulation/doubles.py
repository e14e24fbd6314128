"""Other ideas of consolidation, as stand-ins for the controller's own: a plain threshold, and the reference's order.

`Threshold` is what Cluster Autoscaler does: nodes that are asked for less than half of what they have, for ten minutes,
go if their pods fit elsewhere; empty ones together, others one at a time, and nothing comes in their place. `Greedy`
is the reference's: prefixes of candidates by savings ratio, found by bisection, that at most one cheaper node replaces;
then single candidates; one command at a time, and 15 s between its being found and its being checked again. Both use
our scheduler, our candidates and our commands, so that nothing differs but what is chosen. Source: disruption reference
§1.1, §1.7, §3.2, §3.7, §3.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import reduce
from operator import add, and_
from typing import Final

from kerf.disruption.candidates.budgets import Ledger
from kerf.disruption.candidates.candidates import Candidate, candidate
from kerf.disruption.candidates.costs import empty
from kerf.disruption.candidates.pacing import settled
from kerf.disruption.command import command_id
from kerf.disruption.commands import start, start_together
from kerf.disruption.consolidation.moves import replacements
from kerf.disruption.consolidation.proposals import consolidatable
from kerf.disruption.methods.methods import METHODS, Method, by_savings
from kerf.disruption.simulation import Manner, Solve, simulate
from kerf.disruption.view import View
from kerf.model.kubernetes.pods import requests
from kerf.model.plan import NOTHING, Plan, joined
from kerf.scheduling.answers.nodeclaims import to_claim
from kerf.scheduling.answers.solution import NewNode
from kerf.scheduling.offerings import prices
from kerf_api.v1.budgets import EMPTY, UNDERUTILIZED

#: Equal for as long as nothing changes in the world.
News = Callable[[], object]
EVERY: Final = timedelta(seconds=10)
#: Who has found nothing looks once more after this long though nothing has changed.
AGAIN: Final = timedelta(minutes=5)


def threshold(news: News) -> tuple[Method, ...]:
    """The methods of a controller that consolidates like that."""
    double = Threshold(news)
    kept = tuple(method for method in METHODS if method.name not in ("emptiness", "consolidation"))
    return (*kept, Method("threshold", double))


def greedy(news: News) -> tuple[Method, ...]:
    """The same with the reference's order; emptiness is as ours, which is the reference's."""
    double = Greedy(news)
    kept = tuple(method for method in METHODS if method.name != "consolidation")
    return (*kept, Method("greedy", double))


class _Pace:
    """A pass every ten seconds; what found nothing is looked for again after a while, and then no more before there are
    news."""

    def __init__(self) -> None:
        self._due: datetime | None = None
        self._in_vain: tuple[object, datetime] | None = None
        self._tired = False

    def waits(self, now: datetime, news: object) -> Plan | None:
        """When the next pass is to be, if not now."""
        if self._in_vain is not None and self._in_vain[0] == news:
            again = self._in_vain[1] + AGAIN
            if self._tired or now < again:
                return Plan(next_due=None if self._tired else again)
        elif self._due is not None and now < self._due:
            return Plan(next_due=self._due)
        self._due = now + EVERY
        return None

    def found_nothing(self, now: datetime, news: object) -> Plan:
        self._tired = self._in_vain is not None and self._in_vain[0] == news
        self._in_vain = (news, now)
        return Plan(next_due=None if self._tired else now + AGAIN)


# --- a threshold --------------------------------------------------------------------------------------------------
class Threshold:
    """See the module."""

    SHARE: Final = 0.5
    UNNEEDED: Final = timedelta(minutes=10)
    #: So many empty nodes go together.
    BULK: Final = 10

    def __init__(self, news: News) -> None:
        self._news, self._pace = news, _Pace()
        self._since: dict[str, datetime] = {}

    def __call__(self, view: View, ledger: Ledger, ask: Solve) -> Plan:
        now = view.snapshot.now
        low = [one for one in _nodes(view) if _used(one) < self.SHARE]
        self._since = {one.key: self._since.get(one.key, now) for one in low}
        due = min(
            (since + self.UNNEEDED for since in self._since.values() if since + self.UNNEEDED > now), default=None
        )
        ready = [one for one in low if self._since[one.key] + self.UNNEEDED <= now]
        if not ready or ledger.used:
            return Plan(next_due=due)
        news = (self._news(), tuple(one.key for one in ready))
        plan = self._pace.waits(now, news) or self._begun(view, ready, ask) or self._pace.found_nothing(now, news)
        return plan + Plan(next_due=due)

    def _begun(self, view: View, ready: Sequence[Candidate], ask: Solve) -> Plan | None:
        """Empty nodes, or the one of the others that is used least and whose pods fit elsewhere."""
        bare = [one for one in ready if empty(one.pods)]
        if bare:
            return joined(start(view, one, EMPTY, "it is empty") for one in bare[: self.BULK])
        if view.commands or any(state.deleting for state in view.snapshot.state_nodes.values()):
            return None
        for one in sorted(ready, key=lambda one: (_used(one), one.key)):
            outcome = simulate(view, [one], ask, Manner.FREELY)
            if outcome.blocker is None and not outcome.new_nodes:
                return start(view, one, UNDERUTILIZED, "its pods fit elsewhere")
        return None


def _nodes(view: View) -> list[Candidate]:
    found = [candidate(view, key) for key in sorted(view.snapshot.state_nodes)]
    return [one for one in found if isinstance(one, Candidate)]


def _used(one: Candidate) -> float:
    """The share of what a node has that its pods ask for, of that of which it is largest."""
    room = one.state.allocatable
    return max(sum(requests(pod).get(name, 0) for pod in one.pods) / room[name] for name in ("cpu", "memory"))


# --- the reference's order ----------------------------------------------------------------------------------------
#: Candidates, and the node that is to come for them, if any.
_Choice = tuple[tuple[Candidate, ...], NewNode | None]


class Greedy:
    """See the module."""

    VALIDATION: Final = timedelta(seconds=15)
    MOST: Final = 100

    def __init__(self, news: News) -> None:
        self._news, self._pace = news, _Pace()
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
        waits = self._pace.waits(now, self._news())
        if waits is not None:
            return waits
        self._chosen = self._choose(view, ledger, ask)
        if self._chosen is None:
            return self._pace.found_nothing(now, self._news())
        self._check_at = now + self.VALIDATION
        return Plan(next_due=self._check_at)

    def _choose(self, view: View, ledger: Ledger, ask: Solve) -> _Choice | None:
        order = sorted((one for one in _nodes(view) if _wanted(view, one)), key=by_savings)
        affordable = ledger.affordable(order, UNDERUTILIZED)
        return self._several(view, affordable, ask) or self._single(view, affordable, ask)

    def _several(self, view: View, order: Sequence[Candidate], ask: Solve) -> _Choice | None:
        """The largest prefix of two or more, if feasibility is monotonic."""
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
        """The first alone that can go. These worlds have one NodePool: there is nothing to interleave."""
        found = (_decided(view, [one], ask) for one in order)
        return next((choice for choice in found if choice is not None), None)

    def _checked(self, view: View, ledger: Ledger, ask: Solve, chosen: _Choice) -> Plan:
        """The command, if the world still agrees."""
        before, planned = chosen
        here = {one.key: one for one in _nodes(view) if _wanted(view, one)}
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


def _wanted(view: View, one: Candidate) -> bool:
    return consolidatable(view, one.key) and not empty(one.pods)


def _decided(view: View, candidates: Sequence[Candidate], ask: Solve) -> _Choice | None:
    """These candidates, if they can go for at most one node that is surely cheaper."""
    found = _simulated(view, candidates, ask)
    if found is None or found[1] is None:
        return found
    kept = replacements(view, candidates, (found[1],))
    return (found[0], kept[0]) if isinstance(kept, tuple) else None


def _simulated(view: View, candidates: Sequence[Candidate], ask: Solve) -> _Choice | None:
    """These candidates, if all of their pods have places with at most one new node, of any price."""
    outcome = simulate(view, candidates, ask, Manner.SPARING)
    if outcome.blocker is not None:
        return None
    if not outcome.new_nodes:
        return tuple(candidates), None
    one = _in_one(view, outcome.new_nodes)
    return (tuple(candidates), one) if one is not None else None


def _in_one(view: View, new: Sequence[NewNode]) -> NewNode | None:
    """One node for the pods of all of these. The reference's scheduler fills the largest node before it opens another;
    ours takes what is cheapest together, which may be several."""
    if len(new) == 1:
        return new[0]
    wanted, asked = reduce(and_, (one.requirements for one in new)), reduce(add, (one.requests for one in new))
    costs = {
        name: prices.cheapest(type_.holding(asked), wanted, view.snapshot)
        for name, type_ in view.types_of(view.snapshot.node_pools[new[0].pool]).items()
        if type_.requirements.conflict(wanted) is None
    }
    names = sorted((cost, name) for name, cost in costs.items() if cost is not None)
    if not names:
        return None
    pods = tuple(sorted(key for one in new for key in one.pods))
    types = tuple(name for _, name in names)
    return replace(new[0], requirements=wanted, requests=asked, pods=pods, instance_types=types, price=names[0][0])
