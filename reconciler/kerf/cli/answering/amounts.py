"""Numbers and amounts of resources as text."""

from __future__ import annotations

from typing import Final

_GIB: Final = 2**30


def cores(millis: int) -> str:
    """CPUs: `12`, `1.93`."""
    return f"{millis / 1000:,.2f}".rstrip("0").rstrip(".") if millis < 100_000 else f"{millis / 1000:,.0f}"


def gib(amount: int) -> str:
    """Memory in GiB: `7.4`, `120`."""
    return f"{amount / _GIB:,.1f}" if amount < 100 * _GIB else f"{amount / _GIB:,.0f}"
