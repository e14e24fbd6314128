"""The current views of an origin; those of a live cluster are read again in a thread of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Final, Protocol

from kerf.cli.answering.captures import Origin
from kerf.cli.arguments import Mistake
from kerf.ports import PortError
from kerf.runtime.process.clock import SystemClock
from kerf.views.board import Board, board

#: Seconds between two readings of a live cluster.
EVERY: Final = 30.0


class Views(Protocol):
    """Of views what a page needs: the name of their origin, and the error of the latest reading or nothing.

    `live` views change while the page is open, and report it (`Boards`).
    """

    @property
    def current(self) -> Board: ...

    @property
    def name(self) -> str: ...

    @property
    def live(self) -> bool: ...

    @property
    def problem(self) -> str: ...


class Boards:
    """`current` belongs to any thread. The first reading happens at once; its errors are the caller's."""

    def __init__(
        self, origin: Origin, every: float = EVERY, report: Callable[[str], object] = lambda text: None
    ) -> None:
        """`report` gets the text of each new error once. Raises Mistake, PortError."""
        self._origin, self._every, self._report = origin, every, report
        self._failed_at: datetime | None = None
        self._current, self._problem = board(origin.read()), ""
        self._stopped, self._readings, self._changed = threading.Event(), 1, threading.Condition()
        self._thread = threading.Thread(target=self._follow, name="views", daemon=True)

    @property
    def name(self) -> str:
        return self._origin.name

    @property
    def live(self) -> bool:
        return self._origin.live

    @property
    def current(self) -> Board:
        return self._current

    @property
    def problem(self) -> str:
        """The error of the latest reading; empty after a successful one."""
        return self._problem

    @property
    def failed_at(self) -> datetime | None:
        """The time of the latest reading if it failed."""
        return self._failed_at

    def start(self) -> None:
        """Begin to read a live cluster again and again; nothing for other origins."""
        if self.live:
            self._thread.start()

    def stop(self) -> None:
        """End the thread after its current reading, and every `wait`."""
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()

    @property
    def readings(self) -> int:
        """The number of readings so far, failed ones included."""
        return self._readings

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set()

    def wait(self, readings: int, seconds: float) -> int:
        """The number of readings, once it is above this one, after `stop`, or after these seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._readings > readings or self.stopped, seconds)
        return self._readings

    def read(self) -> None:
        """Read once. After an error the views stay, and `problem` has the error."""
        try:
            self._current = board(self._origin.read())
            self._failed("")
        except (Mistake, PortError) as error:
            self._failed(str(error))
        except Exception as error:  # a bug; the thread must continue
            words = "this is a bug of Kerf: report it with a file of kerf snapshot"
            self._failed(f"{type(error).__name__}: {error}; {words}")
        with self._changed:
            self._readings += 1
            self._changed.notify_all()

    def _failed(self, problem: str) -> None:
        before, self._problem = self._problem, problem
        self._failed_at = SystemClock().now() if problem else None
        if problem and problem != before:
            with suppress(Exception):  # a closed standard error ends no thread
                self._report(f"the cluster was not read again: {problem}")

    def _follow(self) -> None:
        while not self._stopped.wait(self._every):
            self.read()
