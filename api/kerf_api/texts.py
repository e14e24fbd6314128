"""Lists and numbers in messages."""

from __future__ import annotations

from collections.abc import Sequence


def shortened(items: Sequence[str], most: int) -> str:
    """The first ones, and how many more there are: `a, b and 3 more`."""
    rest = len(items) - most
    return ", ".join(items[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def counted(number: int, noun: str, *, grouped: bool = True) -> str:
    """`1 pod`, `2 pods`, `1,000 pods`; `1000 pods` when digits are not `grouped`, as in a name for programs."""
    return f"{number:{',' if grouped else ''}} {noun}{'' if number == 1 else 's'}"


def without_credentials(text: str) -> str:
    """The text without users and passwords of URLs. Passwords have any characters: all between `://` and the last `@`
    of a line is removed."""
    return "\n".join(map(_bare, text.split("\n")))


def _bare(line: str) -> str:
    start, end = line.find("://"), line.rfind("@")
    return line[: start + 3] + line[end + 1 :] if 0 <= start < end else line
