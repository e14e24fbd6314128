"""The views of each set of namespaces: made in the background, kept, and shared by people with the same permissions.

While the views of a new reading are made, requests get the earlier ones, for a bounded time. A request waits only when
there are none.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, Protocol

from kerf.views.board import Board

#: Sets of namespaces whose views are kept: so many in a small cluster, fewer with more pods, but always some.
MOST_VIEWS, FEWEST_VIEWS = 64, 16
#: The pods of a reading times the number of kept sets. Views take about 450 bytes for each pod.
_MOST_PODS: Final = 1_000_000
#: Seconds since its last request in which a set is in use: sets that others ask for do not push it out.
IN_USE_SECONDS: Final = 120.0
#: Seconds after a new reading for which the earlier views are shown at most.
STALE_SECONDS: Final = 120.0
#: Of the pages of one set of namespaces. An answer of "why" or a label of costs takes a second in a large cluster.
MOST_BYTES: Final = 1_000_000
#: Seconds that a request waits for views that are not there yet.
PATIENCE_SECONDS: Final = 8.0
#: Views that are made at once: they need a whole CPU each.
_MAKERS: Final = 1

#: The namespaces whose pods are shown with their names; None: all.
Shown = frozenset[str] | None


class Unready(Exception):
    """The views are still being made; a later request finds them."""


class Source(Protocol):
    """A reading of the cluster."""

    def board(self, namespaces: Shown) -> Board: ...


class Pages:
    """Texts of answers by address, of a bounded size. One text too many drops the one that was used least recently."""

    def __init__(self) -> None:
        self._texts: Final = OrderedDict[Hashable, bytes]()
        self._bytes = 0
        self._lock: Final = threading.Lock()

    def get(self, key: Hashable) -> bytes | None:
        """The kept text; None without one."""
        with self._lock:
            if key in self._texts:
                self._texts.move_to_end(key)
            return self._texts.get(key)

    def put(self, key: Hashable, text: bytes) -> None:
        """Keep a text."""
        with self._lock:
            self._bytes += len(text) - len(self._texts.pop(key, b""))
            self._texts[key] = text
            while self._bytes > MOST_BYTES:
                self._bytes -= len(self._texts.popitem(last=False)[1])


@dataclass(frozen=True, slots=True)
class Made:
    """The views of one reading and one set of namespaces, and the pages that were made of them."""

    board: Board
    pages: Pages = field(default_factory=Pages)


class _Turn:
    """A reading, and when a later one replaced it; None for the latest."""

    __slots__ = ("reading", "replaced")

    def __init__(self, reading: Source) -> None:
        self.reading: Final = reading
        self.replaced: float | None = None


class _Row:
    """The views of one set of namespaces, and the turn that they are of. `asked`: since the latest reading; `used`: the
    time of the last request; `failing`: the latest attempt to make views has failed."""

    __slots__ = ("asked", "failing", "made", "making", "turn", "used")

    def __init__(self) -> None:
        self.turn: _Turn | None = None
        self.made: Made | None = None
        self.making: Future[Made] | None = None
        self.asked = self.failing = False
        self.used = 0.0

    def age(self, now: float) -> float:
        """Seconds since these views are not the latest; 0 for the latest ones and before the first ones."""
        return 0.0 if self.turn is None or self.turn.replaced is None else now - self.turn.replaced

    def in_use(self, now: float) -> bool:
        return now - self.used < IN_USE_SECONDS

    @property
    def current(self) -> bool:
        return self.turn is not None and self.turn.replaced is None


class KeptViews:
    """Belongs to any thread."""

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        timed: Callable[[float], None] = lambda seconds: None,
        failed: Callable[[BaseException, bool], None] = lambda error, known: None,
    ) -> None:
        """`timed` receives the seconds that the views of one set of namespaces took; `failed` an error in making views,
        and whether views of this set or another one have failed since the latest success."""
        self._now, self._timed, self._failed = now, timed, failed
        self._failing = False
        self._lock: Final = threading.Lock()
        self._rows: Final = OrderedDict[Shown, _Row]()
        self._turn: _Turn | None = None
        self._most = MOST_VIEWS
        # Its thread begins with the first views, after gunicorn's fork.
        self._pool: Final = ThreadPoolExecutor(_MAKERS, thread_name_prefix="views")

    def __len__(self) -> int:
        return len(self._rows)

    def stop(self) -> None:
        """Begin no more views."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def follow(self, reading: Source, pods: int = 0) -> None:
        """Take a new reading of so many pods, and begin the views that were asked for since the reading before."""
        with self._lock:
            now = self._now()
            self._most = max(FEWEST_VIEWS, min(MOST_VIEWS, _MOST_PODS // max(pods, 1)))
            if self._turn is not None:
                self._turn.replaced = now
            self._turn = _Turn(reading)
            for shown, row in list(self._rows.items()):
                if row.asked:
                    row.asked = False
                    self._begin(shown, row)
                elif row.age(now) > STALE_SECONDS:
                    del self._rows[shown]

    def made(self, shown: Shown) -> Made:
        """The views of the latest reading, or the earlier ones while these are made. There must be a reading.
        Raises Unready, and the error of views that cannot be made."""
        with self._lock:
            row = self._row(shown)
            if row.made is not None and row.current:
                return row.made
            making = self._begin(shown, row)
            if row.made is not None and row.age(self._now()) <= STALE_SECONDS:
                return row.made
        try:
            return making.result(PATIENCE_SECONDS)
        except (TimeoutError, CancelledError) as error:
            if making.done() and not making.cancelled():
                raise
            raise Unready from error

    def seat(self, names: frozenset[str]) -> frozenset[str]:
        """These namespaces; when too many other sets are in use, the largest kept set among them.

        A further set would push out one that is made again with the next request of its people, and so on.
        """
        with self._lock:
            free = len(self._rows) < self._most or not next(iter(self._rows.values())).in_use(self._now())
            known = names in self._rows
        return names if free or known else self.within(names)

    def within(self, names: frozenset[str]) -> frozenset[str]:
        """The largest set among these namespaces that has views; the empty set without one."""
        with self._lock:
            sets = [shown for shown, row in self._rows.items() if shown is not None and row.made is not None]
        return max((shown for shown in sets if shown <= names), key=len, default=frozenset())

    def failing(self, shown: Shown) -> bool:
        """Whether the latest attempt to make the views of this set has failed."""
        with self._lock:
            return shown in self._rows and self._rows[shown].failing

    def _row(self, shown: Shown) -> _Row:
        row = self._rows.setdefault(shown, _Row())
        row.asked, row.used = True, self._now()
        self._rows.move_to_end(shown)
        while len(self._rows) > self._most:
            _, dropped = self._rows.popitem(last=False)
            if dropped.making is not None:
                dropped.making.cancel()
        return row

    def _begin(self, shown: Shown, row: _Row) -> Future[Made]:
        """Make the views of the latest reading, unless views of this row are being made."""
        if row.making is None:
            row.making = self._pool.submit(self._make, shown, row)
        return row.making

    def _make(self, shown: Shown, row: _Row) -> Made:
        with self._lock:
            turn = self._turn
        assert turn is not None
        try:
            began = self._now()
            made = Made(turn.reading.board(shown))
            self._timed(self._now() - began)
        except BaseException as error:
            with self._lock:
                row.making, row.failing = None, True
                known, self._failing = self._failing, True
            self._failed(error, known)
            raise
        with self._lock:
            row.made, row.turn, row.making = made, turn, None
            row.failing = self._failing = False
        return made
