"""Which nodes can go together, in few simulations: whole sets are taken away at once, and parted only when they fail.

A set whose pods all fit on the nodes that stay may go; what each of its nodes saves is sure, in whatever order they go.
When some pods would need a new node, the nodes they come from are tried without the others, or the set is halved. Of
what is left then, the set is looked for that is replaced by fewer or cheaper nodes at the best saving per disruption.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from api.v1.budgets import UNDERUTILIZED
from reconciler.disruption.balanced import BALANCED, Policy
from reconciler.disruption.budgets import Ledger
from reconciler.disruption.candidates import Blocker, Candidate
from reconciler.disruption.command import Command
from reconciler.disruption.moves import Move, judge, price_of, regret
from reconciler.disruption.simulation import Manner, Solve, simulate
from reconciler.disruption.view import View

#: So many nodes in a row that cannot go end the search for more.
_GIVE_UP: Final = 6
#: How many nodes a replacement may take away at once, of those tried.
_SIZES: Final = (2, 3, 4, 6, 8, 12, 16, 24, 32)
#: Several nodes are replaced only when that saves at least so much of what they cost.
_LEAST_SHARE: Final = Fraction(1, 20)


def deletable(view: View, order: Sequence[Candidate], ledger: Ledger, ask: Solve) -> list[Candidate]:
    """Candidates that can all go, within budgets, without a node in their place; rather those that come first."""
    found = _fitting(view, order, ledger, ask)
    while found and isinstance(regret(view, found, ask), Blocker):
        del found[len(found) - max(1, len(found) // 8) :]
    return found


def _fitting(view: View, order: Sequence[Candidate], ledger: Ledger, ask: Solve) -> list[Candidate]:
    """Those whose pods fit on the others."""
    found: list[Candidate] = []
    rest, size, failed = list(order), max(1, len(order) // 2), 0
    while failed < _GIVE_UP:
        chunk = ledger.affordable(rest, UNDERUTILIZED, found)[:size]
        if not chunk:
            break
        outcome = simulate(view, [*found, *chunk], ask, Manner.SPARING)
        if outcome.blocker is None and not outcome.new_nodes:
            found, failed = found + chunk, 0
        elif len(chunk) > 1:
            size = len(chunk) // 2
            continue
        else:
            failed += 1
        rest = [one for one in rest if one not in chunk]
    return found


# --- one alone --------------------------------------------------------------------------------------------------
_NOT_WORTH_IT: Final = Blocker("NotWorthIt", f"policy {BALANCED}: it would save too little for what it disrupts")


def single(view: View, one: Candidate, policy: Policy, ask: Solve) -> Move | Blocker:
    """The candidate's move, unless there is none or its pool's policy finds it not worth the disruption."""
    if not policy.approves([one], one.price):
        return _NOT_WORTH_IT
    move = judge(view, [one], ask)
    return move if isinstance(move, Blocker) or policy.approves([one], move.saving) else _NOT_WORTH_IT


# --- replacing several ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Found:
    move: Move
    worth: Fraction


def replaceable(view: View, order: Sequence[Candidate], policy: Policy, ask: Solve) -> Move | None:
    """The set of these candidates, from the first on, whose replacement saves most for what it disrupts."""
    best: _Found | None = None
    for size in _SIZES:
        if size > len(order):
            break
        chosen = order[:size]
        move = judge(view, chosen, ask)
        if isinstance(move, Blocker) or move.saving < _LEAST_SHARE * price_of(chosen):
            continue
        if not policy.approves(chosen, move.saving):
            continue
        worth = Fraction(move.saving, sum(one.cost for one in chosen))
        if best is None or worth > best.worth:
            best = _Found(move, worth)
    return best.move if best is not None else None


def without(view: View, gone: Sequence[Candidate]) -> View:
    """The view in which these candidates are on their way already."""
    going = Command(id="", reason=UNDERUTILIZED, started=view.snapshot.now, created=True)
    return replace(view, commands={**view.commands, **{one.key: going for one in gone}})
