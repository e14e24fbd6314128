"""What every clock must do: the machine's, the steady one over it, and the virtual one of the sandbox."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kerf.ports import Clock
from kerf.runtime.process.clock import SteadyClock, SystemClock
from kerf.sandbox.clock import VirtualClock


@pytest.fixture(
    params=[VirtualClock, SystemClock, lambda: SteadyClock(SystemClock())], ids=["virtual", "system", "steady"]
)
def clock(request: pytest.FixtureRequest) -> Clock:
    made: Clock = request.param()
    return made


def test_now_is_aware_and_in_utc(clock: Clock) -> None:
    assert clock.now().utcoffset() == timedelta(0)


def test_sleep_takes_as_long_as_it_was_asked_to(clock: Clock) -> None:
    before, began = clock.now(), clock.monotonic()
    clock.sleep(0.05)
    assert clock.monotonic() - began >= 0.05
    assert clock.now() - before >= timedelta(seconds=0.05)


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_sleep_of_nothing_or_less_returns(clock: Clock, seconds: float) -> None:
    before = clock.monotonic()
    clock.sleep(seconds)
    assert clock.monotonic() >= before


def test_monotonic_time_never_goes_back(clock: Clock) -> None:
    readings = [clock.monotonic() for _ in range(1000)]
    assert readings == sorted(readings)
