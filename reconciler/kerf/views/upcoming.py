"""Disruption: nodes on their way, nodes that are due, and blocked ones; with the budgets of each NodePool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kerf.disruption.view import View
from kerf.judgement.allowances import budgets
from kerf.judgement.values import Budgets, End, Hold
from kerf.views.cluster import NodeRow

#: The states of a disruption, in the order of the view.
RUNNING, DUE, BLOCKED, LATER = "in progress", "due", "blocked", "later"
_ORDER: Final = {RUNNING: 0, DUE: 1, BLOCKED: 2, LATER: 3}
#: What is not due within this time is later.
_SOON: Final = timedelta(days=1)
_GOING: Final = ("Disrupting", "Draining", "Detaching", "Terminating")
_BUDGET: Final = "Budget"


@dataclass(frozen=True, slots=True)
class Disruption:
    """The disruption of one node. `at` is since when it is in progress, or the earliest time; None when a blocker has
    no known end. `budget` is the text of the blocking budget, `blockers` are the others."""

    node: str
    nodepool: str
    state: str
    reason: str
    text: str
    at: datetime | None
    forceful: bool
    saving: int
    blockers: tuple[str, ...]
    budget: str


def disruptions(rows: Iterable[NodeRow], now: datetime) -> tuple[Disruption, ...]:
    """Those in progress, due within a day, blocked and later, each by time; unplanned ones only with a forced end.

    Consolidation is known from proposals alone: an empty list does not say that no node is worth replacing.
    """
    found = [one for row in rows for one in _of_node(row, now)]
    latest = datetime.max.replace(tzinfo=now.tzinfo)
    return tuple(sorted(found, key=lambda one: (_ORDER[one.state], one.at or latest, one.nodepool, one.node)))


def all_budgets(view: View) -> tuple[Budgets, ...]:
    """The budgets of every NodePool, by name; of one without initialized nodes, too."""
    found = (budgets(view, name) for name in sorted(view.snapshot.node_pools))
    return tuple(one for one in found if one is not None)


def _of_node(row: NodeRow, now: datetime) -> Iterator[Disruption]:
    pool, stage = row.machine.nodepool, row.stage
    if stage.code in _GOING:
        facts = tuple(fact.text for fact in stage.facts)
        yield Disruption(row.name, pool, RUNNING, stage.code, stage.text, stage.since, False, 0, facts, "")
    for end in row.ends:
        at = end.earliest(now)
        if end.wanted or (end.forceful and at is not None):
            yield _planned(row, end, at, now)


def _planned(row: NodeRow, end: End, at: datetime | None, now: datetime) -> Disruption:
    budget, others = "", list[Hold]()
    for hold in end.holds:
        if hold.code == _BUDGET:
            budget = str(hold)
        else:
            others.append(hold)
    state = BLOCKED if at is None else DUE if at <= now + _SOON else LATER
    blockers = tuple(str(hold) for hold in others)
    pool = row.machine.nodepool
    return Disruption(row.name, pool, state, end.code, end.text, at, end.forceful, end.saving, blockers, budget)
