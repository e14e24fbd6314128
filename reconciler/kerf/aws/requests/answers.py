"""What AWS answered, kept for a while: a value per key, until it expires or is dropped.

Empty answers are not kept: AWS is asked again each time, because an object may have been created. An answer that
was on its way when its key was forgotten is handed on, and not kept.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, Protocol, TypeVar

Answer = TypeVar("Answer")
#: What was asked: the kind of question first, then the arguments that distinguish questions of that kind.
Key = tuple[str, ...]
FOR_EVER: Final = float("inf")
#: Looks come at intervals of minutes, and what they ask for is asked a moment later.
_BEFORE_A_LOOK: Final = timedelta(seconds=5)


def just_under(interval: timedelta) -> float:
    """So many seconds that a look which is due after the interval, or a multiple of it, asks again."""
    return (interval - _BEFORE_A_LOOK).total_seconds()


class Ask(Protocol):
    """Asks a question, or knows the answer."""

    def __call__(self, key: Key, read: Callable[[], Answer]) -> Answer: ...


class Answers:
    """Safe for many threads; two that ask the same at one time both ask. `elapsed` counts seconds from anywhere."""

    def __init__(self, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._elapsed = elapsed
        self._lock = threading.Lock()
        self._kept: dict[Key, tuple[Any, float]] = {}
        self._asking: dict[object, Key] = {}

    def ask(self, key: Key, read: Callable[[], Answer], seconds: float) -> Answer:
        """What is kept, else what is read, which is kept for so long from now. An error is never kept."""
        this = object()
        with self._lock:
            now = self._elapsed()
            if key in self._kept and now < self._kept[key][1]:
                known: Answer = self._kept[key][0]
                return known
            self._asking[this] = key
        answer, told = None, False
        try:
            answer, told = read(), True
            return answer
        finally:
            with self._lock:
                if self._asking.pop(this, None) is not None and told and answer:
                    self._drop(lambda other: self._kept[other][1] <= now)
                    self._kept[key] = answer, now + seconds

    def knows(self, key: Key) -> bool:
        """Whether this would be answered without asking."""
        with self._lock:
            return key in self._kept and self._elapsed() < self._kept[key][1]

    def forget(self, old: Callable[[Key], bool]) -> None:
        """What is old is not so any more, or may not be."""
        with self._lock:
            self._drop(old)
            self._asking = {this: key for this, key in self._asking.items() if not old(key)}

    def _drop(self, old: Callable[[Key], bool]) -> None:
        self._kept = {key: kept for key, kept in self._kept.items() if not old(key)}
