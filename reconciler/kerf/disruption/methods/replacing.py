"""Replacements of drifted nodes: one plan starts several, each with a command of its own.

The first is simulated as it is. For others the plan knows where all other pods go, those of the nodes that it has
started included: these keep their places, and the pods of one more node are placed beside them. So a roll-out does not
take a reconcile for each node, and what one more costs does not depend on how many are on their way. Only one is
started where more than free resources decides: where limits of a NodePool or a reservation count its successors, where
the NodePool makes one node at a time (all successors of one node are one attempt then), for pods with spreads,
inter-pod terms or device claims, and while a NodePool has no canary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Final

from kerf.disruption.asking import Manner, Question, Scheduler
from kerf.disruption.candidates import canary
from kerf.disruption.candidates.budgets import Ledger
from kerf.disruption.candidates.candidates import Blocker, Candidate, refused
from kerf.disruption.candidates.pacing import soon
from kerf.disruption.command import command_id
from kerf.disruption.commands import start
from kerf.disruption.consolidation.search import without
from kerf.disruption.on_nodes import tried
from kerf.disruption.replacing import replacements
from kerf.disruption.share import NEXT_TIME, Share
from kerf.disruption.simulation import closed, leavers, limited, mind_others, on_the_move, simulate
from kerf.disruption.view import View
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import NOTHING, Plan, joined
from kerf.scheduling.answers.nodeclaims import to_claim
from kerf.scheduling.answers.solution import NewNode, Solution
from kerf.scheduling.facts.joining import NOT_INITIALIZED, NOT_REGISTERED, limits_of
from kerf.scheduling.nodes.supposed import planned_key
from kerf.scheduling.work import WORK_BUDGET
from kerf_api.v1.budgets import DRIFTED

#: So many are simulated beside the first in one plan, and fewer where one takes long: about a fifth of a second in all.
_BESIDE: Final = 20
_NODES: Final = 20_000
#: So many are simulated until one has a place for its pods, and more, up to the most, while these took few steps: some
#: tenths of a second.
_PROBES: Final = 2
_PROBED_STEPS: Final = 10_000
_MOST_PROBES: Final = 100


def replaced(view: View, ledger: Ledger, order: Sequence[Candidate], share: Share) -> list[Plan]:
    """Start the first of the order whose pods have a place, and others beside it; those before it are refused.

    Where many have none, so many are simulated as little work allows, and the next pass begins with the others. It does
    so too after a bug whose work was not counted.
    """
    plans, wanted, uncounted = list[Plan](), {found.key for found in order}, False
    late = share.first(order, [{found.key} for found in order])
    for number, found in enumerate(late):
        if number >= _PROBES and (share.used >= _PROBED_STEPS or number >= _MOST_PROBES or uncounted):
            share.leave(wanted)
            return plans
        if not share.begins((found.key,), wanted):
            return [*plans, refused(found.state, NEXT_TIME, soon(view))]
        before, outcome = share.used, simulate(view, [found], share, Manner.FREELY)
        uncounted |= outcome.failed is not None and share.used == before
        blocker = outcome.blocker or _too_many(view, outcome.new_nodes)
        if blocker is not None:
            plans.append(refused(found.state, blocker, soon(view)))
            continue
        plans.append(_started(view, ledger, found, outcome.new_nodes))
        tried_already = {one.key for one in late[: number + 1]}
        rest = [one for one in order if one.key not in tried_already]
        others = _beside(view, ledger, found, outcome.new_nodes, rest, share)
        return [*plans, tried(view.snapshot, "disruption/drift", partial(joined, others))]
    return plans


def _too_many(view: View, new: Iterable[NewNode]) -> Blocker | None:
    """That a NodePool which may make one node now would make several beside a command. Without another command they
    are the one attempt: less would never do for the pods of the node."""
    limits = limits_of(view.turn)
    counts = Counter(limit for node in new if (limit := limits.of(node)) is not None)
    several = [limit for limit, number in counts.items() if number > 1]
    busy = _under_command(view) if several else frozenset()
    limit = next((limit for limit in sorted(several, key=lambda one: one.pool) if limit.pool in busy), None)
    if limit is None:
        return None
    until = "registers" if limit.joins_fail else "is initialized"
    number, name = counts[limit], limit.pool
    text = f"NodePool {name} launches one node at a time until one {until}; {number} wait for its other commands"
    return Blocker(NOT_REGISTERED if limit.joins_fail else NOT_INITIALIZED, text, quiet=True)


def _under_command(view: View) -> Set[str]:
    """The NodePools of nodes that commands replace, and of their successors."""
    claims = view.snapshot.node_claims
    old = {claims[name].pool_name for name in view.commands}
    return old | {claim.pool_name for command in view.commands.values() for claim in replacements(view, command)}


def _started(view: View, ledger: Ledger, found: Candidate, new: Iterable[NewNode]) -> Plan:
    salt = command_id(found.claim.metadata.uid, DRIFTED, view.snapshot.now)
    claims = [to_claim(view.snapshot, one, salt=salt) for one in new]
    ledger.take(found.pool.name, found.key)
    return start(view, found, DRIFTED, drift_text(found), claims)


def drift_text(found: Candidate) -> str:
    condition = found.claim.condition("Drifted")
    return condition.text if condition is not None else ""


# --- beside the first -------------------------------------------------------------------------------------------
def _beside(
    view: View, ledger: Ledger, first: Candidate, new: Sequence[NewNode], rest: Iterable[Candidate], share: Share
) -> Iterator[Plan]:
    """Start those of the rest that can go beside the first; the others wait, and are not refused for it."""
    places = _Places.of(without(view, [first]), new, share)
    left = min(_BESIDE, max(1, _NODES // len(view.snapshot.state_nodes)))
    for one in rest:
        if places is None or not left or share.used_up:
            return
        if ledger.remaining(one.pool.name, DRIFTED) and not canary.chooses(view, one.pool):
            left -= 1
            share.begins((one.key,))
            yield tried(view.snapshot, f"node/{one.state.name}", partial(_one_more, view, ledger, places, one))


def _one_more(view: View, ledger: Ledger, places: _Places, one: Candidate) -> Plan:
    new = places.successors(one)
    return NOTHING if new is None else _started(view, ledger, one, new)


class _Places:
    """The free resources once all pods are placed but those of nodes that stay; made, filled and thrown away within
    a plan."""

    def __init__(self, view: View, share: Share, scheduler: Scheduler) -> None:
        self._view, self._share, self._scheduler = view, share, scheduler
        #: The nodes that take pods, and those that have not joined, by key.
        self._taken, self._late = set[str](), {k for k, s in view.snapshot.state_nodes.items() if not s.initialized}
        self._planned = 0

    @classmethod
    def of(cls, view: View, new: Sequence[NewNode], share: Share) -> _Places | None:
        """With the successors that the plan has started; None where more than free resources decides."""
        _, leaving, virtual = on_the_move(view, ())
        if share.scheduler is None or mind_others(view, (*virtual.values(), *leaving.values())) or limited(view, new):
            return None
        others = {**virtual, **view.snapshot.pods.pending, **leaving}
        found = cls(view, share, share.scheduler)
        answer = share([others[key] for key in sorted(others)], closed(view, ()), Manner.FREELY, new)
        # Pods for which no work is left may have a place after all.
        if any(why.code == WORK_BUDGET for why in answer.unplaced.values()):
            return None
        # A pending pod that gets no place takes none from others, whatever it asks for.
        if mind_others(view, (others[key] for key in answer.order)):
            return None
        found._fill(new, others, answer.placed)
        return found

    def successors(self, one: Candidate) -> Sequence[NewNode] | None:
        """The new nodes that the pods of one more node need, which is started with them; None if it has to wait.

        It waits while other pods have their place there, and where its pods would save by a place on a node that has
        not joined.
        """
        moving = leavers(self._view, (one.node.name,))
        if one.key in self._taken or mind_others(self._view, moving.values()):
            return None
        exclude = closed(self._view, (one,))
        found = self._placed(moving, exclude)
        if not self._late.isdisjoint(found.placed.values()):
            alone = self._placed(moving, exclude | self._late)
            found = alone if alone.price <= found.price else found
        if found.unplaced or limited(self._view, found.new_nodes) or not self._late.isdisjoint(found.placed.values()):
            return None
        self._view = without(self._view, (one,))
        new = {pod: planned_key(key) for key, one in enumerate(found.new_nodes, self._planned) for pod in one.pods}
        self._fill(found.new_nodes, moving, {**found.placed, **new})
        return found.new_nodes

    def _placed(self, pods: Mapping[str, Pod], exclude: frozenset[str]) -> Solution:
        return self._share.by(self._scheduler, Question([pods[key] for key in sorted(pods)], exclude, Manner.FREELY))

    def _fill(self, new: Sequence[NewNode], pods: Mapping[str, Pod], placed: Mapping[str, str]) -> None:
        """Planned nodes come, and pods by key to the places of keys."""
        arriving: dict[str, list[Pod]] = {}
        for pod, key in placed.items():
            arriving.setdefault(key, []).append(pods[pod])
        self._scheduler = self._scheduler.filled(new, self._planned, arriving)
        self._late |= {planned_key(self._planned + number) for number in range(len(new))}
        self._taken |= arriving.keys()
        self._planned += len(new)
