"""Kubernetes events: written beside the loop, never by it; the same one not again for a while; never a flood.

An event is a message for a person, not state: one that cannot be written is dropped. Source: operations reference §3.1.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from kerf.model.kinds import Ref
from kerf.model.plan import Event
from kerf.ports import Clock, Kube
from kerf.telemetry.reconciling import reconcile_id
from kerf_api import labels

#: Events of one reason, and all together, per second and at once.
NOMINATED_RATE, NOMINATED_BURST = 5.0, 10
RATE, BURST = 50.0, 200
NOMINATED = "Nominated"
_WAITING = 2000
#: What becomes of an event: it is the same as one of a moment ago, one of too many, or it could not be written.
OUTCOMES = WRITTEN, REPEATED, FLOOD, FAILED = "written", "repeated", "flood", "failed"
#: The API server refuses longer messages.
LONGEST = 1024
#: With so many, those are looked for that may be forgotten; and again only when there are twice as many as were left.
_REMEMBERED = 20000


class Bucket:
    """A token bucket: `rate` per second, at most `burst` at once."""

    def __init__(self, rate: float, burst: int, now: datetime) -> None:
        self._rate, self._burst = rate, burst
        self._tokens, self._at = float(burst), now

    def take(self, now: datetime) -> bool:
        """Whether one more is allowed."""
        passed = max((now - self._at).total_seconds(), 0.0)
        self._tokens, self._at = min(self._burst, self._tokens + passed * self._rate), now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


@dataclass(frozen=True, slots=True)
class _Key:
    ref: Ref
    reason: str
    dedupe: str


def bounded(event: Event) -> Event:
    """The same event, with no more of its message than an event may have."""
    return event if len(event.message) <= LONGEST else replace(event, message=f"{event.message[: LONGEST - 1]}…")


def _same(event: Event) -> _Key:
    return _Key(event.ref, event.reason, f"{event.dedupe} {event.message}")


class EventWriter:
    """See the module. With `threaded`, a thread of its own writes; without, `write` does. One thread calls `write`."""

    def __init__(
        self,
        kube: Kube,
        clock: Clock,
        *,
        threaded: bool = False,
        on_error: Callable[[Exception], None] = lambda error: None,
        on_event: Callable[[str, str], None] = lambda type_, outcome: None,
    ) -> None:
        """`on_event` hears what became of each: its type, and one of `OUTCOMES`."""
        self._kube, self._clock, self._on_error, self._on_event = kube, clock, on_error, on_event
        self._until: dict[_Key, datetime] = {}
        self._sweep_at = _REMEMBERED
        now = clock.now()
        self._all, self._nominated = Bucket(RATE, BURST, now), Bucket(NOMINATED_RATE, NOMINATED_BURST, now)
        self._queue: queue.Queue[tuple[Event, str] | None] | None = queue.Queue(_WAITING) if threaded else None
        self._thread = threading.Thread(target=self._work, name="events", daemon=True) if threaded else None
        if self._thread is not None:
            self._thread.start()

    def write(self, event: Event) -> bool:
        """Write it, or have it written soon; False when it was left out (a repeat, or too many)."""
        now = self._clock.now()
        event = bounded(event)
        if not self._new(event, now):
            self._on_event(event.type, REPEATED)
            return False
        if not (self._room(event.reason, now) and self._sent(event)):
            self._on_event(event.type, FLOOD)
            return False
        if event.same_seconds:  # what was left out is tried again sooner
            self._until[_same(event)] = now + timedelta(seconds=event.same_seconds)
        return True

    def close(self, seconds: float = 2.0) -> None:
        """Write what waits, for so long at most."""
        if self._queue is not None and self._thread is not None:
            try:
                self._queue.put_nowait(None)
            except queue.Full:
                return
            self._thread.join(seconds)

    def _room(self, reason: str, now: datetime) -> bool:
        return (reason != NOMINATED or self._nominated.take(now)) and self._all.take(now)

    def _sent(self, event: Event) -> bool:
        """Whether it was written, or will be."""
        if self._queue is None:
            self._emit(event, reconcile_id())
            return True
        try:
            self._queue.put_nowait((event, reconcile_id()))
        except queue.Full:
            return False
        return True

    def _new(self, event: Event, now: datetime) -> bool:
        key = _Key(event.ref, event.reason, event.dedupe)
        known = (key, _same(event)) if event.same_seconds else (key,)
        if any((until := self._until.get(one)) is not None and until > now for one in known):
            return False
        if len(self._until) >= self._sweep_at:
            self._until = {k: u for k, u in self._until.items() if u > now}
            self._sweep_at = max(_REMEMBERED, 2 * len(self._until))
        self._until[key] = now + timedelta(seconds=event.dedupe_seconds)
        return True

    def _work(self) -> None:
        assert self._queue is not None
        while (waiting := self._queue.get()) is not None:
            self._emit(*waiting)

    def _emit(self, event: Event, look: str) -> None:
        links = {labels.RECONCILE_ID: look} if look else None
        try:
            self._kube.emit(event.ref, event.uid, event.type, event.reason, event.message, annotations=links)
        except Exception as error:  # one event is not worth the thread that writes the others
            self._on_event(event.type, FAILED)
            self._on_error(error)
        else:
            self._on_event(event.type, WRITTEN)
