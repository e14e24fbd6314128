"""Time that jumps. Nothing in the sandbox waits: the world moves its clock to the next instant when something is due.

The agenda holds what is due when. Entries of one instant run in the order in which they were made, so that a world
with the same seed always lives the same life.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualClock:
    """The Clock port over a time that only moves on demand."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - START).total_seconds()

    def sleep(self, seconds: float) -> None:
        """Move ahead; what became due meanwhile happens at the world's next step."""
        self.jump(self._now + timedelta(seconds=max(seconds, 0.0)))

    def jump(self, to: datetime) -> None:
        """Move to an instant; one that has passed changes nothing."""
        self._now = max(self._now, to)


class Agenda:
    """What is to be done when."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._entries: list[tuple[datetime, int, Callable[[], None]]] = []
        self._made = 0

    def at(self, due: datetime, deed: Callable[[], None]) -> None:
        self._made += 1
        heapq.heappush(self._entries, (due, self._made, deed))

    def after(self, seconds: float, deed: Callable[[], None]) -> None:
        self.at(self._clock.now() + timedelta(seconds=seconds), deed)

    def next_due(self) -> datetime | None:
        return self._entries[0][0] if self._entries else None

    def run_due(self) -> bool:
        """Do everything that is due by now; whether there was anything."""
        busy = False
        while self._entries and self._entries[0][0] <= self._clock.now():
            _, _, deed = heapq.heappop(self._entries)
            deed()
            busy = True
        return busy
