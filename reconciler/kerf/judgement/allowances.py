"""Allowed disruptions of a NodePool: the number for each reason, and the budget that sets it."""

from __future__ import annotations

from datetime import datetime

from kerf.disruption.candidates.budgets import PoolBudget, budgets_of
from kerf.disruption.view import View
from kerf.judgement.values import Allowance, Budgets, Hold
from kerf_api.texts import counted
from kerf_api.v1.budgets import EXPIRED, REASONS, UNLIMITED, Row, rows


def budgets(view: View, pool: str) -> Budgets | None:
    """Return the budgets of one NodePool; None when the NodePool does not exist."""
    found = budgets_of(view).get(pool)
    if found is None:
        return None
    asked = (*REASONS, EXPIRED) if view.snapshot.settings.expire_within_budgets else REASONS
    return Budgets(pool, found.nodes, found.disrupting, tuple(_allowance(view, pool, found, r) for r in asked))


def _allowance(view: View, pool: str, found: PoolBudget, reason: str) -> Allowance:
    allowed = found.allowed[reason]
    unlimited = None if allowed == UNLIMITED else allowed
    try:
        lines = _lines(view, pool, found, reason)
    except ValueError as error:
        return Allowance(reason, allowed, 0, f"a budget cannot be read, so no node may be disrupted: {error}")
    changes = min((row.changes for row in lines if row.changes is not None), default=None)
    tightest = lines[0] if lines and lines[0].holds else None
    return Allowance(
        reason,
        unlimited,
        found.remaining(reason),
        "no budget is active" if tightest is None else row_text(tightest),
        changes,
    )


def held(view: View, pool: str, reason: str) -> Hold | None:
    """Return the blocker when the budgets allow no disruption for the reason now, until their schedules allow one."""
    found = budgets_of(view).get(pool)
    if found is None or found.remaining(reason):
        return None
    allowance = _allowance(view, pool, found, reason)
    busy = f", {found.disrupting} terminating or not Ready" if found.disrupting else ""
    count = f"{allowance.allowed} of {counted(found.nodes, 'node')} allowed{busy}"
    text = f"no more nodes of NodePool {pool} may be disrupted for {reason}: {count} ({allowance.row})"
    return Hold("Budget", text, _opens(view, pool, found, reason))


def tightest(view: View, pool: str, reason: str) -> tuple[Row, int] | None:
    """Return the budget that allows least for the reason now, and the nodes that count against it; None if invalid."""
    found = budgets_of(view).get(pool)
    try:
        lines = _lines(view, pool, found, reason) if found is not None else ()
    except ValueError:
        return None
    return (lines[0], found.disrupting) if found is not None and lines and lines[0].holds else None


def _opens(view: View, pool: str, found: PoolBudget, reason: str) -> datetime | None:
    """Return the end of the last window among the exhausted budgets; None when one of them has no end."""
    try:
        lines = _lines(view, pool, found, reason)
    except ValueError:
        return None
    ends = [row.changes for row in lines if row.holds and row.allows <= found.disrupting]
    return max((end for end in ends if end is not None), default=None) if None not in ends else None


def _lines(view: View, pool: str, found: PoolBudget, reason: str) -> tuple[Row, ...]:
    """Return the budgets that apply to the reason, as of now. Raises ValueError for an invalid one."""
    own = view.snapshot.node_pools[pool].spec.disruption.budgets
    return rows(budgets=own, nodes=found.nodes, now=view.snapshot.now, reason=reason)


def row_text(row: Row) -> str:
    """Format the budget of a row: `budgets[0]: nodes 10%, schedule '@daily' for 8h`."""
    scheduled = f", schedule {row.budget.schedule!r} for {row.budget.duration}" if row.budget.schedule else ""
    return f"budgets[{row.index}]: nodes {row.budget.nodes}{scheduled}"
