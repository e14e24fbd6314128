"""Reviews of many namespaces for one person: a bounded number at once, and one flight for all requests of the person.

A flight continues after the deadline of a request, so that a later request finds its answers.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from kerf.cli.gate.claims import Identity
from kerf.cli.gate.recent import Recent
from kerf.ports import PortError

#: Reviews at once, of all people together.
THREADS: Final = 16
#: Seconds that a request waits for the reviews of all namespaces.
PATIENCE_SECONDS: Final = 10.0
#: Requests of one person that wait long; a further one gets the answers so far. Each occupies a thread of the page.
MOST_WAITING: Final = 1
#: Seconds that each request waits, also while another one waits longer.
_SHORT_SECONDS: Final = 1.0
#: Complete answers that are kept: persons with their namespaces.
MOST_KEPT: Final = 1024
#: Seconds until a flight ends without the remaining answers.
LONGEST_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Answered:
    """The namespaces whose pods a person may list; None: those of every namespace.

    `unanswered` is the number of namespaces without an answer within the deadline, `failed` of those whose review
    failed. Both count as refused.
    """

    namespaces: frozenset[str] | None
    unanswered: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Permission:
    """The answer of a review, and when it was asked for; None: the review failed."""

    allowed: bool | None
    asked: float


class _Flight:
    """The reviews of some namespaces. Belongs to any thread."""

    def __init__(self, names: frozenset[str], until: float) -> None:
        self._left, self._until, self._names = deque(sorted(names)), until, len(names)
        self._answers: Final = dict[str, Permission]()
        self._lock = threading.Lock()
        self.ended: Final = threading.Event()
        self._seats: Final = threading.BoundedSemaphore(MOST_WAITING)
        self.failure: BaseException | None = None

    def next(self, now: float) -> str | None:
        """A namespace to ask about; None when there is none left, or no time."""
        with self._lock:
            if now >= self._until:
                self.ended.set()
            return self._left.popleft() if self._left and not self.ended.is_set() else None

    def wait(self, seconds: float) -> None:
        """Until the flight ends, so many seconds at most; a second while another request waits that long."""
        if self.ended.wait(min(seconds, _SHORT_SECONDS)):
            return
        if self._seats.acquire(blocking=False):
            try:
                self.ended.wait(max(0.0, seconds - _SHORT_SECONDS))
            finally:
                self._seats.release()

    def answered(self, name: str, found: Permission) -> bool:
        """Note an answer. Whether it is the last one."""
        with self._lock:
            self._answers[name] = found
            return len(self._answers) == self._names

    def failed(self, error: BaseException) -> None:
        """End the flight with an error for each waiting request."""
        self.failure = error
        self.ended.set()

    @property
    def oldest(self) -> float:
        """The time of the first question. There must be an answer."""
        with self._lock:
            return min(found.asked for found in self._answers.values())

    def found(self, since: float) -> Answered:
        """The answers to questions from this time on; earlier ones count as unanswered."""
        with self._lock:
            recent: Mapping[str, Permission] = {
                name: found for name, found in self._answers.items() if found.asked > since
            }
        allowed = frozenset(name for name, found in recent.items() if found.allowed)
        failed = sum(found.allowed is None for found in recent.values())
        return Answered(allowed, self._names - len(recent), failed)


class Flights:
    """Flights by person and namespaces. Belongs to any thread.

    Answers to questions of more than `seconds` ago, by the clock `now`, are not used.
    """

    def __init__(self, ask: Callable[[Identity, str], Permission], seconds: float, now: Callable[[], float]) -> None:
        """`ask` reviews one namespace and raises PortError."""
        self._ask, self._seconds, self._now = ask, seconds, now
        self._kept: Final = Recent[tuple[Identity, frozenset[str]], Answered](seconds, MOST_KEPT, now)
        self._lock = threading.Lock()
        self._flights: dict[tuple[Identity, frozenset[str]], _Flight] = {}
        # Its threads begin with the first question, after gunicorn's fork.
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="reviews")

    def answers(self, who: Identity, names: frozenset[str], patience: float) -> Answered:
        """The answers about these namespaces within so many seconds. Raises the error of a bug."""
        if not names:
            return Answered(names)
        known = self._kept.get((who, names))
        if known is not None:
            return known
        flight = self._flight(who, names)
        flight.wait(patience)
        if flight.failure is not None:
            raise flight.failure
        return flight.found(self._now() - self._seconds)

    def _flight(self, who: Identity, names: frozenset[str]) -> _Flight:
        """The flight that is under way, or a new one."""
        key = who, names
        with self._lock:
            flight = self._flights.get(key)
            if flight is not None and not flight.ended.is_set():
                return flight
            flight = _Flight(names, time.monotonic() + LONGEST_SECONDS)
            going = {other: one for other, one in self._flights.items() if not one.ended.is_set()}
            self._flights = {**going, key: flight}
        for _ in range(min(THREADS, len(names))):
            self._pool.submit(self._step, who, names, flight)
        return flight

    def _step(self, who: Identity, names: frozenset[str], flight: _Flight) -> None:
        """Ask about one namespace, then queue behind the flights of other people."""
        name = flight.next(time.monotonic())
        if name is None:
            return
        try:
            last = flight.answered(name, self._asked(who, name))
        except Exception as error:  # the waiting requests raise it
            flight.failed(error)
            return
        if last:
            oldest = flight.oldest
            self._kept.put((who, names), flight.found(oldest - self._seconds), oldest)
            flight.ended.set()
        else:
            self._pool.submit(self._step, who, names, flight)

    def _asked(self, who: Identity, name: str) -> Permission:
        """The answer about one namespace. A failed review is not sent again until its answer expires."""
        began = self._now()
        try:
            return self._ask(who, name)
        except PortError:
            return Permission(None, began)
