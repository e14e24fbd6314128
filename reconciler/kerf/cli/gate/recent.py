"""Answers that are kept for some seconds, up to a number of them."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Belongs to any thread. One answer more than `most` drops the one that was used least recently."""

    def __init__(self, seconds: float, most: int, now: Callable[[], float] = time.monotonic) -> None:
        self._seconds: Final = seconds
        self._most: Final = most
        self._now: Final = now
        self._rows: Final = OrderedDict[K, tuple[float, V]]()
        self._lock: Final = Lock()

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: K) -> V | None:
        """The kept answer; None when there is none, or when it has expired."""
        with self._lock:
            row = self._rows.get(key)
            if row is None or self._now() >= row[0]:
                return None
            self._rows.move_to_end(key)
            return row[1]

    def put(self, key: K, value: V, since: float | None = None) -> None:
        """Keep an answer. Its time counts from `since`, or else from now."""
        with self._lock:
            self._rows[key] = (self._now() if since is None else since) + self._seconds, value
            self._rows.move_to_end(key)
            while len(self._rows) > self._most:
                self._rows.popitem(last=False)

    def drop(self, key: K) -> None:
        """Keep no answer for this key."""
        with self._lock:
            self._rows.pop(key, None)
