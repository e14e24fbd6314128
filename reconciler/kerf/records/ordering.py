"""Decisions of several processes in the order of their times."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import count
from typing import TypeVar

T = TypeVar("T")


def by_time(streams: Iterable[tuple[datetime, Iterator[T]]], time_of: Callable[[T], datetime]) -> Iterator[T]:
    """The values of all streams by time. Values of one stream keep their order, also after its clock was set back.

    Each stream comes with a time that none of its first values precedes: nothing of it is read before then. A stream
    is asked for its next value after the caller has used the one before.
    """
    numbers = count()
    waiting = sorted(
        ((began, next(numbers), stream) for began, stream in streams), reverse=True, key=lambda row: row[:2]
    )
    heads: list[tuple[datetime, int, T, Iterator[T]]] = []

    def advance(number: int, stream: Iterator[T]) -> None:
        for value in stream:
            heapq.heappush(heads, (time_of(value), number, value, stream))
            return

    while waiting or heads:
        if waiting and (not heads or waiting[-1][0] <= heads[0][0]):
            _, number, stream = waiting.pop()
            advance(number, stream)
            continue
        _, number, value, stream = heapq.heappop(heads)
        yield value
        advance(number, stream)
