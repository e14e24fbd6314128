"""The loop goes first: threads that compute for long wait, every millisecond or so, until its turn is over.

Python runs one thread at a time and knows no priorities: beside a thread that computes, a turn of the loop takes twice
as long. Reading 5,000 instances takes 0.5 s, and the first scrape as much. No pod waits for those; pods wait for turns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

#: One turn of the loop may be a long one: who gives way goes on by a small step after so long.
PATIENCE_SECONDS = 0.05
#: Called by who computes for long, before each small step.
GiveWay = Callable[[], object]


def at_once() -> None:
    """Gives way to no thread."""


class Precedence:
    """See the module. The loop's thread takes turns; any thread gives way."""

    def __init__(self) -> None:
        self._free = threading.Event()
        self._free.set()

    @contextmanager
    def turn(self) -> Iterator[None]:
        self._free.clear()
        try:
            yield
        finally:
            self._free.set()

    def give_way(self) -> bool:
        """Wait while the loop has its turn, but not for long; whether it is over."""
        return self._free.wait(PATIENCE_SECONDS)


def in_steps(items: Iterable[T], give_way: GiveWay, size: int) -> Iterator[T]:
    """The items; gives way before each `size` of them."""
    for place, item in enumerate(items):
        if place % size == 0:
            give_way()
        yield item
