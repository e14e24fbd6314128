"""Requests that AWS or the API server refuses for a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from kerf.ports import Throttled
from kerf.sandbox.clock import START
from kerf.sandbox.faults import Call, Faults

#: The port's method of each call.
_VERBS: Final = {"CreateFleet": "create_fleet", "DescribeInstances": "instances", "TerminateInstances": "terminate"}
_PORTS: Final = {"aws": "cloud", "kubernetes": "kube"}
_ALL: Final = ""


class Throttling(Faults):
    """See the module. `now` is the clock of the world."""

    def __init__(self) -> None:
        self.now: Callable[[], datetime] = lambda: START
        self._until: dict[tuple[str, str], datetime] = {}

    def begin(self, api: str, calls: Iterable[str], until: datetime) -> None:
        """Refuse the requests of an API (`aws`, `kubernetes`), or only some calls, until then."""
        for call in [_VERBS[call] for call in calls] or [_ALL]:
            self._until[_PORTS[api], call] = until

    def before(self, call: Call) -> None:
        """Raises Throttled."""
        now = self.now()
        for verb in (_ALL, call.verb):
            until = self._until.get((call.port, verb))
            if until is not None and until > now:
                raise Throttled(f"{call.port} {call.verb}: RequestLimitExceeded")
