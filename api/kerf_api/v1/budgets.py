"""Disruption budgets of a NodePool: how many of its nodes may be disrupted at once, for a reason, at an instant.

A budget without a schedule always holds; one with a schedule holds from each hit until its duration has passed, in UTC.
The tightest budget that applies wins. A budget that cannot be read closes the pool for every reason: a typing mistake
must never read as "no limit". Source: disruption reference §2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from msgspec import ValidationError

from kerf_api import cron, durations
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import Budget

#: What is allowed where no budget applies.
UNLIMITED: Final = 2**31 - 1
UNDERUTILIZED, EMPTY, DRIFTED = "Underutilized", "Empty", "Drifted"
#: Those that a budget may name.
REASONS: Final = (UNDERUTILIZED, EMPTY, DRIFTED)
#: No budget can name it: those without reasons are the ones that hold for it.
EXPIRED: Final = "Expired"

_NODES = re.compile(r"(100|[0-9]{1,2})%|[0-9]{1,19}", re.ASCII)

AnyBudget = Budget | Mapping[str, Any]

#: Windows that touch one another for so long, or so many of them, count as one without an end.
_LONGEST: Final = timedelta(days=8)
_TOUCHING: Final = 3000
#: By the number of fields of a schedule that restrict it: the time after which its gaps are the same again.
_PERIODS: Final = {0: timedelta(hours=1), 1: timedelta(hours=1), 2: timedelta(days=1)}


@dataclass(frozen=True, slots=True)
class Row:
    """What one budget says at an instant: its place in the list, how many nodes it allows, whether it holds now, and
    when that changes (None: never)."""

    index: int
    budget: Budget
    allows: int
    holds: bool
    changes: datetime | None


def allowed_disruptions(*, budgets: Iterable[AnyBudget], nodes: int, now: datetime, reason: str) -> int:
    """How many of a pool's `nodes` may be disrupted for `reason` at `now`, those under way not yet taken off.

    Percentages round up. 2147483647 where no budget applies; 0 for every reason while one budget is invalid.
    """
    given = tuple(budgets)
    if problems(given):
        return 0
    parsed = [_parse(budget) for budget in given]
    holding = [b for b in parsed if (b.reasons is None or reason in b.reasons) and _active(b, now)]
    return min((_count(b.nodes, nodes) for b in holding), default=UNLIMITED)


def rows(*, budgets: Iterable[AnyBudget], nodes: int, now: datetime, reason: str) -> tuple[Row, ...]:
    """The budgets that speak of `reason`, those that hold first, the tightest of them first. Raises ValueError where
    one of the list cannot be evaluated: such a list allows nothing."""
    given = tuple(budgets)
    faults = problems(given)
    if faults:
        raise ValueError("; ".join(faults))
    found = [
        Row(index, budget, _count(budget.nodes, nodes), _active(budget, now), changes(budget, now))
        for index, budget in enumerate(map(_parse, given))
        if budget.reasons is None or reason in budget.reasons
    ]
    return tuple(sorted(found, key=lambda row: (not row.holds, row.allows, row.index)))


def changes(budget: Budget, now: datetime) -> datetime | None:
    """When a scheduled budget begins to hold, or no longer does; None for one that does so for ever."""
    if budget.schedule is None or budget.duration is None:
        return None
    schedule, length = cron.parse(budget.schedule), durations.parse(budget.duration)
    hit = schedule.next_after(now - length)
    if hit is None or hit > now:
        return hit
    return _end(schedule, length, hit)


@lru_cache(maxsize=4096)  # asked for in every pass, and the same until the schedule fires again
def _end(schedule: cron.Cron, length: timedelta, hit: datetime) -> datetime | None:
    """The end of the windows that touch the one that begins at `hit`; None for one too far away."""
    fields = schedule.fields.split()
    restricting = max((place for place, field in enumerate(fields, 1) if field != "*"), default=0)
    last, end = hit + _PERIODS.get(restricting, _LONGEST), hit + length
    for following in islice(schedule.after(hit), _TOUCHING):
        if following > end:
            return end
        if following > last:
            return None
        end = following + length
    return None


def problems(budgets: Iterable[AnyBudget]) -> list[str]:
    """Why budgets cannot be evaluated, each with its index; empty when all can."""
    found: list[str] = []
    for index, budget in enumerate(budgets):
        try:
            _check(_parse(budget))
        except (ValueError, ValidationError) as error:
            found.append(f"budgets[{index}]: {error}")
    return found


def _parse(budget: AnyBudget) -> Budget:
    return budget if isinstance(budget, Budget) else decode(Budget, budget)


def _check(budget: Budget) -> None:
    """Raises ValueError with the first fault."""
    if not _NODES.fullmatch(budget.nodes):
        raise ValueError(f"nodes {budget.nodes!r} is neither a whole number nor a percentage from 0% to 100%")
    if (budget.schedule is None) != (budget.duration is None):
        raise ValueError("schedule and duration must be given together")
    if budget.schedule is not None and budget.duration is not None:
        cron.parse(budget.schedule)
        durations.parse(budget.duration)


def _active(budget: Budget, now: datetime) -> bool:
    """Whether the latest hit before now is less than the duration ago."""
    if budget.schedule is None or budget.duration is None:
        return True
    hit = cron.parse(budget.schedule).next_after(now - durations.parse(budget.duration))
    return hit is not None and hit <= now


def _count(allowance: str, nodes: int) -> int:
    if allowance.endswith("%"):
        return -(-int(allowance[:-1]) * nodes // 100)
    return min(int(allowance), UNLIMITED)
