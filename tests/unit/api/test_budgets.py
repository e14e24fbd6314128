"""Budgets: rounding, windows, reasons, and what an invalid one does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from api.v1.budgets import UNLIMITED, allowed_disruptions, problems
from api.v1.nodepool import Budget

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
        ("100%", 100, 100),
        ("0", 10, 0),
        ("10", 10, 10),
        ("25", 10, 25),
        ("9999999999", 10, UNLIMITED),
    ],
)
def test_counts_and_rounding(text: str, nodes: int, count: int) -> None:
    assert allowed(Budget(nodes=text), nodes=nodes) == count


def test_without_budgets_there_is_no_limit() -> None:
    assert allowed() == UNLIMITED == 2147483647


@pytest.mark.parametrize(
    ("schedule", "duration", "now", "active"),
    [
        ("@yearly", "24h", NOON, True),
        ("@daily", "48h", NOON, True),
        ("30 6 * * SUN", "6h", datetime(2026, 1, 4, 0, 0, tzinfo=UTC), False),
        ("30 6 * * SUN", "6h", datetime(2026, 1, 4, 6, 30, tzinfo=UTC), True),
        ("30 6 * * SUN", "6h", datetime(2026, 1, 4, 12, 29, 59, tzinfo=UTC), True),
        ("30 6 * * SUN", "6h", datetime(2026, 1, 4, 12, 30, tzinfo=UTC), False),
        ("@daily", "30m", datetime(2026, 1, 5, 0, 10, tzinfo=timezone(timedelta(hours=1))), False),
        ("@daily", "30m", datetime(2026, 1, 5, 1, 10, tzinfo=timezone(timedelta(hours=1))), True),
        ("0 0 30 2 *", "1h", NOON, False),
    ],
)
def test_a_window_is_open_from_its_hit_until_its_duration_has_passed_in_utc(
    schedule: str, duration: str, now: datetime, active: bool
) -> None:
    assert allowed(Budget(nodes="0", schedule=schedule, duration=duration), now=now) == (0 if active else UNLIMITED)


def test_the_tightest_budget_that_names_the_reason_or_none_wins() -> None:
    budgets = (Budget(nodes="10"), Budget(nodes="5", reasons=("Drifted",)), Budget(nodes="4", reasons=("Empty",)))
    counts = {reason: allowed(*budgets, nodes=100, reason=reason) for reason in ("Underutilized", "Drifted", "Empty")}
    assert counts == {"Underutilized": 10, "Drifted": 5, "Empty": 4}


def test_an_empty_list_of_reasons_applies_to_none() -> None:
    assert allowed(Budget(nodes="0", reasons=())) == UNLIMITED


def test_a_scoped_budget_that_sleeps_leaves_the_default() -> None:
    asleep = Budget(nodes="0", reasons=("Empty",), schedule="@yearly", duration="1h")
    assert allowed(Budget(nodes="10%"), asleep) == 1


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
