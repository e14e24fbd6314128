"""Whether the API server answers slowly, by the times of its answers within the latest minute.

Lists and watches do not count: a list may be large, and a watch lasts. Source of the limit: Kubernetes, "API call
latency SLIs/SLOs": 1 s for a call about a single object. The SLO is about the 99th percentile in the server; here it is
the 95th of what a caller sees, so that a few slow answers of one minute are no trouble.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from kerf.kube.transport import Unwatched, Watched
from kerf.model import failures
from kerf.ports import Clock
from kerf.runtime.inbox import Inbox, Reported
from kerf.telemetry.series.requests import resource

WINDOW: Final = timedelta(minutes=1)
SLOW_AFTER: Final = timedelta(seconds=1)
REPORTED_EVERY: Final = timedelta(seconds=5)
_QUANTILE: Final = 0.95
#: Of fewer answers nothing is concluded.
_FEWEST: Final = 5
_LISTS: Final = frozenset({"list", "deletecollection"})


class AnswerTimes:
    """The times by request, of the latest minute; any thread may report one. `then` hears of each request, too."""

    def __init__(self, then: Watched | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._then, self._clock = then or Unwatched(), clock
        self._lock = threading.Lock()
        #: Instant, seconds, and the request in words.
        self._rows: deque[tuple[float, float, str]] = deque(maxlen=10_000)

    def answered(self, method: str, path: str, query: Mapping[str, str], status: int, seconds: float) -> None:
        """Take in a request and the seconds until its answer began (status 0: none came)."""
        self._then.answered(method, path, query, status, seconds)
        verb, _, _, name, sub = resource(method, path)
        if verb not in _LISTS and "watch" not in query:
            what = f"{verb} {name}{f'/{sub}' if sub else ''}" if name else f"{method} {path}"
            with self._lock:
                self._rows.append((self._clock(), seconds, what))

    def held(self, seconds: float) -> None:
        """Take in the seconds that a request has waited for others of this process."""
        self._then.held(seconds)

    def slow(self, fewest: int = _FEWEST) -> str:
        """How slow the API server is, in words; empty when it is not, or when fewer answers are known."""
        since = self._clock() - WINDOW.total_seconds()
        with self._lock:
            while self._rows and self._rows[0][0] < since:
                self._rows.popleft()
            rows = sorted((seconds, what) for _, seconds, what in self._rows)
        if len(rows) < max(fewest, 1):
            return ""
        quantile = rows[math.ceil(_QUANTILE * len(rows)) - 1][0]
        if quantile <= SLOW_AFTER.total_seconds():
            return ""
        longest, what = rows[-1]
        return (
            f"95 % of {len(rows)} answers within {quantile:.1f} s (limit {SLOW_AFTER.total_seconds():g} s); "
            f"the slowest is {what} with {longest:.1f} s"
        )

    def report(self, inbox: Inbox, clock: Clock, stop: threading.Event) -> None:
        """Report to the loop, until stopped, that answers are slow, and once that they are not any more."""
        known = ""
        while not stop.wait(REPORTED_EVERY.total_seconds()):
            now = self.slow()
            if now or known:
                inbox.put(
                    Reported(failures.ANSWER, failures.API_SERVER, clock.now(), failures.SLOW if now else "", now)
                )
            known = now
