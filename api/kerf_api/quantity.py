"""Kubernetes quantities, exactly: `1500m`, `2Gi`, `1e3`. A quantity is a rational number; nothing here is a float.

Resource amounts inside the project are integers: milli-cores for `cpu`, whole units (bytes, pieces) for all else.
Requests round up and so does `amount`, as Kubernetes does when it scales a quantity.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil

_PATTERN = re.compile(
    r"(?P<sign>[+-]?)(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
)
_BINARY = {f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", start=1)}
_DECIMAL = {
    letter: Fraction(10) ** power for letter, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
}
_SUFFIXES = {"": Fraction(1), **_BINARY, **_DECIMAL}

#: A longer text is refused: no quantity is so long, and reading it takes long.
_LONGEST = 1000
#: An exponent beyond this is refused: no machine has 10^30 of anything, and 10^10^9 would take all memory.
_MAX_EXPONENT = 30
#: The largest amount, and below zero the smallest. Source: Kubernetes' resource.ParseQuantity, which caps at the same.
LARGEST = 2**63 - 1
#: With an exponent beyond this a number of _LONGEST digits is beyond LARGEST, or next to nothing.
_CLEAR_EXPONENT = 2 * _LONGEST


@lru_cache(maxsize=65536)
def parse(text: str | int | float) -> Fraction:
    """The exact value of a quantity.

    Raises ValueError, naming the text, when it is not a quantity, or has an exponent beyond 30.
    """
    written, match = _read(text)
    exponent = _exponent(match)
    if abs(exponent) > _MAX_EXPONENT:
        raise ValueError(f"{written!r} has an exponent beyond {_MAX_EXPONENT}")
    return _value(match, exponent)


def _read(text: str | int | float) -> tuple[str, re.Match[str]]:
    written = str(text)
    if len(written) > _LONGEST:
        raise ValueError(
            f"{written[:20]!r}… is not a quantity: it has {len(written)} characters, the limit is {_LONGEST}"
        )
    match = _PATTERN.fullmatch(written)
    if match is None:
        raise ValueError(f"{text!r} is not a quantity (such as 500m, 2, 1.5Gi)")
    return written, match


def _exponent(match: re.Match[str]) -> int:
    """The power of ten that is written as a number; 0 without one."""
    suffix = match["suffix"] or ""
    return 0 if suffix in _SUFFIXES else int(suffix[1:])


def _value(match: re.Match[str], exponent: int) -> Fraction:
    value = Fraction(match["number"] if not match["number"].endswith(".") else match["number"] + "0")
    value *= _SUFFIXES.get(match["suffix"] or "") or Fraction(10) ** exponent
    return -value if match["sign"] == "-" else value


@lru_cache(maxsize=65536)
def amount(resource: str, text: str | int | float) -> int:
    """A quantity of a resource as an integer: milli-cores for `cpu`, whole units otherwise, rounded up.

    One beyond LARGEST counts as LARGEST, so that `1e31` in one object is a large number there and breaks nothing else.
    Raises ValueError, naming the text, when it is not a quantity.
    """
    _, match = _read(text)
    value = _value(match, max(-_CLEAR_EXPONENT, min(_exponent(match), _CLEAR_EXPONENT)))
    return max(-LARGEST, min(ceil(value * 1000) if resource == "cpu" else ceil(value), LARGEST))


def text(resource: str, value: int) -> str:
    """An integer amount of a resource written as a quantity: `1500m`, `2`, `3Gi`."""
    if resource == "cpu":
        return f"{value}m" if value % 1000 else str(value // 1000)
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        for suffix, scale in (("Gi", 1024**3), ("Mi", 1024**2), ("Ki", 1024)):
            if value and value % scale == 0:
                return f"{value // scale}{suffix}"
    return str(value)
