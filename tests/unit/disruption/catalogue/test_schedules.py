"""What a NodePool's budgets allow at an instant (45 to 51 of the disruption catalogue)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from kerf_api.v1.budgets import REASONS, UNLIMITED, allowed_disruptions
from kerf_api.v1.nodepool import Budget

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ASLEEP: dict[str, Any] = {"schedule": "@yearly", "duration": "1h"}


def allowed(*budgets: Any, nodes: int = 100, now: datetime = NOON, reason: str = "Empty") -> int:
    return allowed_disruptions(budgets=budgets, nodes=nodes, now=now, reason=reason)


def awake(schedule: str, duration: str, now: datetime) -> bool:
    return allowed(Budget(nodes="0", schedule=schedule, duration=duration), now=now) == 0


@pytest.mark.parametrize("reason", REASONS)
def test_045_while_all_budgets_sleep_nothing_is_limited(reason: str) -> None:
    assert allowed(Budget(nodes="1", **ASLEEP), Budget(nodes="0", reasons=(reason,), **ASLEEP)) == UNLIMITED


@pytest.mark.parametrize("reason", REASONS)
def test_046_a_scoped_budget_that_sleeps_leaves_the_default(reason: str) -> None:
    assert allowed(Budget(nodes="10%"), Budget(nodes="0", reasons=(reason,), **ASLEEP), reason=reason) == 10


def test_047_the_tightest_budget_that_names_the_reason_or_none_wins() -> None:
    budgets = (Budget(nodes="10"), Budget(nodes="5", reasons=("Drifted",)), Budget(nodes="4", reasons=("Empty",)))
    found = {reason: allowed(*budgets, reason=reason) for reason in REASONS}
    assert found == {"Underutilized": 10, "Drifted": 5, "Empty": 4}


@pytest.mark.parametrize(
    "broken",
    [
        {"nodes": "101%"},
        {"nodes": "-1"},
        {"nodes": "ten"},
        {"nodes": "5", "schedule": "61 * * * *", "duration": "1h"},
        {"nodes": "5", "schedule": "0 0 * * 7", "duration": "1h"},
    ],
)
def test_048_what_cannot_be_read_allows_nothing(broken: dict[str, Any]) -> None:
    assert [allowed(broken, reason=reason) for reason in REASONS] == [0, 0, 0]


def test_049_schedules_are_in_utc() -> None:
    east = timezone(timedelta(hours=1))
    assert not awake("@daily", "30m", datetime(2026, 1, 5, 0, 0, tzinfo=east))
    assert awake("@daily", "30m", datetime(2026, 1, 5, 1, 0, tzinfo=east))


def test_050_a_window_is_open_from_its_hit_until_its_duration_has_passed() -> None:
    assert awake("@yearly", "24h", NOON)
    assert all(awake("@daily", "48h", NOON + timedelta(hours=7 * i)) for i in range(9))
    sunday = datetime(2026, 1, 4, tzinfo=UTC)
    minutes = {0: False, 389: False, 390: True, 749: True, 750: False}
    assert {m: awake("30 6 * * SUN", "6h", sunday + timedelta(minutes=m)) for m in minutes} == minutes


def test_051_a_share_of_all_is_all_and_a_number_is_itself() -> None:
    assert (allowed(Budget(nodes="100%")), allowed(Budget(nodes="10"))) == (100, 10)
    assert allowed(Budget(nodes="10"), nodes=3) == 10
