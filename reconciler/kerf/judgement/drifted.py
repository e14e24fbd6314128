"""The drifted nodes of a NodePool that wait, by what each waits for: a blocker, a place for its pods, or a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Final

from kerf.disruption.asking import Manner, Scheduler, Solve
from kerf.disruption.candidates import canary
from kerf.disruption.candidates.candidates import Blocker, known_candidate, unblocked
from kerf.disruption.candidates.pacing import next_try, pool_blocker
from kerf.disruption.share import Share
from kerf.disruption.simulation import simulate
from kerf.disruption.view import View
from kerf.judgement.allowances import held
from kerf.judgement.values import Fact, Hold
from kerf.model.boundaries import broken
from kerf_api import labels
from kerf_api.texts import counted, shortened
from kerf_api.v1.budgets import DRIFTED
from kerf_api.v1.nodepool import NodePool

_MOST_NAMES: Final = 3
_MOST_GROUPS: Final = 10
#: A place for the pods of so many nodes is looked for: each takes as long as `kerf why node`.
_SIMULATED: Final = 3


@dataclass(slots=True)
class _Group:
    """Nodes that wait for the same thing, by name, with the texts of their blockers."""

    nodes: list[str] = field(default_factory=list)
    texts: dict[str, None] = field(default_factory=dict)

    def __str__(self) -> str:
        text = next(iter(self.texts))
        alike = ", and others alike" if len(self.texts) > 1 else ""
        are = "is" if len(self.nodes) == 1 else "are"
        return f"{counted(len(self.nodes), 'drifted node')} {are} blocked: {text}{alike} ({_names(self.nodes)})"


def drifted(view: View, pool: NodePool, ask: Solve | None = None) -> Iterator[Fact]:
    """Return a line for each blocker, that of most nodes first, then those that wait for their turn."""
    try:
        yield from map(Fact, _lines(view, pool, ask or Scheduler(view.snapshot, view.turn)))
    except Exception as error:
        yield Fact(f"its drifted nodes cannot be evaluated: {broken(error)}")


def _lines(view: View, pool: NodePool, ask: Solve) -> Iterator[str]:
    groups: dict[tuple[str, tuple[str, ...]], _Group] = {}
    open_: list[str] = []
    of_pool = cache(partial(pool_blocker, view))
    for key in _waiting(view, pool):
        blocker = _blocker(view, key, of_pool)
        if blocker is None:
            open_.append(key)
        else:
            group = groups.setdefault((blocker.code, blocker.budgets), _Group())
            group.nodes.append(view.snapshot.state_nodes[key].name)
            group.texts.setdefault(Hold.of(blocker).text)
    order = sorted(groups.values(), key=lambda group: (-len(group.nodes), group.nodes))
    yield from map(str, order[:_MOST_GROUPS])
    if others := sum(len(group.nodes) for group in order[_MOST_GROUPS:]):
        yield f"{counted(others, 'other drifted node')} {'is' if others == 1 else 'are'} blocked by other causes"
    placeless = dict(_placeless(view, pool, open_, ask))
    for key, text in placeless.items():
        yield f"the pods of drifted node {view.snapshot.state_nodes[key].name} have no place: {text}"
    if left := [key for key in open_ if key not in placeless]:
        yield _turn(view, pool, left)


def _waiting(view: View, pool: NodePool) -> list[str]:
    """Return the keys of the drifted nodes about which nothing has been decided yet, sorted."""
    claims = view.snapshot.claims_by_pool.get(pool.name, ())
    return sorted(
        claim.name
        for claim in claims
        if claim.is_true("Drifted")
        and not claim.metadata.deleting
        and labels.COMMAND not in claim.metadata.annotations
        and claim.name in view.snapshot.state_nodes
    )


def _blocker(view: View, key: str, of_pool: Callable[[str], Blocker | None]) -> Blocker | None:
    state = view.snapshot.state_nodes[key]
    waits = canary.drift_blocker(view, state)
    if waits is not None:
        return waits
    found = known_candidate(view, key, eventual=True)
    return found if isinstance(found, Blocker) else next_try(view, state) or of_pool(state.pool_name)


def _placeless(view: View, pool: NodePool, keys: Sequence[str], ask: Solve) -> Iterator[tuple[str, str]]:
    """Return those of the first nodes whose pods have no place elsewhere, with the reason. A node of a static NodePool
    is replaced whatever its pods need."""
    asked = [] if pool.static else [one for key in keys[:_SIMULATED] if (one := unblocked(view, key)).movable]
    for one in asked:
        outcome = simulate(view, [one], Share(ask), Manner.FREELY)
        if outcome.blocker is not None:
            yield one.key, outcome.blocker.text


def _turn(view: View, pool: NodePool, keys: Sequence[str]) -> str:
    names = [view.snapshot.state_nodes[key].name for key in keys]
    wait, them = ("waits", "it") if len(names) == 1 else ("wait", "them")
    budget = held(view, pool.name, DRIFTED)
    reason = f"a budget: {budget.text}" if budget is not None else f"a reconcile that replaces {them}"
    return f"{counted(len(names), 'drifted node')} {wait} for {reason} ({_names(names)})"


def _names(names: Sequence[str]) -> str:
    return shortened(sorted(names), _MOST_NAMES)
