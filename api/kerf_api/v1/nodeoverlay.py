"""NodeOverlay, karpenter.sh/v1alpha1: what is to be believed of instance types instead of what the cloud says of them.

An overlay gives the offerings that meet its requirements another price, and their types resources that the cloud does
not know of. Prices are texts in dollars per hour there, and integers in millionths of a dollar everywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Final

from msgspec import field

from kerf_api.requirements import Requirements
from kerf_api.resources import Resources
from kerf_api.v1.meta import Condition, Entry, ObjectMeta, Value
from kerf_api.v1.nodepool import parse_entries

#: Beyond this no price or amount is distinguished from another; such a price is still less than what cannot be had at
#: all.
MOST: Final = 1 << 48
_MICRO: Final = 1_000_000
_LONGEST: Final = 100
_AMOUNT: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")


@dataclass(frozen=True, slots=True)
class Price:
    """What becomes of a known price: `amount` more than its `share`, both in so many `parts` of a millionth of a dollar
    per hour. A `fixed` price does not depend on what is known."""

    amount: int
    share: int
    parts: int
    fixed: bool

    @classmethod
    def exactly(cls, dollars: Fraction, share: Fraction, *, fixed: bool = False) -> Price:
        amount = dollars * _MICRO
        parts = lcm(amount.denominator, share.denominator)
        return cls(int(amount * parts), int(share * parts), parts, fixed)

    def of(self, known: int) -> int:
        """The price of what was believed to cost `known`: a whole number between 0 and `MOST`, half to even."""
        whole, rest = divmod(self.amount + self.share * known, self.parts)
        up = 2 * rest > self.parts or (2 * rest == self.parts and whole % 2 == 1)
        return max(0, min(MOST, whole + up))


class NodeOverlaySpec(Value, frozen=True, kw_only=True):
    requirements: tuple[Entry, ...] = ()
    price: str | None = None
    price_adjustment: str | None = None
    capacity: Mapping[str, str | int | float] = field(default_factory=dict)
    weight: int = 0


class NodeOverlayStatus(Value, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()


class NodeOverlay(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: NodeOverlaySpec = NodeOverlaySpec()
    status: NodeOverlayStatus = NodeOverlayStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    def requirements(self) -> Requirements:
        """Raises ValueError on a malformed entry."""
        return parse_entries(self.spec.requirements)

    def resources(self) -> Resources:
        """What it says of capacity, nothing of it less than 0 or more than `MOST`. Raises ValueError on a malformed
        quantity."""
        amounts = Resources.parse(self.spec.capacity)
        return Resources({name: max(0, min(MOST, amount)) for name, amount in amounts.items()})

    def price(self) -> Price | None:
        """What it says of the price; None when it says nothing. Raises ValueError on what is no price."""
        if self.spec.price is not None:
            return Price.exactly(_number(self.spec.price), Fraction(0), fixed=True)
        change = self.spec.price_adjustment
        if change is None:
            return None
        if change.endswith("%"):
            return Price.exactly(Fraction(0), 1 + _number(change[:-1]) / 100)
        return Price.exactly(_number(change), Fraction(1))


def _number(text: str) -> Fraction:
    """Raises ValueError; an exponent, which might take for ever, is no price."""
    if len(text) > _LONGEST or not _AMOUNT.fullmatch(text):
        raise ValueError(f"{text[:_LONGEST]!r} is not an amount of money")
    return Fraction(text)
