"""Questions without whose answers the process cannot begin, put to an API server that may be starting itself, or busy.

A process that gave up at the first refusal would be started again later and later, and still wait when the server has
long been well.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from kerf.ports import Clock, Throttled, Unavailable

T = TypeVar("T")

PATIENCE = timedelta(seconds=20)
PAUSE_SECONDS = 1.0


def patiently(ask: Callable[[float], T], clock: Clock) -> T:
    """The answer. While the server is away or has too much to do it is asked again, for 20 s in all.

    `ask` gets the seconds that it may wait. Raises PortError: at once when asking again would not help, else
    what the last try met.
    """
    until = clock.monotonic() + PATIENCE.total_seconds()
    while True:
        try:
            return ask(until - clock.monotonic())
        except (Throttled, Unavailable):
            if clock.monotonic() + PAUSE_SECONDS >= until:
                raise
        clock.sleep(PAUSE_SECONDS)
