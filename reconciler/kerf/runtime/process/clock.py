"""The machine's clock, as the Clock port; and a clock whose time of day does not follow every step of it."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Final

from kerf.ports import Clock

#: A step of the time of day counts once it has lasted for so long.
STEP_LASTS: Final = timedelta(seconds=10)
#: A smaller step counts at once: time servers correct clocks so.
SMALL_STEP: Final = timedelta(seconds=1)

#: Where there is one, the clock that also counts while the machine is suspended: a lease runs out meanwhile.
_STEADY: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """See `kerf.ports.Clock`."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.clock_gettime(_STEADY)

    def sleep(self, seconds: float) -> None:
        time.sleep(max(seconds, 0.0))


class SteadyClock:
    """The Clock port over another clock. Any thread may use it.

    A clock that is hours ahead for a few seconds would expire nodes and end launches. So a step of the time of day
    against monotonic time counts once it has lasted for STEP_LASTS; until then time continues as before the step.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        #: The time of day at monotonic 0, as it counts; since when (monotonic) it is another.
        self._origin = clock.now() - timedelta(seconds=clock.monotonic())
        self._stepped_at: float | None = None
        #: The latest reading with its monotonic time, and the answer: simulated time stands still during a reconcile.
        self._latest = (clock.now(), clock.monotonic())
        self._answer = self._latest[0]

    @classmethod
    def over(cls, clock: Clock) -> SteadyClock:
        """The clock itself when it is steady, else a steady one over it."""
        return clock if isinstance(clock, cls) else cls(clock)

    def now(self) -> datetime:
        with self._lock:
            latest = self._clock.now(), self._clock.monotonic()
            if latest != self._latest:
                self._answer, self._latest = self._counted(*latest), latest
            return self._answer

    def _counted(self, reading: datetime, passed: float) -> datetime:
        """The time of day that counts for a reading."""
        origin = reading - timedelta(seconds=passed)
        if abs(origin - self._origin) > SMALL_STEP and not self._has_lasted(passed):
            return self._origin + timedelta(seconds=passed)
        self._origin, self._stepped_at = origin, None
        return reading

    def _has_lasted(self, passed: float) -> bool:
        if self._stepped_at is None:
            self._stepped_at = passed
        return passed - self._stepped_at >= STEP_LASTS.total_seconds()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)
