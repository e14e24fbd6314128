"""Schedules: the next hit is the one that a clock would find that looks at every minute."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from kerf_api import cron

MINUTE = timedelta(minutes=1)
#: How far the model looks, minute by minute.
DAYS = 9
#: Field by field: the lowest and the highest value.
BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
instants = st.datetimes(datetime(2000, 1, 1), datetime(2060, 1, 1)).map(lambda found: found.replace(tzinfo=UTC))


def entries(low: int, high: int) -> st.SearchStrategy[str]:
    """One entry of a list: a star, a number, a range, each perhaps with a step."""
    numbers = st.integers(low, high)
    ranges = st.tuples(numbers, numbers).map(lambda pair: f"{min(pair)}-{max(pair)}")
    spans = st.one_of(st.just("*"), numbers.map(str), ranges)
    return st.one_of(spans, st.tuples(spans, st.integers(1, 12)).map(lambda pair: f"{pair[0]}/{pair[1]}"))


words = [st.one_of(st.just("*"), st.lists(entries(*bounds), min_size=1, max_size=3).map(",".join)) for bounds in BOUNDS]
schedules = st.tuples(*words).map(" ".join)


def values(word: str, low: int, high: int) -> tuple[set[int], bool]:
    """The numbers of a field, and whether a bare star is among its entries."""
    found: set[int] = set()
    for entry in word.split(","):
        span, slash, step = entry.partition("/")
        first, dash, last = span.partition("-")
        begin = low if span == "*" else int(first)
        end = high if span == "*" or (slash and not dash) else int(last or first)
        found |= set(range(begin, end + 1, int(step or 1)))
    return found, any(entry in ("*", "*/1") for entry in word.split(","))


def naive(schedule: str) -> Callable[[datetime], bool]:
    """Whether a schedule fires at a minute, from the fields as written. Both day fields restricted: either will do."""
    fields = [values(word, *bounds) for word, bounds in zip(schedule.split(), BOUNDS, strict=True)]

    def fires(at: datetime) -> bool:
        minute, hour, day, month, weekday = (
            number in field[0]
            for number, field in zip((at.minute, at.hour, at.day, at.month, at.isoweekday() % 7), fields, strict=True)
        )
        days = day and weekday if fields[2][1] or fields[4][1] else day or weekday
        return minute and hour and month and days

    return fires


@settings(max_examples=60)
@given(schedules, instants)
def test_the_next_hit_is_that_of_a_clock_that_looks_at_every_minute(schedule: str, instant: datetime) -> None:
    fires, at = naive(schedule), instant.replace(second=0, microsecond=0) + MINUTE
    end = at + timedelta(days=DAYS)
    while at < end and not fires(at):
        at += MINUTE
    found = cron.parse(schedule).next_after(instant)
    if at < end:
        assert found == at
    else:
        assert found is None or (found >= end and fires(found))


@given(schedules, instants)
def test_hits_are_strictly_later_whole_minutes_and_in_order(schedule: str, instant: datetime) -> None:
    parsed = cron.parse(schedule)
    found = parsed.next_after(instant)
    if found is None:
        return
    assert found > instant
    assert (found.second, found.microsecond, found.tzinfo) == (0, 0, UTC)
    assert parsed.next_after(found - timedelta(microseconds=1)) == found
    following = parsed.next_after(found)
    assert following is None or following > found


@given(st.sampled_from(sorted(cron.DESCRIPTORS)), instants)
def test_a_descriptor_is_its_five_fields(descriptor: str, instant: datetime) -> None:
    assert cron.parse(descriptor).next_after(instant) == cron.parse(cron.DESCRIPTORS[descriptor]).next_after(instant)
    found = cron.parse(descriptor).next_after(instant)
    assert found is not None
    assert naive(cron.DESCRIPTORS[descriptor])(found)
