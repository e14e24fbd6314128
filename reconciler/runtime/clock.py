"""The machine's clock, as the Clock port."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """See `reconciler.ports.Clock`."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
