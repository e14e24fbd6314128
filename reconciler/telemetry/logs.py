"""Logs: one JSON object per line, keys in a fixed order, as the tools that parse Karpenter's logs expect them.

`level`, `time`, `logger`, `message`, then the call's fields. Levels are DEBUG, INFO and ERROR; there is no warning.
Source: operations reference §4.1.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime
from typing import Any, TextIO

import structlog

LEVELS = {"debug": 10, "info": 20, "error": 40}
#: Of one message and level: all of the first so many in a second, then every so-manieth.
SAMPLE_FIRST, SAMPLE_EVERY = 100, 100

Logger = structlog.types.FilteringBoundLogger
_Event = MutableMapping[str, Any]


def make_logger(level: str = "info", stream: TextIO | None = None, now: Callable[[], datetime] | None = None) -> Logger:
    """A logger that writes to `stream` (standard output by default); an empty level means info."""
    logger: Logger = structlog.wrap_logger(
        structlog.WriteLogger(stream or sys.stdout),
        processors=[Sampler(), _Shape(now or _utc_now), structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level or "info"]),
        cache_logger_on_first_use=True,
    )
    return logger


def silent() -> Logger:
    """A logger that writes nothing."""
    logger: Logger = structlog.wrap_logger(
        structlog.ReturnLogger(), processors=[_drop], wrapper_class=structlog.make_filtering_bound_logger(50)
    )
    return logger


def _drop(logger: Any, method: str, event: _Event) -> _Event:
    raise structlog.DropEvent


def _utc_now() -> datetime:
    return datetime.now(UTC)


class _Shape:
    """Puts the fixed keys first, and errors into words."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    def __call__(self, logger: Any, method: str, event: _Event) -> _Event:
        moment = self._now().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        level = "ERROR" if method in ("error", "exception", "critical") else method.upper()
        shaped = {"level": level, "time": moment, "logger": "controller", "message": event.pop("event", "")}
        fields = {key: _plain(value) for key, value in event.items()}
        return {**shaped, **fields}


def _plain(value: Any) -> Any:
    if isinstance(value, BaseException):
        text = str(value)
        return text if text else type(value).__name__
    return value


class Sampler:
    """Thins out a message that comes too often. `clock` is in seconds and only ever grows."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._second = 0
        self._seen: dict[tuple[str, str], int] = {}

    def __call__(self, logger: Any, method: str, event: _Event) -> _Event:
        second = int(self._clock())
        if second != self._second:
            self._second, self._seen = second, {}
        key = (method, str(event.get("event", "")))
        count = self._seen[key] = self._seen.get(key, 0) + 1
        if count > SAMPLE_FIRST and (count - SAMPLE_FIRST) % SAMPLE_EVERY:
            raise structlog.DropEvent
        return event
