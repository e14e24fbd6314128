"""The calendar of disruption budgets: windows by schedule and duration, days, and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from kerf.disruption.view import view
from kerf.model.snapshot import Snapshot
from kerf.views.calendar import DAYS, MOST, PoolCalendar, calendars
from kerf.views.upcoming import all_budgets
from kerf_api.v1.budgets import allowed_disruptions
from tests.unit.disruption.worlds import NOW, pairs, pool, snapshot
from tests.unit.views import worlds
from tests.unit.views.test_page import page

CLOSED = {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}


def calendar(*budgets: Mapping[str, Any], nodes: int = 3) -> PoolCalendar:
    """The calendar of a NodePool with these budgets and nodes."""
    names = [f"n{number}" for number in range(nodes)]
    return _of(snapshot([pool(budgets=list(budgets)), *pairs(*names)]))


def _of(found: Snapshot) -> PoolCalendar:
    (made,) = calendars(found, all_budgets(view(found)))
    return made


def test_a_scheduled_budget_closes_each_working_day() -> None:
    (schedule,) = calendar({"nodes": "2"}, CLOSED).schedules
    assert schedule.reasons == ("Underutilized", "Empty", "Drifted")
    closed = [one for one in schedule.windows if one.allowed == 0]
    assert {one.start.hour for one in closed[1:]} == {9}
    assert all(one.end - one.start <= timedelta(hours=8) for one in closed)
    assert len({one.start.date() for one in closed if one.start.weekday() < 5}) == len(closed) >= 5
    assert {one.allowed for one in schedule.windows} == {0, 2}


@pytest.mark.parametrize("step", range(0, 24 * DAYS, 5))
def test_every_hour_has_the_allowance_of_the_budgets(step: int) -> None:
    budgets = [{"nodes": "50%"}, CLOSED, {"nodes": "1", "schedule": "30 */6 * * *", "duration": "1h"}]
    (schedule,) = calendar(*budgets).schedules
    at = NOW + timedelta(hours=step)
    (window,) = [one for one in schedule.windows if one.start <= at < one.end]
    assert window.allowed == allowed_disruptions(budgets=budgets, nodes=3, now=at, reason="Empty")


def test_windows_follow_each_other_to_the_end() -> None:
    (schedule,) = calendar(CLOSED).schedules
    ends = [one.end for one in schedule.windows]
    assert [one.start for one in schedule.windows] == [NOW, *ends[:-1]]
    assert ends[-1] == NOW + timedelta(days=DAYS)
    assert None in {one.allowed for one in schedule.windows}


def test_reasons_with_other_budgets_have_their_own_schedule() -> None:
    found = calendar({"nodes": "1"}, {**CLOSED, "reasons": ["Drifted"]})
    assert {one.reasons: len(one.windows) > 1 for one in found.schedules} == {
        ("Underutilized", "Empty"): False,
        ("Drifted",): True,
    }


def test_days_are_cut_at_midnight() -> None:
    (schedule,) = calendar({"nodes": "0", "schedule": "0 22 * * *", "duration": "4h"}).schedules
    for day in schedule.days:
        assert len({one.start.date() for one in day}) == 1
    assert [sum(one.percent for one in day) for day in schedule.days] == [50, *[100] * (DAYS - 1), 50]
    assert [day[0].start.time().isoformat() for day in schedule.days[1:]] == ["00:00:00"] * DAYS


def test_a_schedule_that_fires_often_is_cut() -> None:
    (schedule,) = calendar({"nodes": "0", "schedule": "* * * * *", "duration": "30s"}).schedules
    assert (len(schedule.windows), schedule.more) == (MOST, True)


def test_a_budget_that_cannot_be_read_is_named() -> None:
    (schedule,) = calendar({"nodes": "0", "schedule": "whenever", "duration": "1h"}).schedules
    assert "budgets[0]" in schedule.problem
    assert "No calendar: budgets[0]" in page(snapshot([pool(budgets=[{**CLOSED, "schedule": "x"}])])).get("/next").text


def test_a_node_pool_without_nodes_has_a_calendar() -> None:
    found = _of(snapshot([pool(budgets=[CLOSED])]))
    assert (found.nodes, len(found.schedules)) == (0, 1)
    text = page(snapshot([pool(budgets=[CLOSED])])).get("/next").text
    assert "Budgets of NodePool default: 0 nodes" in text
    assert "09:00-17:00" in text
    assert "No disruption is in progress" in text


def test_the_page_has_days_and_windows() -> None:
    text = page(worlds.cluster(pool(budgets=[{"nodes": "1"}, CLOSED]))).get("/next").text
    assert "<summary>Underutilized, Empty, Drifted</summary>" in text
    assert "<b>0 of 2</b>" in text
    assert f"{NOW + timedelta(days=1):%a %d %b}" in text
