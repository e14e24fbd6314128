"""The flight recorder. The loop's thread hands over the changes of each decision, and never waits for the recorder.

The changes are frozen objects, in a queue with a bound. A thread removes secrets from them, encodes and writes them,
and gives way to the loop before each step. When the queue is full, the decision is not recorded: the next recorded one
has the number of missed ones, and the changes since the latest recorded one. An error of the recorder changes no
decision. After one it begins a new part. After an error of the disk, which may be full, it tries again a minute later,
with a new part. After a bound that is too small it stops.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Final

from kerf.model.aws.cloud import Region
from kerf.model.memory import Memory
from kerf.model.plan import Plan
from kerf.model.snapshot import Snapshot
from kerf.records.encoding import Encoder
from kerf.records.following import Changes, Follower
from kerf.runtime.recording.ring import Ring, TooLarge
from kerf.telemetry.precedence import GiveWay, at_once

Decide = Callable[[Snapshot, Memory], Plan]
#: Decisions that wait for the recorder: a few seconds of a busy loop.
CAPACITY: Final = 256
_FLUSH_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 2.0
_WAIT_SECONDS: Final = 0.001
_PAUSE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class _Noted:
    changes: Changes
    plan: Plan
    missed: int


class Recorder:
    """See the module. `note` belongs to the loop's thread."""

    def __init__(
        self,
        ring: Ring,
        encoder: Encoder,
        on_error: Callable[[Exception], None],
        give_way: GiveWay = at_once,
        capacity: int = CAPACITY,
        pause: float = _PAUSE_SECONDS,
    ) -> None:
        """`on_error` gets what keeps decisions from being recorded; any thread may call it. `pause`: seconds."""
        self._ring, self._encoder, self._on_error, self._give_way = ring, encoder, on_error, give_way
        #: How long, and until when, no decision is written after an error of the disk; seconds of monotonic time.
        self._pause, self._paused_until = pause, 0.0
        self._queue: SimpleQueue[_Noted | None] = SimpleQueue()
        #: How many decisions may wait, were handed over, and were taken by the thread.
        self._capacity, self._handed, self._written = capacity, 0, 0
        self._follower, self._missed, self._skipped = Follower(), 0, 0
        #: Whether the thread asks for whole changes; whether it waits for them, as those in the queue are not whole.
        self._lost, self._waits = threading.Event(), False
        #: Whether the latest decision could not be written; whether the thread has ended.
        self._fails, self._ended = False, threading.Event()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def deciding(self, decide: Decide, region: Callable[[], Region | None]) -> Decide:
        """The same function; its decisions are recorded. `region` are the facts behind the instance types."""

        def recorded(snapshot: Snapshot, memory: Memory) -> Plan:
            plan = decide(snapshot, memory)
            self.note(snapshot, plan, region())
            return plan

        return recorded

    @property
    def failing(self) -> bool:
        """Whether an error keeps decisions from being recorded. Any thread may ask."""
        return self._fails

    def note(self, snapshot: Snapshot, plan: Plan, region: Region | None) -> None:
        """Hand over a decision, or count it as missed."""
        if self._ended.is_set():
            return
        if self._queue.qsize() >= self._capacity or monotonic() < self._paused_until:
            self._missed += 1
            return
        try:
            if self._lost.is_set():
                self._lost.clear()
                self._follower = Follower()
            changes = self._follower.changes(snapshot, region)
            self._queue.put(_Noted(changes, plan, self._missed))
            self._handed += 1
            self._follower.accepted(snapshot, changes)
            self._missed = 0
        except Exception as error:
            self._missed += 1
            self._failed(error)

    def close(self) -> None:
        """Write what is in the queue, but for a few seconds at most."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join(_CLOSE_SECONDS)
        self._ended.set()

    def wait(self) -> None:
        """Return when all decisions so far are written, or the recording has ended."""
        while self._written < self._handed and not self._ended.is_set():
            sleep(_WAIT_SECONDS)

    # --- the thread ---------------------------------------------------------------------------------------------
    def _run(self) -> None:
        at, flushed = None, monotonic()
        try:
            while not self._ended.is_set():
                with suppress(Empty):
                    noted = self._queue.get(timeout=_FLUSH_SECONDS)
                    if noted is None:
                        break
                    at = noted.changes.at
                    self._guarded(partial(self._record, noted))
                    self._written += 1
                if at is not None and monotonic() - flushed >= _FLUSH_SECONDS:
                    self._guarded(partial(self._ring.flush, at))
                    flushed = monotonic()
            self._guarded(self._ring.close)
        except TooLarge as error:
            self._fails = True
            self._on_error(error)
        finally:
            self._ended.set()

    def _guarded(self, step: Callable[[], None]) -> None:
        """After an error, the next decision begins a new part; after one of the disk, not at once. Raises TooLarge."""
        try:
            step()
        except TooLarge:
            raise
        except Exception as error:
            if isinstance(error, OSError):
                self._paused_until = monotonic() + self._pause
                self._ring.abandon()
            self._waits = True
            self._failed(error)

    def _record(self, noted: _Noted) -> None:
        """Write a decision, or count it. Raises OSError, TooLarge."""
        self._give_way()
        changes, encoder = noted.changes, self._encoder
        self._skipped += 1 + noted.missed
        self._waits = self._waits and changes.whole is None
        if self._waits:
            return
        lines = encoder.take(changes)
        if lines is None or self._ring.due(changes.at):
            self._ring.begin(self._gently(encoder.checkpoint(changes)), changes.at)
            lines = []
        self._ring.write([*lines, encoder.decision(changes, noted.plan, self._skipped - 1)])
        self._skipped, self._fails = 0, False

    def _gently(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        for line in lines:
            self._give_way()
            yield line

    def _failed(self, error: Exception) -> None:
        self._fails = True
        self._lost.set()
        self._on_error(error)
