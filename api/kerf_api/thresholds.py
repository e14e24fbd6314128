"""What the consolidation of nodes in use has to bring: three thresholds, each a setting and an annotation of NodePools.

A pool's annotation beats the setting; nothing (`0`, `0%`, `0s`) asks for nothing. Text that cannot be read is a fault,
never "no threshold".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from math import ceil
from types import MappingProxyType
from typing import Any, Final

from kerf_api import durations, labels
from kerf_api.annotations import unreadable

_SAVING = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(%?)", re.ASCII)
_MICRO: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Saving:
    """A share (0 to 1) of what the nodes cost that go, or millionths of a dollar per hour; the other one is 0."""

    share: Fraction = Fraction(0)
    micro_usd_per_hour: int = 0

    def least(self, price: int) -> int:
        """What has to be saved of so much, in millionths of a dollar per hour."""
        return max(self.micro_usd_per_hour, ceil(self.share * price))

    def __str__(self) -> str:
        """As people write it: `5%`, `0.02`."""
        if self.share:
            return f"{float(self.share * 100):g}%"
        return f"{self.micro_usd_per_hour / _MICRO:.6f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """`minimum_saving` of a move, `payback_time` of what it costs to have old and new nodes at once, `minimum_age` of
    nodes."""

    minimum_saving: Saving = Saving()
    payback_time: timedelta = timedelta(0)
    minimum_age: timedelta = timedelta(0)


#: As in the reference: whatever saves anything is worth it.
NO_THRESHOLDS: Final = Thresholds()


def saving(text: str) -> Saving:
    """`5%` or `0.02` (dollars an hour). Raises ValueError with what would be right."""
    found = _SAVING.fullmatch(text)
    if found is None:
        raise ValueError("must be a share such as 5% or dollars an hour such as 0.02")
    number = Fraction(found[1])
    if not found[2]:
        return Saving(micro_usd_per_hour=ceil(number * _MICRO))
    if number > 100:
        raise ValueError("must be at most 100%, for nothing saves more than it costs")
    return Saving(share=number / 100)


def span(text: str) -> timedelta:
    """`1h30m`; `0s` for none. Raises ValueError with what would be right."""
    try:
        return durations.parse(text)
    except ValueError:
        raise ValueError("must be a duration such as 30m, 1h30m or 0s") from None


# --- annotations ------------------------------------------------------------------------------------------------
_READERS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = MappingProxyType(
    {
        labels.MINIMUM_SAVING: ("minimum_saving", saving),
        labels.PAYBACK_TIME: ("payback_time", span),
        labels.MINIMUM_AGE: ("minimum_age", span),
    }
)
#: The annotations of a NodePool that are read here.
ANNOTATIONS: Final = tuple(_READERS)


def faults(annotations: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The annotations that cannot be read, and what would be right. What is no text is not looked at."""
    return unreadable({key: read for key, (_, read) in _READERS.items()}, annotations)


def of(annotations: Mapping[str, str], default: Thresholds) -> Thresholds:
    """What a NodePool with these annotations asks for. Raises ValueError when one of them cannot be read."""
    own = {}
    for key, (name, read) in _READERS.items():
        if key in annotations:
            try:
                own[name] = read(annotations[key])
            except ValueError as error:
                raise ValueError(f"annotation {key} {error}, not {annotations[key]!r}") from None
    return replace(default, **own) if own else default
