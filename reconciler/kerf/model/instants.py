"""Instants as annotations hold them. A person may have edited one: a time without a zone is not understood."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import msgspec

Instant = Annotated[datetime, msgspec.Meta(tz=True)]

#: Before every other instant.
ALWAYS: Final = datetime.min.replace(tzinfo=UTC)
#: Clocks of one cluster differ by less. A past event that is stamped further ahead of now says nothing of its time.
SKEW: Final = timedelta(minutes=5)


def is_ahead(instant: datetime, now: datetime) -> bool:
    """Whether an event of the past is stamped so far ahead of now that the clock of its writer was wrong."""
    return instant > now + SKEW


def rfc3339(instant: datetime) -> str:
    """In UTC and whole seconds, as Kubernetes writes it: `2026-03-04T12:00:00Z`."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def length(span: timedelta) -> str:
    """In the two largest units: `3d4h`, `5m10s`, `0s`. A negative span has no length."""
    seconds = max(int(span.total_seconds()), 0)
    units = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
    parts: list[str] = []
    for name, size in units:
        count, seconds = divmod(seconds, size)
        if count or parts:
            parts.append(f"{count}{name}")
    return "".join([part for part in parts[:2] if not part.startswith("0")]) or "0s"


def since_words(since: datetime, now: datetime, *, at_least: bool = False) -> str:
    """`since 2026-03-04T12:00:00Z, 5m ago`; `at_least`: it may have begun before."""
    return f"since {'at least ' if at_least else ''}{rfc3339(since)}, {length(now - since)} ago"


def of_api(text: object) -> datetime | None:
    """A time as an object of the API has it; None when there is none, or when it is not readable."""
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None


def earliest(instants: Iterable[datetime | None]) -> datetime | None:
    """The earliest of those that there are."""
    found: datetime | None = None
    for instant in instants:  # asked hundreds of times in a turn
        if instant is not None and (found is None or instant < found):
            found = instant
    return found
