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
from kerf_api import cron
from kerf_api.v1.budgets import AnyBudget, Row, rows

#: The length of a calendar.
DAYS: Final = 7
_DAY: Final = timedelta(days=1)
_HOUR: Final = timedelta(hours=1)
#: A calendar has the first windows of a schedule that fires often, but is not the same in every hour.
MOST: Final = 300
#: Windows that repeat at least so often are one row.
_REPEATS: Final = 3
#: The highest number of windows that repeat together.
_LONGEST_CYCLE: Final = 12


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
        return _percent(self.start, self.end)

    @property
    def shape(self) -> tuple[timedelta, int | None, str]:
        """All but the time of day: windows of the same shape can repeat each other."""
        return self.end - self.start, self.allowed, self.row


@dataclass(frozen=True, slots=True)
class Cycle:
    """Windows that follow each other again and again from `start` to `end`; `parts` are those of the first time."""

    start: datetime
    end: datetime
    parts: tuple[Window, ...]

    @property
    def every(self) -> timedelta:
        return self.parts[-1].end - self.parts[0].start

    @property
    def percent(self) -> int:
        """Of the day in which it starts."""
        return _percent(self.start, self.end)


def _percent(start: datetime, end: datetime) -> int:
    midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
    return round(100 * ((end - midnight) / _DAY)) - round(100 * ((start - midnight) / _DAY))


@dataclass(frozen=True, slots=True)
class Schedule:
    """The windows of reasons with the same budgets, from now on for `DAYS`. `problem` is an unreadable budget.

    `more` is whether windows after the last one are left out. A schedule that is the same in every hour has `hourly` in
    place of windows.
    """

    reasons: tuple[str, ...]
    windows: tuple[Window, ...]
    more: bool = False
    problem: str = ""
    hourly: Cycle | None = None

    @property
    def days(self) -> tuple[tuple[Window | Cycle, ...], ...]:
        """The windows cut at midnight UTC, day by day; windows of a day that repeat are a cycle."""
        found: dict[datetime, list[Window]] = {}
        for window in self.windows:
            start = window.start
            while start < window.end:
                midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
                end = min(window.end, midnight + _DAY)
                found.setdefault(midnight, []).append(Window(start, end, window.allowed, window.row))
                start = end
        return tuple(map(_folded, found.values()))


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
    start = now.astimezone(UTC)
    limit = start + DAYS * _DAY
    if not _alike_in_every_hour(_rows(budgets, nodes, start, reasons[0])):
        windows = _windows(budgets, nodes, (start, limit), reasons[0])
        return Schedule(reasons, windows, more=windows[-1].end < limit)
    windows = _windows(budgets, nodes, (start, start + 2 * _HOUR), reasons[0])
    if len(windows) == 1:
        return Schedule(reasons, (Window(start, limit, windows[0].allowed, windows[0].row),))
    changes = windows[1].start
    hour = [one for one in windows[1:] if one.end <= changes + _HOUR]
    return Schedule(reasons, (), hourly=Cycle(start, limit, tuple(hour[: _length(hour)])))


def _alike_in_every_hour(own: Sequence[Row]) -> bool:
    """Whether budgets have schedules, all of which name minutes only."""
    schedules = [row.budget.schedule for row in own if row.budget.schedule is not None]
    return bool(schedules) and all(set(cron.parse(one).fields.split()[1:]) == {"*"} for one in schedules)


def _windows(
    budgets: Sequence[AnyBudget], nodes: int, span: tuple[datetime, datetime], reason: str
) -> tuple[Window, ...]:
    """The first windows of a span, at most `MOST`."""
    (start, limit), windows = span, list[Window]()
    for _ in range(MOST):
        if start >= limit:
            break
        own = _rows(budgets, nodes, start, reason)
        changes = min((row.changes for row in own if row.changes is not None), default=limit)
        end, tightest = min(changes, limit), own[0] if own and own[0].holds else None
        allowed, text = (None, "no budget is active") if tightest is None else (tightest.allows, row_text(tightest))
        if windows and (windows[-1].allowed, windows[-1].row) == (allowed, text):
            start = windows.pop().start
        windows.append(Window(start, end, allowed, text))
        start = end
    return tuple(windows)


# --- windows that repeat ----------------------------------------------------------------------------------------
def _length(windows: Sequence[Window]) -> int:
    """The number of windows of the shortest cycle of which these are some whole ones."""
    shapes = [one.shape for one in windows]
    return next(size for size in range(1, len(shapes) + 1) if shapes[:size] * (len(shapes) // size) == shapes)


def _folded(windows: Sequence[Window]) -> tuple[Window | Cycle, ...]:
    """The windows, with those that repeat at least `_REPEATS` times as a cycle."""
    shapes, found, place = [one.shape for one in windows], list[Window | Cycle](), 0
    while place < len(windows):
        size, times = _cycle(shapes[place:])
        if times < _REPEATS:
            found.append(windows[place])
            place += 1
            continue
        parts, place = windows[place : place + size], place + size * times
        found.append(Cycle(parts[0].start, windows[place - 1].end, tuple(parts)))
    return tuple(found)


def _cycle(shapes: Sequence[object]) -> tuple[int, int]:
    """The size of the cycle at the begin of a list and the number of its repeats; that with the most windows."""
    best = (1, 1)
    for size in range(2, min(_LONGEST_CYCLE, len(shapes) // _REPEATS) + 1):
        times = 1
        while shapes[size * times : size * (times + 1)] == shapes[:size]:
            times += 1
        if times >= _REPEATS and size * times > best[0] * best[1]:
            best = (size, times)
    return best


def _rows(budgets: Sequence[AnyBudget], nodes: int, at: datetime, reason: str) -> tuple[Row, ...]:
    return rows(budgets=budgets, nodes=nodes, now=at, reason=reason)
