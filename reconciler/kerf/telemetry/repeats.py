"""A failure is reported once; repetitions are only counted, and reported again every few minutes."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable

TOLD_AGAIN_SECONDS = 300.0
_REMEMBERED = 4096
#: Request IDs, ports and counts differ from one time to the next; the trouble is the same.
_CHANGING = re.compile(r"[0-9a-f]{8,}|\d+")


class Repeats:
    """Any thread may call it. `clock` is in seconds and only ever grows."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._told: dict[tuple[str, str], tuple[float, int]] = {}

    def news(self, subject: str, text: str) -> int | None:
        """How often it was kept quiet since its last report, if it should be reported now; None to keep quiet."""
        key, now = (subject, _CHANGING.sub("#", text)), self._clock()
        with self._lock:
            at, quiet = self._told.get(key, (now - TOLD_AGAIN_SECONDS, 0))
            if now - at < TOLD_AGAIN_SECONDS:
                self._told[key] = (at, quiet + 1)
                return None
            if len(self._told) >= _REMEMBERED:
                self._told = {k: v for k, v in self._told.items() if now - v[0] < TOLD_AGAIN_SECONDS}
            self._told[key] = (now, 0)
            return quiet
