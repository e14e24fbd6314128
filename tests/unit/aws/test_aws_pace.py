"""How fast EC2 is asked: buckets by kind of request, what goes first, and what becomes of whom EC2 refuses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from kerf.aws.requests.pace import (
    ALL,
    CREATE,
    DESCRIBE,
    PATIENCE_SECONDS,
    RECOVERS_SECONDS,
    RUN,
    SLOWEST,
    TAG,
    TERMINATE,
    TIDY,
    Bucket,
    Pace,
    family,
)
from kerf.ports import Throttled


class Time:
    """Passes when somebody sleeps. `held` and `refused` are what a pace told."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.held: list[tuple[str, float]] = []
        self.refused: list[str] = []

    def pace(self, rate: float = 1.0) -> Pace:
        return Pace(
            rate,
            held=lambda family, seconds: self.held.append((family, seconds)),
            refused=self.refused.append,
            elapsed=lambda: self.now,
            sleep=self.sleep,
        )

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds

    def took(self, call: Callable[[], Any]) -> float:
        began = self.now
        call()
        return self.now - began


def until_refused(pace: Pace, operation: str, most: int = 10_000) -> int:
    """So many are admitted until one is told to come again."""
    for count in range(most):
        try:
            pace.admit(operation)
        except Throttled:
            return count
    return most


# --- a bucket ---------------------------------------------------------------------------------------------------
def test_a_bucket_gives_what_it_holds_and_then_what_flows_in() -> None:
    bucket = Bucket(3, 2, now=10.0)
    for _ in range(3):
        assert bucket.wait(10.0) == 0
        bucket.take(10.0)
    assert bucket.wait(10.0) == pytest.approx(0.5)
    assert bucket.wait(10.25) == pytest.approx(0.25)
    assert bucket.wait(10.5) == 0
    assert bucket.wait(1_000_000.0, leaves=2 / 3) == 0
    assert bucket.wait(1_000_000.0, leaves=0.9) == pytest.approx(0.35)


def test_a_bucket_that_was_refused_is_empty_and_half_as_fast_until_it_has_recovered() -> None:
    bucket = Bucket(100, 10, now=0.0)
    bucket.refused(0.0)
    assert bucket.wait(0.0) == pytest.approx(0.2)
    bucket.refused(0.0)
    assert bucket.wait(0.0) == pytest.approx(0.4)
    for _ in range(20):
        bucket.refused(0.0)
    assert bucket.wait(0.0) == pytest.approx(0.1 / SLOWEST)
    assert bucket.wait(1e9) == 0


def test_it_has_its_whole_pace_again_after_a_while() -> None:
    bucket = Bucket(100, 10, now=0.0)
    bucket.refused(0.0)
    for now, gained in ((0.0, 0.5), (RECOVERS_SECONDS / 2, 0.5**0.5), (RECOVERS_SECONDS, 1.0)):
        while not bucket.wait(now):
            bucket.take(now)
        before = bucket.wait(now) * gained
        assert before * 10 <= 1.0
        bucket.take(now)
        assert bucket.wait(now) * gained - before == pytest.approx(0.1)


# --- families ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("TerminateInstances", TERMINATE),
        ("DescribeInstances", DESCRIBE),
        ("CreateFleet", CREATE),
        ("CreateLaunchTemplate", CREATE),
        ("RunInstances", RUN),
        ("CreateTags", TAG),
        ("DeleteLaunchTemplate", TIDY),
    ],
)
def test_what_is_alike(operation: str, expected: object) -> None:
    assert family(operation) == expected


def test_what_ends_machines_leaves_least_to_others_and_what_looks_less_than_what_makes() -> None:
    assert TERMINATE.leaves < DESCRIBE.leaves < CREATE.leaves == RUN.leaves == TAG.leaves < TIDY.leaves < 1


# --- the pace ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("of", [("CreateFleet", CREATE), ("TerminateInstances", TERMINATE), ("CreateTags", TAG)])
def test_ordinary_work_never_waits(of: tuple[str, Any]) -> None:
    time, (operation, kind) = Time(), of
    pace = time.pace()
    for _ in range(int(kind.burst)):
        pace.admit(operation)
    assert (time.now, time.held) == (1000.0, [])


