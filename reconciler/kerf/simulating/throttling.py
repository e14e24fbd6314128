"""Requests that AWS or the API server refuses for a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kerf.ports import Throttled
from kerf.sandbox.clock import START
from kerf.sandbox.faults import Call, Faults

#: The port's method of each call.
_VERBS: Final = {"CreateFleet": "create_fleet", "DescribeInstances": "instances", "TerminateInstances": "terminate"}
_PORTS: Final = {"aws": "cloud", "kubernetes": "kube"}


@dataclass(slots=True)
class Window:
    """A time in which requests of a port are refused: all, or those of some verbs. `refused` is their number so far."""

    port: str
    verbs: frozenset[str]
    until: datetime
    refused: int = 0


class Throttling(Faults):
    """See the module. `now` is the clock of the world."""

    def __init__(self) -> None:
        self.now: Callable[[], datetime] = lambda: START
        self._windows: list[Window] = []

    def begin(self, api: str, calls: Iterable[str], until: datetime) -> Window:
        """Refuse the requests of an API (`aws`, `kubernetes`), or only some calls, until then."""
        window = Window(_PORTS[api], frozenset(_VERBS[call] for call in calls), until)
        self._windows.append(window)
        return window

    def before(self, call: Call) -> None:
        """Raises Throttled."""
        now = self.now()
        for window in self._windows:
            if window.port == call.port and window.until > now and (not window.verbs or call.verb in window.verbs):
                window.refused += 1
                raise Throttled(f"{call.port} {call.verb}: RequestLimitExceeded")
