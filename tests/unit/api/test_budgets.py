"""Budgets: rounding, reasons, and what an invalid one does; windows are in the disruption catalogue (45 to 50)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kerf_api.v1.budgets import UNLIMITED, allowed_disruptions, changes, problems
from kerf_api.v1.nodepool import Budget

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def allowed(*budgets: Budget | dict[str, Any], nodes: int = 10, now: datetime = NOON, reason: str = "Empty") -> int:
    return allowed_disruptions(budgets=budgets, nodes=nodes, now=now, reason=reason)


@pytest.mark.parametrize(
    ("text", "nodes", "count"),
    [
        ("5%", 10, 1),
        ("50%", 3, 2),
        ("0%", 10, 0),
        ("10%", 1, 1),
        ("10%", 0, 0),
        ("30%", 10, 3),
        ("0", 10, 0),
        ("25", 10, 25),
        ("9999999999", 10, UNLIMITED),
    ],
)
def test_counts_and_rounding(text: str, nodes: int, count: int) -> None:
    assert allowed(Budget(nodes=text), nodes=nodes) == count


def test_without_budgets_there_is_no_limit() -> None:
    assert allowed() == UNLIMITED == 2147483647


def test_a_window_that_never_comes_limits_nothing() -> None:
    assert allowed(Budget(nodes="0", schedule="0 0 30 2 *", duration="1h")) == UNLIMITED


def test_an_empty_list_of_reasons_applies_to_none() -> None:
    assert allowed(Budget(nodes="0", reasons=())) == UNLIMITED


@pytest.mark.parametrize(
    "broken",
    [
        {"nodes": "101%"},
        {"nodes": "-1"},
        {"nodes": "ten"},
        {"nodes": 5},
        {"nodes": "1", "schedule": "@daily"},
        {"nodes": "1", "duration": "1h"},
        {"nodes": "1", "schedule": "0 0 * * 7", "duration": "1h"},
        {"nodes": "1", "schedule": "@daily", "duration": "soon"},
    ],
)
def test_one_invalid_budget_closes_the_pool_for_every_reason(broken: dict[str, Any]) -> None:
    broken = {**broken, "reasons": ["Drifted"]}
    assert problems([{"nodes": "3"}, broken])[0].startswith("budgets[1]: ")
    assert [allowed({"nodes": "3"}, broken, reason=r) for r in ("Underutilized", "Empty", "Drifted")] == [0, 0, 0]


def test_mappings_read_like_values() -> None:
    assert allowed({"nodes": "20%", "reasons": ["Empty"]}) == 2
    assert allowed({}) == 1
    assert problems([{}, Budget()]) == []


@pytest.mark.parametrize(
    ("schedule", "duration", "hour"),
    [
        ("0 9 * * *", "8h", 17),
        ("*/15 6-22 * * *", "15m", 23),
        ("*/5 9-16 * * *", "5m", 17),
        ("0 0 * * *", "48h", None),
        ("* * * * *", "1m", None),
        ("*/2 * * * *", "2m", None),
    ],
)
def test_windows_that_touch_are_one_with_an_end_on_the_same_day(schedule: str, duration: str, hour: int | None) -> None:
    end = None if hour is None else NOON.replace(hour=hour)
    assert changes(Budget(nodes="0", schedule=schedule, duration=duration), NOON) == end
