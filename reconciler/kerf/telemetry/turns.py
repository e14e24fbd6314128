"""What each turn of the loop took: exact figures of the latest ones, for benchmarks and for who asks why it is slow.

Histograms show the turns of weeks; these rows show each one, with the newest pod that it had processed, so that
the way of an event through the process can be followed from outside.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

#: So many turns are kept for profiling: some minutes' worth when events never end.
KEPT = 20_000


class Turn(msgspec.Struct, frozen=True, gc=False):
    """One turn. `ended` is the time of day in seconds; `seconds` it took, of which `cpu_seconds` were its own thread's.

    `deciding_seconds` went into the snapshot and the decision (0: a replica that waits); `newest_pod` is the highest
    resource version of a pod that the state had at its end.
    """

    ended: float
    seconds: float
    cpu_seconds: float
    deciding_seconds: float
    newest_pod: int


class Turns:
    """See the module. One thread times; any thread may read."""

    def __init__(self, kept: int) -> None:
        self._turns: deque[Turn] = deque(maxlen=kept)
        self._newest_pod = 0
        self._deciding = 0.0

    def saw_pod(self, resource_version: str) -> None:
        """A pod of this version was processed."""
        if resource_version.isdigit():
            self._newest_pod = max(self._newest_pod, int(resource_version))

    def decided(self, seconds: float) -> None:
        """In this turn something was decided, which took so long."""
        self._deciding += seconds

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Times one turn."""
        self._deciding = 0.0
        began, cpu = time.perf_counter(), time.thread_time()
        yield
        took, own = time.perf_counter() - began, time.thread_time() - cpu
        self._turns.append(Turn(time.time(), took, own, self._deciding, self._newest_pod))

    def latest(self) -> list[Turn]:
        """The turns that are kept, oldest first."""
        return list(self._turns.copy())

    def as_json(self) -> bytes:
        return msgspec.json.encode(self.latest())
