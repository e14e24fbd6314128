"""The Events of Kerf in a live cluster, for the page: read when they are asked for, and kept for a while."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kerf.cli.events import reading, records
from kerf.cli.events.records import Record, Subject
from kerf.ports import Clock

#: Rows of the page.
MOST: Final = 200
_EVERY: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Reported:
    """Events about NodeClaims, NodePools, nodes and pods, the newest first.

    Attributes:
        at: the time of the reading.
        omitted: older events that are left out.
        problems: a line for each list that could not be read, with the missing permission.
    """

    at: datetime
    rows: tuple[Record, ...]
    omitted: int
    problems: tuple[str, ...]


class Events:
    """The Events of an API server. Threads of requests share it."""

    def __init__(self, connect: Callable[[], reading.Reads], clock: Clock) -> None:
        """`connect` makes the client at the first reading."""
        self._connect, self._clock, self._lock = connect, clock, threading.Lock()
        self._kube: reading.Reads | None = None
        self._latest: tuple[datetime, list[Record], tuple[str, ...]] | None = None

    def found(self, text: str = "") -> Reported:
        """The newest events with the text in object, reason or message. They are at most 30 seconds old."""
        with self._lock:
            at, rows, problems = self._read()
        wanted = text.lower()
        own = [one for one in rows if wanted in f"{one.ref}\n{one.reason}\n{one.message}".lower()]
        return Reported(at, tuple(own[:MOST]), max(len(own) - MOST, 0), problems)

    def _read(self) -> tuple[datetime, list[Record], tuple[str, ...]]:
        now = self._clock.now()
        if self._latest is None or not timedelta(0) <= now - self._latest[0] < _EVERY:
            self._kube = self._kube or self._connect()
            found = reading.Found()
            rows = records.of_events(reading.events(self._kube, found, Subject()) or ())
            self._latest = now, records.chosen(rows, Subject(), ()), tuple(found.not_checked)
        return self._latest
