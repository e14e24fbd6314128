"""The log level while the process runs: changed for a time, and then as it was set, so that it is never left there."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Final

from kerf.telemetry.log.logs import Logger, Threshold
from kerf_api import durations

USUALLY: Final = timedelta(minutes=15)
LONGEST: Final = timedelta(hours=24)


class LogLevel:
    """See the module. Any thread may call it."""

    def __init__(self, threshold: Threshold, log: Logger) -> None:
        self._threshold, self._log, self._set = threshold, log, threshold.level
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    @property
    def level(self) -> str:
        return self._threshold.level

    def change(self, level: str, span: timedelta = USUALLY) -> None:
        """For so long, from now; whatever was asked before counts no more. Raises ValueError for what is no level."""
        if not timedelta(0) < span <= LONGEST:
            raise ValueError(f"must be more than nothing and at most {durations.go_text(LONGEST)}")
        with self._lock:
            self._threshold.level = level
            self._forget()
            if level != self._set:
                self._timer = threading.Timer(span.total_seconds(), self._back)
                self._timer.daemon = True
                self._timer.start()
        self._log.info("log level changed", **{"log-level": level, "for": span if level != self._set else ""})

    def close(self) -> None:
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _back(self) -> None:
        with self._lock:
            self._threshold.level = self._set
            self._timer = None
        self._log.info("log level is as it was set", **{"log-level": self._set})
