"""Which nodes can be removed together, in few simulations: whole sets are removed at once, and parted only when they
fail.

A set whose pods all fit on the nodes that stay may be removed; what each of its nodes saves is sure, in whatever order
they are removed. When some pods would need a new node the set is halved, down to one node. Of what is left then, the
set is looked for that is replaced by fewer or cheaper nodes at the best saving per disruption.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Final

from kerf.disruption.asking import NO_POOLS, Manner, Question, Solve
from kerf.disruption.candidates.budgets import Ledger
from kerf.disruption.candidates.candidates import Blocker, Candidate
from kerf.disruption.command import Command
from kerf.disruption.consolidation.balanced import BALANCED, Policy
from kerf.disruption.consolidation.moves import Move, judge, loss
from kerf.disruption.consolidation.worth import price_of, shortfall
from kerf.disruption.share import turn_of, within_steps
from kerf.disruption.simulation import simulate
from kerf.disruption.view import View
from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.pods import requests
from kerf.scheduling.answers.solution import NewNode, Solution
from kerf_api import labels
from kerf_api.resources import total
from kerf_api.v1.budgets import UNDERUTILIZED

#: The work of one search, in pods that are placed: some seconds. A simulation as such is as much as so many pods; to
#: place them as the kube-scheduler does takes longer by this factor.
_LEAST_WORK, _WORK_A_POD, _EACH, _SCATTERED = 200_000, 6, 200, 5
#: The steps of one search, and of one simulation, in turns of a method that decides: 10 seconds, and 1 second.
_TURNS: Final = 40
_TURNS_AT_ONCE: Final = 4
#: Of so many nodes that can be removed it does not matter whether there is one more.
_GRAIN: Final = 50
#: So many nodes in a row that cannot be removed end the search for more.
_GIVE_UP: Final = 6
#: How many nodes a replacement may remove at once, of those tried.
_SIZES: Final = (2, 3, 4, 6, 8, 12, 16, 24, 32)
#: What counts as wasted on a node is what is free of that of which least is.
_WASTED: Final = ("cpu", "memory")
#: Several nodes are replaced only when that saves at least so much of what they cost.
_LEAST_SHARE: Final = Fraction(1, 12)


class Bounded:
    """A scheduler for so much work. It is counted in pods that are placed, and so the same for the same cluster.

    Pods with very many different constraints take longer, so the steps of the real scheduler are bounded, too: those of
    one simulation, and those of all.
    """

    def __init__(self, ask: Solve, pods: int) -> None:
        self._ask, self._left = ask, max(_LEAST_WORK, _WORK_A_POD * pods)
        self._steps = _TURNS * turn_of(pods)

    def __call__(
        self,
        pods: Sequence[Pod],
        exclude: frozenset[str],
        manner: Manner,
        beside: Sequence[NewNode] = (),
        shut: frozenset[str] = NO_POOLS,
        /,
    ) -> Solution:
        self._left -= (len(pods) + _EACH) * (1 if manner is Manner.SPARING else _SCATTERED)
        most = _TURNS_AT_ONCE * turn_of(len(pods))
        return within_steps(self._ask, most, self._took, Question(pods, exclude, manner, beside, shut))

    def _took(self, steps: int) -> None:
        self._steps -= steps

    @property
    def exhausted(self) -> bool:
        return self._left <= 0 or self._steps <= 0


def deletable(view: View, order: Sequence[Candidate], ledger: Ledger, ask: Bounded) -> list[Candidate]:
    """Candidates that can all be removed, within budgets, without a node in their place; rather those that come
    first."""
    found = _fitting(view, order, ledger, ask)
    while found and _falls_short(view, found, ask):
        del found[len(found) - max(1, len(found) // 8) :]
    return found


def _falls_short(view: View, found: Sequence[Candidate], ask: Bounded) -> bool:
    """Whether nodes that come for pods left over may cost as much as one of these, or too much of it."""
    lost = loss(view, found, (), ask, min(one.price for one in found))
    return isinstance(lost, Blocker) or shortfall(view, found, 0, lost) is not None


def _fitting(view: View, order: Sequence[Candidate], ledger: Ledger, ask: Bounded) -> list[Candidate]:
    """Those whose pods fit on the others."""
    found: list[Candidate] = []
    rest, size, failed = list(order), max(1, len(order) // 2), 0
    while failed < _GIVE_UP and not ask.exhausted:
        chunk = ledger.affordable(rest, UNDERUTILIZED, found)[:size]
        if not chunk or size < len(found) // _GRAIN:
            break
        outcome = simulate(view, [*found, *chunk], ask, Manner.SPARING)
        if outcome.blocker is None and not outcome.new_nodes:
            found, failed = found + chunk, 0
        elif len(chunk) > 1:
            size = len(chunk) // 2
            continue
        else:
            failed += 1
        tried = {one.key for one in chunk}
        rest = [one for one in rest if one.key not in tried]
    return found


# --- one alone --------------------------------------------------------------------------------------------------
_NOT_WORTH_IT: Final = Blocker("NotWorthIt", f"policy {BALANCED}: it would save too little for what it disrupts")


def single(view: View, one: Candidate, policy: Policy, ask: Solve) -> Move | Blocker:
    """The candidate's move, unless there is none or its pool's policy finds it not worth the disruption."""
    if not policy.approves([one], one.price):
        return _NOT_WORTH_IT
    if (short := shortfall(view, [one], 0)) is not None:
        return short
    move = judge(view, [one], ask)
    return move if isinstance(move, Blocker) or policy.approves([one], move.saving) else _NOT_WORTH_IT


# --- replacing several ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Found:
    move: Move
    worth: Fraction


def replaceable(view: View, order: Sequence[Candidate], policy: Policy, ask: Bounded) -> Move | None:
    """The set of these candidates whose replacement saves most for what it disrupts: the first ones, in the order given
    or in that of what is wasted on them."""
    best: _Found | None = None
    orders = [order] if ask.exhausted else [order, sorted(order, key=_wasted)]
    for size, row in product(_SIZES, orders):
        if size > len(order) or ask.exhausted:
            break
        chosen = row[:size]
        move = judge(view, chosen, ask)
        if isinstance(move, Blocker) or move.sure < _LEAST_SHARE * price_of(chosen):
            continue
        if not policy.approves(chosen, move.sure):
            continue
        worth = Fraction(move.sure, sum(one.cost for one in chosen))
        if best is None or worth > best.worth:
            best = _Found(move, worth)
    return _trimmed(view, best.move, policy, ask) if best is not None else None


def _trimmed(view: View, move: Move, policy: Policy, ask: Solve) -> Move:
    """Without the candidates for which nodes like them would come, if the others by themselves save as much."""
    coming = Counter(new.instance_types[0] for new in move.new)
    rest = []
    for one in move.candidates:
        type_ = one.state.labels.get(labels.INSTANCE_TYPE, "")
        if coming[type_]:
            coming[type_] -= 1
        else:
            rest.append(one)
    if not 0 < len(rest) < len(move.candidates):
        return move
    fewer = judge(view, rest, ask)
    if isinstance(fewer, Blocker) or fewer.sure < move.sure or not policy.approves(rest, fewer.sure):
        return move
    return fewer


def _wasted(one: Candidate) -> tuple[Fraction, str]:
    """The price of what no pod of it asks for, for each unit of disruption; the most first."""
    room = one.state.allocatable
    used = total(requests(pod) for pod in one.movable)
    shares = (Fraction(used[name], room[name]) for name in _WASTED if room[name])
    share = max(shares, default=Fraction(0))
    return -one.price * (1 - share) / one.cost, one.key


def without(view: View, gone: Sequence[Candidate]) -> View:
    """The view in which these candidates are on their way already."""
    going = Command(id="", reason=UNDERUTILIZED, started=view.snapshot.now, created=True)
    return replace(view, commands={**view.commands, **{one.key: going for one in gone}})
