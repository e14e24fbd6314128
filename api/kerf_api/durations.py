"""Durations of the API: Go's `1h30m5s` with the units h, m and s, and `Never`."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import lru_cache

from kerf_api import bounds

NEVER = "Never"
_PART = re.compile(r"(?<![0-9])([0-9]+)([hms])")
_WHOLE = re.compile(r"(?:[0-9]+[hms])+")
_GO = re.compile(r"[+]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|ms?|s|h))+")
_GO_PART = re.compile(r"(?<![0-9.])([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")
_GO_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_SECONDS = {"h": 3600, "m": 60, "s": 1}

#: The longest duration Go can hold (2^63 ns); a longer one breaks every Go reader of the object.
LONGEST_SECONDS = bounds.LONGEST_SECONDS


@lru_cache(maxsize=4096)
def parse(text: str) -> timedelta:
    """A duration such as `1h30m`. Raises ValueError for anything else, `Never` and an overflow included."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration (such as 30s, 1h30m, 720h)")
    seconds = sum(int(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    if seconds > LONGEST_SECONDS:
        raise ValueError(f"{text!r} is longer than 2562047h, the longest duration there is")
    return timedelta(seconds=seconds)


def parse_nillable(text: str | None) -> timedelta | None:
    """Like `parse`, with None for `Never` and for an absent value."""
    return None if text is None or text == NEVER else parse(text)


def parse_go(text: str) -> timedelta | None:
    """A positive Go duration (`1.5h`, `300ms`), as pod annotations may carry it; None when it is not one."""
    if not _GO.fullmatch(text):
        return None
    seconds = sum(float(number) * _GO_SECONDS[unit] for number, unit in _GO_PART.findall(text))
    return timedelta(seconds=seconds) if 0 < seconds <= LONGEST_SECONDS else None


def go_text(value: timedelta) -> str:
    """As Go prints it: `1h0m0s`, `5m0s`, `30s`, `1.5s`, `300ms`, `0s`."""
    micros = value // timedelta(microseconds=1)
    if micros < 0:
        return "-" + go_text(-value)
    if 0 < micros < 1_000_000:
        return f"{_shortest(micros, 1000)}ms" if micros >= 1000 else f"{micros}µs"
    hours, minutes, rest = micros // 3_600_000_000, micros // 60_000_000 % 60, _shortest(micros % 60_000_000, 1_000_000)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def _shortest(amount: int, unit: int) -> str:
    """So many parts of a unit, in units, with no more decimals than it takes."""
    whole, part = divmod(amount, unit)
    return f"{whole}.{part:0{len(str(unit)) - 1}d}".rstrip("0").rstrip(".") if part else str(whole)
