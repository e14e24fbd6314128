"""Budgets: the tightest one that holds wins, and a window holds while a hit lies less than its duration ago."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kerf_api import cron, durations
from kerf_api.lint import validate
from kerf_api.v1.budgets import REASONS, UNLIMITED, allowed_disruptions
from tests.laws.test_cron_laws import naive
from tests.unit.api.manifests import changed

MONDAY = datetime(2024, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
instants = st.integers(0, 60 * 24 * 60 * 60).map(lambda seconds: MONDAY + timedelta(seconds=seconds))
schedules = st.one_of(
    st.sampled_from(["@daily", "@hourly", "@weekly"]),
    st.builds(
        "{} {} * * {}".format,
        st.sampled_from(["0", "30", "*/20", "5,50"]),
        st.sampled_from(["*", "9", "0-12", "*/6", "22"]),
        st.sampled_from(["*", "1-5", "0,6", "3"]),
    ),
)
Budget = dict[str, Any]
lengths = st.sampled_from(["1m", "20m", "1h", "6h", "12h", "24h", "48h", "72h"])
allowances = st.one_of(st.integers(0, 30).map(str), st.integers(0, 100).map(lambda percent: f"{percent}%"))
windows: st.SearchStrategy[Budget] = st.one_of(
    st.just({}), st.fixed_dictionaries({"schedule": schedules, "duration": lengths})
)
reasons: st.SearchStrategy[Budget] = st.one_of(
    st.just({}), st.lists(st.sampled_from(REASONS), unique=True).map(lambda listed: {"reasons": listed})
)
budgets = st.builds(lambda nodes, window, about: {"nodes": nodes, **window, **about}, allowances, windows, reasons)


def _fires(budget: Budget) -> Callable[[datetime], bool]:
    schedule: str = budget["schedule"]
    return naive(cron.DESCRIPTORS.get(schedule, schedule))


def holds(budget: Budget, now: datetime) -> bool:
    """Whether some minute in (now - duration, now] is a hit, looked at one by one."""
    if "schedule" not in budget:
        return True
    fires = _fires(budget)
    at, begin = now.replace(second=0, microsecond=0), now - durations.parse(budget["duration"])
    while at > begin:
        if fires(at):
            return True
        at -= MINUTE
    return False


def expected(found: list[Budget], nodes: int, now: datetime, reason: str) -> int:
    counts = [UNLIMITED]
    for budget in found:
        if reason in budget.get("reasons", REASONS) and holds(budget, now):
            text = budget["nodes"]
            counts.append(ceil(int(text[:-1]) * nodes / 100) if text.endswith("%") else int(text))
    return min(counts)


@settings(max_examples=60)
@given(st.lists(budgets, max_size=3), st.integers(0, 200), instants, st.sampled_from(REASONS))
def test_the_tightest_budget_that_holds_wins(found: list[Budget], nodes: int, now: datetime, reason: str) -> None:
    allowed = allowed_disruptions(budgets=found, nodes=nodes, now=now, reason=reason)
    assert allowed == expected(found, nodes, now, reason)


@given(st.lists(budgets, max_size=3), st.integers(0, 200), st.integers(0, 200), instants, st.sampled_from(REASONS))
def test_more_nodes_never_allow_fewer(found: list[Budget], few: int, more: int, now: datetime, reason: str) -> None:
    small, large = (
        allowed_disruptions(budgets=found, nodes=nodes, now=now, reason=reason) for nodes in sorted((few, more))
    )
    assert small <= large


@given(st.lists(budgets, max_size=3), budgets, instants, st.sampled_from(REASONS))
def test_one_budget_more_never_allows_more(found: list[Budget], one: Budget, now: datetime, reason: str) -> None:
    before, after = (allowed_disruptions(budgets=b, nodes=50, now=now, reason=reason) for b in (found, [*found, one]))
    assert after <= before


UNREADABLE = {"nodes": "1", "schedule": "0 0 * * 7", "duration": "1h"}
HALF = ({"nodes": "1", "schedule": "@daily"}, {"nodes": "1", "duration": "1h"})
BROKEN = st.sampled_from([{"nodes": "101%"}, {"nodes": "x"}, *HALF, UNREADABLE, {"nodes": "1", "reasons": 5}])


@given(st.lists(budgets, max_size=3), BROKEN, st.integers(0, 3), instants)
def test_an_invalid_one_closes_the_pool_for_every_reason(
    found: list[Budget], broken: Budget, place: int, now: datetime
) -> None:
    mixed = [*found[:place], {"reasons": ["Empty"], **broken}, *found[place:]]
    assert [allowed_disruptions(budgets=mixed, nodes=50, now=now, reason=r) for r in REASONS] == [0, 0, 0]


# --- the linter's calendar --------------------------------------------------------------------------------------
closing = st.builds(lambda window, about: {"nodes": "0", **window, **about}, windows.filter(bool), reasons)


def never(found: list[Budget], reason: str) -> bool:
    """Whether no minute of a fortnight is without a window that allows nothing."""
    shut = [b for b in found if reason in b.get("reasons", REASONS)]
    begin, minutes, end = MONDAY - timedelta(days=8), 22 * 1440, MONDAY
    closed = [False] * minutes
    for budget in shut:
        fires = _fires(budget)
        length = int(durations.parse(budget["duration"]) / MINUTE)
        for minute in range(minutes):
            if fires(begin + minute * MINUTE):
                closed[minute : minute + length] = [True] * min(length, minutes - minute)
    return all(closed[int((end - begin) / MINUTE) :])


@settings(max_examples=40)
@given(st.lists(closing, min_size=1, max_size=3))
def test_a_reason_is_never_allowed_if_a_fortnight_has_no_open_minute(found: list[Budget]) -> None:
    told = [p.message for p in validate(changed("NodePool", "D.budgets", found)) if p.rule == "KERF-NP-321"]
    text = " ".join(told)
    assert [reason in text for reason in REASONS] == [never(found, reason) for reason in REASONS]