def test_what_comes_too_fast_waits_for_a_moment_and_then_is_told_to_come_again() -> None:
    time = Time()
    pace = time.pace()
    for _ in range(50):
        pace.admit("CreateFleet")
    assert time.took(lambda: pace.admit("CreateFleet")) == pytest.approx(1 / CREATE.per_second)
    assert [family for family, _ in time.held] == ["create"]
    pace.throttled("CreateFleet")
    for _ in range(5):
        pace.throttled("CreateFleet")
    with pytest.raises(Throttled, match="CreateFleet") as told:
        pace.admit("CreateFleet")
    assert told.value.retry_after_seconds > PATIENCE_SECONDS


def test_225_what_ec2_refuses_is_slower_by_itself() -> None:
    """And only that kind of request, not even all of its family."""
    time = Time()
    pace = time.pace()
    for _ in range(3):
        pace.throttled("CreateFleet")
    assert time.refused == ["create"] * 3
    for operation in ("TerminateInstances", "DescribeInstances", "CreateLaunchTemplate", "CreateTags"):
        assert time.took(lambda of=operation: pace.admit(of)) == 0  # type: ignore[misc]
    assert time.took(lambda: pace.admit("CreateFleet")) > 1
    time.now += 10 * RECOVERS_SECONDS
    assert time.took(lambda: pace.admit("CreateFleet")) == 0


def spend(pace: Pace, prefix: str, count: int) -> None:
    """So many requests of as many different kinds, so that none of them finds its own bucket empty."""
    for number in range(count):
        pace.admit(f"{prefix}{number}")


def test_225_when_all_together_are_too_many_what_is_urgent_finds_its_part() -> None:
    time = Time()
    pace = time.pace()
    spend(pace, "Create", int((1 - CREATE.leaves) * ALL.burst))
    spend(pace, "Describe", int((CREATE.leaves - DESCRIBE.leaves) * ALL.burst))
    for _ in range(int(DESCRIBE.leaves * ALL.burst)):
        pace.admit("TerminateInstances")
    assert time.held == []
    assert time.took(lambda: pace.admit("TerminateInstances")) == pytest.approx(1 / ALL.per_second)
    for operation in ("DescribeOthers", "CreateOthers"):
        assert time.took(lambda of=operation: pace.admit(of)) > 0.7  # type: ignore[misc]


def test_225_what_looks_waits_before_what_ends_does_and_what_makes_before_both() -> None:
    time = Time()
    pace = time.pace()
    spend(pace, "Create", int((1 - CREATE.leaves) * ALL.burst))
    assert time.took(lambda: pace.admit("DescribeOthers")) == 0
    assert time.took(lambda: pace.admit("CreateOthers")) > 0
    spend(pace, "Describe", int((CREATE.leaves - DESCRIBE.leaves) * ALL.burst))
    assert time.took(lambda: pace.admit("TerminateInstances")) == 0
    assert time.took(lambda: pace.admit("DescribeOthers")) > 0


def test_without_a_rate_nothing_waits() -> None:
    time = Time()
    assert until_refused(time.pace(0), "CreateFleet", most=1000) == 1000
    assert time.now == 1000.0


@pytest.mark.parametrize("rate", [0.001, 0.5, 2.0])
def test_at_any_rate_something_gets_through(rate: float) -> None:
    time = Time()
    pace = time.pace(rate)
    for operation in ("TerminateInstances", "DescribeInstances", "CreateFleet", "CreateTags", "DeleteLaunchTemplate"):
        pace.admit(operation)
        time.now += 1_000_000.0


def test_many_threads_take_no_more_than_there_are() -> None:
    time, lock, admitted = Time(), threading.Lock(), [0]
    pace = Pace(1.0, elapsed=lambda: time.now, sleep=lambda seconds: None)

    def take() -> None:
        for _ in range(20):
            try:
                pace.admit("TerminateInstances")
            except Throttled:
                continue
            with lock:
                admitted[0] += 1

    threads = [threading.Thread(target=take) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert admitted[0] == TERMINATE.burst
