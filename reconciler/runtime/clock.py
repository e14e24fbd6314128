"""The machine's clock, as the Clock port."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final

#: Where there is one, the clock that also counts while the machine is suspended: a lease runs out meanwhile.
_STEADY: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """See `reconciler.ports.Clock`."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.clock_gettime(_STEADY)

    def sleep(self, seconds: float) -> None:
        time.sleep(max(seconds, 0.0))
