"""Schedules: Go's grammar, and the first time they fire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf_api import cron

FRIDAY = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("* * * * *", "2026-01-02T12:01"),
        ("0 12 * * *", "2026-01-03T12:00"),
        ("@hourly", "2026-01-02T13:00"),
        ("@daily", "2026-01-03T00:00"),
        ("@midnight", "2026-01-03T00:00"),
        ("@weekly", "2026-01-04T00:00"),
        ("@monthly", "2026-02-01T00:00"),
        ("@yearly", "2027-01-01T00:00"),
        ("@annually", "2027-01-01T00:00"),
        ("0 9 * * MON-fri", "2026-01-05T09:00"),
        ("*/20 * * * *", "2026-01-02T12:20"),
        ("50/5 * * * *", "2026-01-02T12:50"),
        ("0 0 ? feb ?", "2026-02-01T00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
        ("0 0 13 * 5", "2026-01-09T00:00"),  # both day fields: either will do
        ("0 0 */2 * 6", "2026-01-03T00:00"),  # a star with a step restricts, so either will do
        ("0 0 */1 * 6", "2026-01-03T00:00"),  # a star with step 1 does not
        ("0 0 1,* * 0", "2026-01-04T00:00"),  # a star in a list counts as a star
        ("0 +9 * * 1", "2026-01-05T09:00"),
    ],
)
def test_next_after(schedule: str, expected: str) -> None:
    found = cron.parse(schedule).next_after(FRIDAY)
    assert found is not None
    assert found.strftime("%Y-%m-%dT%H:%M") == expected


@pytest.mark.parametrize("schedule", ["0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_a_schedule_may_never_fire(schedule: str) -> None:
    assert cron.parse(schedule).next_after(FRIDAY) is None


@pytest.mark.parametrize(
    ("schedule", "says"),
    [
        ("", "5 fields"),
        ("* * * *", "not 4"),
        ("* * * * * *", "not 6"),
        ("60 * * * *", "minute: '60' is not a number from 0 to 59"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day of month"),
        ("* * 32 * *", "1 to 31"),
        ("* * * 13 *", "a name from jan to dec"),
        ("* * * * 7", "0 to 6 or a name from sun to sat"),
        ("* * * * sunday", "sun to sat"),
        ("* * L * *", "day of month"),
        ("* * * * 5#2", "day of week"),
        ("* * 15W * *", "day of month"),
        ("5-1 * * * *", "backwards"),
        ("*/0 * * * *", "step"),
        ("*/x * * * *", "step"),
        ("1/2/3 * * * *", "step"),
        ("1-2-3 * * * *", "minute"),
        (", * * * *", "no value"),
        ("-1 * * * *", "minute"),
        ("@dailyX", "@daily"),
        ("@every 1h", "not one of"),
        ("TZ=UTC 0 0 * * *", "not 6"),
        ("* " * 5000, "too long"),
    ],
)
def test_what_is_no_schedule(schedule: str, says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("+", r"\+")):
        cron.parse(schedule)


def test_time_zones_are_converted_and_the_answer_is_utc() -> None:
    elsewhere = FRIDAY.astimezone(timezone(timedelta(hours=-5)))
    assert cron.parse("0 13 * * *").next_after(elsewhere) == datetime(2026, 1, 2, 13, tzinfo=UTC)


def test_the_end_of_time_is_no_error() -> None:
    assert cron.parse("@yearly").next_after(datetime.max.replace(tzinfo=UTC)) is None


instants = st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1)).map(lambda instant: instant.replace(tzinfo=UTC))
schedules = st.sampled_from(["* * * * *", "@weekly", "*/7 3 * * mon", "0 0 1,15 * *", "30 8-17 * jan-jun 1-5"])


@given(schedules, instants)
def test_the_next_time_is_later_and_nothing_lies_between(schedule: str, instant: datetime) -> None:
    parsed = cron.parse(schedule)
    found = parsed.next_after(instant)
    assert found is not None
    assert found > instant
    assert parsed.next_after(found - timedelta(seconds=1)) == found
    assert parsed.next_after(instant + (found - instant) / 2) == found
