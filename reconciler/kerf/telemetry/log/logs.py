"""Logs: one JSON object per line, keys in a fixed order, as the tools that parse Karpenter's logs expect them.

`level`, `time`, `logger`, (`caller` at debug), `message`, `commit`, the context of the reconciliation, then the call's
fields. Levels are DEBUG, INFO and ERROR; there is no warning. Source: operations reference §4.1.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from kerf.telemetry.log.lean import structlog
from kerf.telemetry.reconciling import reconcile_id
from kerf_api import durations

LEVELS = {"debug": 10, "info": 20, "error": 40}
#: Of one message and level: all of the first so many in a second, then every so-manieth.
SAMPLE_FIRST, SAMPLE_EVERY = 100, 100

Logger = structlog.types.FilteringBoundLogger
_Event = MutableMapping[str, Any]
_CONTEXT: Final = "reconcileID"
#: Whose frames are not the caller's.
_OURS: Final = ("structlog", __name__)


class Sink(Protocol):
    """Where lines are written; a whole line at once."""

    def write(self, text: str, /) -> Any: ...

    def flush(self) -> Any: ...


class Threshold:
    """The least level that is logged; it may change while others log. Any thread may use it."""

    def __init__(self, level: str = "info") -> None:
        self.level = level or "info"

    @property
    def level(self) -> str:
        """`debug`, `info` or `error`."""
        return self._level

    @level.setter
    def level(self, level: str) -> None:
        """Raises ValueError for another."""
        if level not in LEVELS:
            raise ValueError(f"must be one of {', '.join(LEVELS)}, not {level!r}")
        self._level, self._least = level, LEVELS[level]

    def __call__(self, logger: Any, method: str, event: _Event) -> _Event:
        if LEVELS.get(method, LEVELS["error"]) < self._least:
            raise structlog.DropEvent
        return event


def make_logger(
    level: str | Threshold = "info",
    stream: Sink | None = None,
    now: Callable[[], datetime] | None = None,
    *,
    commit: str = "",
) -> Logger:
    """A logger that writes to `stream` (standard output by default); an empty level means info."""
    threshold = level if isinstance(level, Threshold) else Threshold(level)
    logger: Logger = structlog.wrap_logger(
        structlog.WriteLogger(stream or sys.stdout),  # type: ignore[arg-type]
        processors=[
            threshold,
            Sampler(),
            _Shape(now or _utc_now, threshold, commit),
            structlog.processors.JSONRenderer(serializer=_compact),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS["debug"]),
        cache_logger_on_first_use=True,
    )
    return logger


def silent() -> Logger:
    """A logger that writes nothing."""
    logger: Logger = structlog.wrap_logger(
        structlog.ReturnLogger(), processors=[_drop], wrapper_class=structlog.make_filtering_bound_logger(50)
    )
    return logger


def about(controller: str, kind: str = "", group: str = "", name: str = "", namespace: str = "") -> dict[str, Any]:
    """The context of a line as Karpenter's controller of that name gives it, with the object that it reconciles."""
    of = {"controllerGroup": group, "controllerKind": kind, kind: named(name, namespace)} if kind else {}
    return {"controller": controller, **of, "namespace": namespace, "name": name, _CONTEXT: reconcile_id()}


def named(name: str, namespace: str = "") -> dict[str, str]:
    """An object as a field of a line."""
    return {"name": name, "namespace": namespace} if namespace else {"name": name}


def shortened(items: Sequence[str], most: int) -> str:
    """The first so many in words, and how many more there are."""
    rest = len(items) - most
    return ", ".join(items[:most]) + (f" and {rest} other(s)" if rest > 0 else "")


def _drop(logger: Any, method: str, event: _Event) -> _Event:
    raise structlog.DropEvent


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _compact(line: Any, **settings: Any) -> str:
    """Without blanks and as UTF-8, to the byte as parsers of lines expect."""
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False, default=str)


class _Shape:
    """Puts the fixed keys first, and errors and durations into words."""

    def __init__(self, now: Callable[[], datetime], threshold: Threshold, commit: str) -> None:
        self._now, self._threshold = now, threshold
        self._build = {"commit": commit} if commit else {}

    def __call__(self, logger: Any, method: str, event: _Event) -> _Event:
        moment = self._now().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        level = "ERROR" if method in ("error", "exception", "critical") else method.upper()
        caller = {"caller": _caller()} if self._threshold.level == "debug" else {}
        first = {"level": level, "time": moment, "logger": "controller", **caller, "message": event.pop("event", "")}
        context = {} if _CONTEXT in event or not reconcile_id() else {_CONTEXT: reconcile_id()}
        fields: dict[str, Any] = {}
        for key, value in event.items():
            fields[key] = _plain(value)
            fields |= _told(value)
        if not fields.get(_CONTEXT, "any"):
            del fields[_CONTEXT]
        return {**first, **self._build, **context, **fields}


def _caller() -> str:
    """The file and line that logs, as `room/file.py:line`."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        frame = frame.f_back
    return f"{'/'.join(frame.f_code.co_filename.rsplit('/', 2)[-2:])}:{frame.f_lineno}"


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return durations.go_text(value)
    if isinstance(value, BaseException):
        text = str(value) or type(value).__name__
        told = ", ".join(f"{key}={word}" for key, word in _told(value).items())
        return f"{text} ({told})" if told else text
    return value


def _told(value: Any) -> Mapping[str, str]:
    """What an error says of itself beside its text."""
    return getattr(value, "details", {}) if isinstance(value, BaseException) else {}


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
