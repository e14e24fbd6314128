"""The calendar of disruption budgets: how many nodes of a NodePool each reason may disrupt, and when that changes.

The counts of nodes are those of now: a percentage follows the number of nodes, and later numbers are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from kerf.judgement.allowances import row_text
from kerf.judgement.values import Budgets
from kerf.model.snapshot import Snapshot
from kerf_api.v1.budgets import AnyBudget, Row, rows

#: The length of a calendar.
DAYS: Final = 7
_DAY: Final = timedelta(days=1)
#: A schedule that fires every minute has 10,000 windows a week: a calendar shows the first ones.
MOST: Final = 120


@dataclass(frozen=True, slots=True)
class Window:
    """A time with the same allowance. `allowed` is None without an active budget; `row` is the tightest one."""

    start: datetime
    end: datetime
    allowed: int | None
    row: str

    @property
    def percent(self) -> int:
        """Of the day in which it starts; the parts of a whole day add up to 100."""
        midnight = self.start.replace(hour=0, minute=0, second=0, microsecond=0)
        return round(100 * ((self.end - midnight) / _DAY)) - round(100 * ((self.start - midnight) / _DAY))


@dataclass(frozen=True, slots=True)
class Schedule:
    """The windows of reasons with the same budgets, from now on for `DAYS`. `problem` is an unreadable budget.

    `more` is whether windows after the last one are left out.
    """

    reasons: tuple[str, ...]
    windows: tuple[Window, ...]
    more: bool = False
    problem: str = ""

    @property
    def days(self) -> tuple[tuple[Window, ...], ...]:
        """The windows cut at midnight UTC, day by day."""
        found: dict[datetime, list[Window]] = {}
        for window in self.windows:
            start = window.start
            while start < window.end:
                midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
                end = min(window.end, midnight + _DAY)
                found.setdefault(midnight, []).append(Window(start, end, window.allowed, window.row))
                start = end
        return tuple(map(tuple, found.values()))


@dataclass(frozen=True, slots=True)
class PoolCalendar:
    """The schedules of one NodePool with `nodes` nodes, of which `disrupting` use up its budgets."""

    pool: str
    nodes: int
    disrupting: int
    schedules: tuple[Schedule, ...]


def calendars(snapshot: Snapshot, found: Sequence[Budgets]) -> tuple[PoolCalendar, ...]:
    """The calendars of these NodePools."""
    return tuple(_calendar(snapshot, one) for one in found)


def _calendar(snapshot: Snapshot, found: Budgets) -> PoolCalendar:
    budgets = snapshot.node_pools[found.pool].spec.disruption.budgets
    alike: dict[tuple[int, ...], list[str]] = {}
    try:
        for one in found.allowances:
            own = _rows(budgets, found.nodes, snapshot.now, one.reason)
            alike.setdefault(tuple(sorted(row.index for row in own)), []).append(one.reason)
    except ValueError as error:
        reasons = tuple(one.reason for one in found.allowances)
        return PoolCalendar(found.pool, found.nodes, found.disrupting, (Schedule(reasons, (), problem=str(error)),))
    made = tuple(_schedule(budgets, found.nodes, snapshot.now, tuple(reasons)) for reasons in alike.values())
    return PoolCalendar(found.pool, found.nodes, found.disrupting, made)


def _schedule(budgets: Sequence[AnyBudget], nodes: int, now: datetime, reasons: tuple[str, ...]) -> Schedule:
    start, limit = now.astimezone(UTC), now.astimezone(UTC) + DAYS * _DAY
    windows = list[Window]()
    for _ in range(MOST):
        if start >= limit:
            break
        own = _rows(budgets, nodes, start, reasons[0])
        changes = min((row.changes for row in own if row.changes is not None), default=limit)
        end, tightest = min(changes, limit), own[0] if own and own[0].holds else None
        allowed, text = (None, "no budget is active") if tightest is None else (tightest.allows, row_text(tightest))
        if windows and (windows[-1].allowed, windows[-1].row) == (allowed, text):
            start, text = windows.pop().start, text
        windows.append(Window(start, end, allowed, text))
        start = end
    return Schedule(reasons, tuple(windows), more=start < limit)


def _rows(budgets: Sequence[AnyBudget], nodes: int, at: datetime, reason: str) -> tuple[Row, ...]:
    return rows(budgets=budgets, nodes=nodes, now=at, reason=reason)
