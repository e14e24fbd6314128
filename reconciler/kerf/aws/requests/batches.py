"""One call for many: while a call is under way those that come wait, and go together with the next.

So a single one is never held up, and the more there are the fewer calls each of them costs. A call that takes long
delays no caller for longer than a moment: then the next goes beside it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from itertools import islice

from kerf.ports import PortError, Unavailable

#: What a call says of each item: nothing when it is done, else what stopped it.
Outcomes = Mapping[str, PortError | None]


class Batches:
    """`call` is made with up to `most` different items. No caller waits for another call longer than
    `patience_seconds`."""

    def __init__(self, call: Callable[[Sequence[str]], Outcomes], most: int, patience_seconds: float = 1.0) -> None:
        self._call, self._most, self._patience = call, most, patience_seconds
        self._turn = threading.Condition()
        self._waiting: dict[str, Future[None]] = {}
        self._calls = 0

    def ask(self, item: str) -> None:
        """Return when the item is done. Raises what stopped it. The same item of two callers goes once, for both."""
        with self._turn:
            future = self._waiting.setdefault(item, Future())
        while not future.done():
            if (batch := self._next(future)) is not None:
                self._answer(batch)
        future.result()

    def _next(self, future: Future[None]) -> dict[str, Future[None]] | None:
        """Those that go now, by the first caller; None when another has answered meanwhile."""
        with self._turn:
            self._turn.wait_for(lambda: future.done() or not self._calls, self._patience)
            batch = dict(islice(self._waiting.items(), self._most))
            if future.done() or not batch:
                return None
            for item in batch:
                del self._waiting[item]
            self._calls += 1
            return batch

    def _answer(self, batch: Mapping[str, Future[None]]) -> None:
        try:
            outcomes = self._call(tuple(batch))
            for item, future in batch.items():
                error = outcomes.get(item)
                future.set_result(None) if error is None else future.set_exception(error)
        except Exception as error:
            self._fail(batch, error)
        finally:
            self._fail(batch, Unavailable("the call was given up"))
            with self._turn:
                self._calls -= 1
                self._turn.notify_all()

    @staticmethod
    def _fail(batch: Mapping[str, Future[None]], error: Exception) -> None:
        """Every caller without an answer gets this one, so that none waits for ever."""
        for future in batch.values():
            if not future.done():
                future.set_exception(error)
