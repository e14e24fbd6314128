"""Lists and numbers in messages."""

from __future__ import annotations

from collections.abc import Sequence


def shortened(items: Sequence[str], most: int) -> str:
    """The first ones, and how many more there are: `a, b and 3 more`."""
    rest = len(items) - most
    return ", ".join(items[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def counted(number: int, noun: str) -> str:
    """`1 pod`, `2 pods`, `1,000 pods`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
