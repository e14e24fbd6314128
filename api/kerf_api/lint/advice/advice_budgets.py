"""Advice about disruption budgets: what the windows of a NodePool come to, taken together.

A single budget is easy to read; several windows, percentages and reasons are not. Here their windows are laid out on a
calendar that begins on a fixed Monday, so that the answer never depends on the day.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from kerf_api import cron, durations
from kerf_api.lint.advice.requirement_advice import Known
from kerf_api.lint.problem import Problem, Steps, at, shown
from kerf_api.lint.reading.reading import entries, part
from kerf_api.v1.budgets import REASONS, problems

#: A Monday; windows are laid out from here.
MONDAY: Final = datetime(2024, 1, 1, tzinfo=UTC)
#: How many days of the calendar are looked at for one NodePool, all budgets together, and for how long at most.
_MOST_DAYS: Final = 400
_FORTNIGHT: Final = timedelta(days=14)
_LONGEST: Final = timedelta(days=731)
#: The same in times that a window opens, for schedules of every minute; and how many budgets are looked at.
_MOST_SPANS: Final = 60_000
_MOST_BUDGETS: Final = 50
#: Less than this on the calendar proves nothing about what always holds.
_WEEK: Final = timedelta(days=8)
#: What replacing one round of nodes is taken to last: a launch, a drain, a termination.
ROUND: Final = timedelta(minutes=10)
_BUDGETS: Final = ("spec", "disruption", "budgets")

Span = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Window:
    """A budget as the calendar shows it. `spans` are None when it always holds; `until` is how far one has looked."""

    steps: Steps
    nodes: str
    reasons: tuple[str, ...] | None
    spans: tuple[Span, ...] | None
    until: datetime

    def is_for(self, reason: str) -> bool:
        return self.reasons is None or reason in self.reasons

    @property
    def closed(self) -> bool:
        """Whether it allows nothing while it holds."""
        return self.nodes.rstrip("%").strip("0") == ""

    def holds(self, instant: datetime) -> bool:
        if self.spans is None:
            return True
        before = bisect_right(self.spans, instant, key=lambda span: span[0])
        return before > 0 and instant < self.spans[before - 1][1]


def check(known: Known) -> Iterator[Problem]:
    """Advice about the budgets of a NodePool whose budgets can be read."""
    manifest = known.manifest
    windows = [*_windows(manifest)]
    if part(known.given, *_BUDGETS) == []:
        message = "an empty list is no budget at all: every node may be replaced at once"
        hint = "leave budgets out for 10% at a time, or write one of 100% to be clear"
        yield at(_BUDGETS, "KERF-NP-326", "info", message, hint)
    yield from _endless(windows)
    yield from _never(windows)
    if part(known.given, *_BUDGETS) is not None:
        yield from _rounding(windows, manifest)
    yield from _utc(manifest)
    yield from _rolling(windows, manifest)


def _windows(manifest: Mapping[str, Any]) -> Iterator[Window]:
    """The budgets that can be read; the others have been complained about."""
    rows = [*islice(entries(manifest, *_BUDGETS), _MOST_BUDGETS)]
    scheduled = sum(1 for _, entry in rows if "schedule" in entry)
    for steps, entry in rows:
        nodes, reasons, schedule, length = (entry.get(name) for name in ("nodes", "reasons", "schedule", "duration"))
        listed = tuple(map(str, reasons)) if isinstance(reasons, list) else None
        if problems((entry,)):
            continue
        if schedule is None:
            yield Window(steps, str(nodes), listed, None, MONDAY + _LONGEST)
            continue
        spans, until = _spans(str(schedule), str(length), scheduled)
        yield Window(steps, str(nodes), listed, spans, until)


@lru_cache(maxsize=1024)
def _spans(text: str, length_text: str, schedules: int) -> tuple[tuple[Span, ...], datetime]:
    """When a window is open, overlapping ones joined, and until when that is known.

    Only the days are asked of the calendar, and not many if there are many `schedules`: all days that match have the
    same hours and minutes.
    """
    schedule, length = cron.parse(text), min(durations.parse(length_text), _LONGEST)
    minutes, hours, day, month, _ = schedule.fields.split()
    opens = [MONDAY.replace(hour=h, minute=m) for h in _numbers(hours, 24) for m in _numbers(minutes, 60)]
    one_day = _joined((begin, begin + length) for begin in opens)
    end = MONDAY + (_FORTNIGHT if (day, month) == ("*", "*") else _LONGEST)
    spans: list[Span] = []
    after = MONDAY - length - timedelta(minutes=1)
    for _ in range(min(_MOST_DAYS, _MOST_SPANS // len(one_day)) // schedules):
        hit = schedule.next_after(after)
        if hit is None or hit > end:
            return _joined(spans), end
        midnight = hit.replace(hour=0, minute=0)
        later = midnight - MONDAY
        spans += [(begin + later, end_ + later) for begin, end_ in one_day]
        after = midnight + timedelta(hours=23, minutes=59)
    return _joined(spans), max((close for _, close in spans), default=end)


def _numbers(field: str, count: int) -> list[int]:
    return [*range(count)] if field == "*" else [int(number) for number in field.split(",")]


def _endless(windows: Iterable[Window]) -> Iterator[Problem]:
    """A window that opens again before it has closed."""
    for window in windows:
        if window.spans and _covered(window.spans, window.until):
            message = "the window opens again before it has closed, so the budget always applies"
            hint = "shorten duration, or leave schedule and duration out"
            yield at((*window.steps, "duration"), "KERF-NP-322", "warning", message, hint)


def _never(windows: list[Window]) -> Iterator[Problem]:
    """Reasons for which no instant allows a disruption."""
    closed = [window for window in windows if window.closed]
    shut = {reason: [w for w in closed if w.is_for(reason)] for reason in REASONS}
    never = [reason for reason, those in shut.items() if those and _always_shut(those)]
    for window in closed:
        mine = [reason for reason in never if window in shut[reason]]
        if not mine or window is not shut[mine[0]][0]:
            continue
        # Who names the reason, and no time, means it.
        meant = window.spans is None and window.reasons is not None
        several = len(shut[mine[0]]) > 1 and window.spans is not None
        message = f"no node is ever disrupted for {_listed(mine)}"
        message += ": the windows cover all times" if several else ""
        hint = "security fixes in images reach no node then" if "Drifted" in mine else "allow a node at some time"
        yield at(window.steps, "KERF-NP-321", "info" if meant else "warning", message, hint, window.nodes)


def _always_shut(windows: Iterable[Window]) -> bool:
    spans: list[Span] = []
    until = MONDAY + _LONGEST
    for window in windows:
        if window.spans is None:
            return True
        spans += window.spans
        until = min(until, window.until)
    return _covered(_joined(spans), until)


def _joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return tuple(found)


def _covered(spans: tuple[Span, ...], until: datetime) -> bool:
    """Whether joined spans leave no gap from the first Monday on, as far as is known, and enough is known."""
    begin, end = spans[0] if spans else (until, until)
    return begin <= MONDAY and end >= until and until - MONDAY >= _WEEK


def _listed(reasons: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(reasons[:-1]), reasons[-1])))


def _most_nodes(manifest: Mapping[str, Any]) -> int | None:
    """How many nodes the pool can have, when the manifest says so."""
    for value in (part(manifest, "spec", "replicas"), part(manifest, "spec", "limits", "nodes")):
        text = str(value)
        if value is not None and not isinstance(value, bool) and text.isascii() and text.isdigit() and len(text) < 10:
            return int(text)
    return None


def _rounding(windows: Iterable[Window], manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Percentages round up; of a few nodes a tenth is one whole node."""
    nodes = _most_nodes(manifest)
    for window in windows if nodes else ():
        percent = int(window.nodes[:-1]) if window.nodes.endswith("%") else 0
        count = -(-percent * nodes // 100) if nodes else 0
        if nodes and count * 100 > 2 * percent * nodes:
            message = f"{window.nodes} of at most {nodes} nodes is {count}, since percentages round up"
            hint = f"that is {count * 100 // nodes}% of the nodes; write a number of nodes to be explicit"
            yield at((*window.steps, "nodes"), "KERF-NP-323", "warning", message, hint, window.nodes)


def _utc(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Said once for all schedules."""
    for steps, entry in entries(manifest, *_BUDGETS):
        schedule = entry.get("schedule")
        words = schedule.split() if isinstance(schedule, str) else []
        if len(words) == 5 and words[1] not in ("*", "?"):
            message = f"the hour of {shown(schedule)} is read in UTC, summer and winter"
            yield at((*steps, "schedule"), "KERF-NP-324", "info", message, "", schedule)
            return


def _rolling(windows: list[Window], manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Expiration asks no budget: a pool that drift cannot roll in time is expired all at once."""
    text = part(manifest, "spec", "template", "spec", "expireAfter")
    try:
        age = durations.parse_nillable(text) if isinstance(text, str) else None
    except ValueError:
        return
    mine = tuple(window for window in windows if window.is_for("Drifted"))
    nodes = _most_nodes(manifest)
    least = min((_share(window.nodes, nodes) for window in mine), default=1.0)
    if age is None or (least and ROUND / least <= age):
        return
    share = _average(mine, nodes)
    if not share or ROUND / share <= age:
        return
    hours = max(1, round(ROUND / share / timedelta(hours=1)))
    message = f"replacing all nodes under these budgets takes about {hours} h, and nodes expire after {text}"
    hint = "expiration ignores budgets: allow more nodes at a time, or let them live longer"
    yield at(("spec", "template", "spec", "expireAfter"), "KERF-NP-325", "warning", message, hint, text)


@lru_cache(maxsize=1024)
def _average(windows: tuple[Window, ...], nodes: int | None) -> float:
    """Which share of the pool may be away at a time, averaged over the hours of a week."""
    shares = [(window, _share(window.nodes, nodes)) for window in windows]
    hours = [MONDAY + timedelta(hours=hour) for hour in range(168)]
    return sum(min((share for w, share in shares if w.holds(hour)), default=1.0) for hour in hours) / len(hours)


def _share(allowance: str, nodes: int | None) -> float:
    if allowance.endswith("%"):
        return int(allowance[:-1]) / 100
    if nodes is None:
        return 0.0 if not allowance.strip("0") else 1.0
    return min(1.0, int(allowance) / max(1, nodes))
