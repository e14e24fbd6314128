"""Questions of other threads to the loop: its own thread answers them, between two looks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")


class Questions:
    """`wake` makes the loop's thread look for them."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self._wake, self._open = wake, SimpleQueue[Callable[[], None]]()

    def ask(self, question: Callable[[], T], seconds: float) -> T:
        """The answer, from any thread.

        Raises TimeoutError when the loop does not come to it in time, and what the question itself raises.
        """
        asked: Future[T] = Future()

        def answer() -> None:
            try:
                asked.set_result(question())
            except Exception as error:  # the thread that asked gets it; the loop continues
                asked.set_exception(error)

        self._open.put(answer)
        self._wake()
        return asked.result(seconds)

    def answer(self) -> None:
        """Answer what has been asked. Only the loop's thread calls it."""
        while not self._open.empty():
            self._open.get()()
