"""The calendar of disruption budgets: windows by schedule and duration, days, and bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from kerf.disruption.view import view
from kerf.model.snapshot import Snapshot
from kerf.views.calendar import DAYS, MOST, Cycle, PoolCalendar, calendars
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
    (schedule,) = calendar({"nodes": "0", "schedule": "*/2 9-17 * * *", "duration": "1m"}).schedules
    assert (len(schedule.windows), schedule.more) == (MOST, True)


@pytest.mark.parametrize(
    ("schedule", "duration", "every", "parts"),
    [
        ("*/20 * * * *", "10m", 20, [(10, 0), (10, None)]),
        ("5 * * * *", "15m", 60, [(15, 0), (45, None)]),
        ("*/25 * * * *", "10m", 60, [(20, 0), (15, None), (10, 0), (15, None)]),
        ("* * * * *", "30s", 1, [(0.5, 0), (0.5, None)]),
    ],
)
def test_a_schedule_of_minutes_is_one_cycle(
    schedule: str, duration: str, every: int, parts: list[tuple[float, int | None]]
) -> None:
    (found,) = calendar({"nodes": "0", "schedule": schedule, "duration": duration}).schedules
    assert found.hourly is not None
    assert (found.windows, found.more, found.hourly.every) == ((), False, timedelta(minutes=every))
    shown = [((one.end - one.start) / timedelta(minutes=1), one.allowed) for one in found.hourly.parts]
    turns = [[*shown[place:], *shown[:place]] for place in range(len(shown))]
    assert parts in turns  # it begins with the next change


@pytest.mark.parametrize("minute", range(0, 130, 7))
def test_a_cycle_has_the_allowance_of_every_minute(minute: int) -> None:
    budgets = [{"nodes": "0", "schedule": "*/20 * * * *", "duration": "10m"}, {"nodes": "50%"}]
    (found,) = calendar(*budgets).schedules
    assert found.hourly is not None
    at = found.hourly.parts[0].start + timedelta(days=2, minutes=minute)
    past = (at - found.hourly.parts[0].start) % found.hourly.every + found.hourly.parts[0].start
    (part,) = [one for one in found.hourly.parts if one.start <= past < one.end]
    assert part.allowed == allowed_disruptions(budgets=budgets, nodes=3, now=at, reason="Empty")


def test_minutes_whose_windows_touch_are_no_change() -> None:
    (found,) = calendar({"nodes": "0", "schedule": "*/20 * * * *", "duration": "20m"}).schedules
    assert [(one.allowed, one.end - one.start) for one in found.windows] == [(0, timedelta(days=DAYS))]


def test_windows_of_a_day_that_repeat_are_one_row() -> None:
    frequent = {"nodes": "0", "schedule": "*/20 9-16 * * mon-fri", "duration": "10m"}
    (found,) = calendar(frequent).schedules
    cycles = [one for day in found.days for one in day if isinstance(one, Cycle)]
    assert not found.more
    assert {(one.every, one.start.hour, one.end.hour) for one in cycles[1:-1]} == {(timedelta(minutes=20), 9, 16)}
    for day in found.days[1:-1]:
        assert len(day) <= 4
        assert sum(one.percent for one in day) == 100
        assert [one.end for one in day[:-1]] == [one.start for one in day[1:]]
    text = page(worlds.cluster(pool(budgets=[frequent]))).get("/next").text
    assert "every 20 minutes: " in text
    assert "</b> for 10 minutes" in text


def test_the_page_has_a_cycle_as_one_row() -> None:
    text = page(worlds.cluster(pool(budgets=[{"nodes": "0", "schedule": "*/20 * * * *", "duration": "10m"}]))).get(
        "/next"
    )
    row = re.sub(r"<[^>]+>", "", text.text.split('<p class="detail">')[1].split("</p>")[0])
    assert re.match(
        "Underutilized, Empty, Drifted: every 20 minutes: .+ for 10 minutes, then .+ for 10 minutes\\. The", row
    )
    hourly = page(worlds.cluster(pool(budgets=[{"nodes": "0", "schedule": "@hourly", "duration": "15m"}]))).get("/next")
    assert "every hour: " in hourly.text


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
