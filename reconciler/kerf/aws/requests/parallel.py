"""Independent calls at the same time: most of what AWS takes is waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def together(calls: Sequence[Callable[[], Any]], *, threads: int = 8) -> list[Any]:
    """What each call returns, in the order of the calls. Raises the first error, once all have ended."""
    if len(calls) < 2:
        return [call() for call in calls]
    with ThreadPoolExecutor(max_workers=min(threads, len(calls))) as pool:
        futures = [pool.submit(call) for call in calls]
    return [future.result() for future in futures]


def each(call: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
    """`call` on every item at the same time; the answers in the order of the items."""
    return together([partial(call, item) for item in items])
