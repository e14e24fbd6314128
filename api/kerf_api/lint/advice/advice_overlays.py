"""Advice about what a NodeOverlay changes: nothing at all, or more than was meant.

Instance types are chosen by price. An overlay that makes many of them cost the same, or nothing, takes that choice
away: the largest machine is then as good as the smallest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Final

from kerf_api import labels
from kerf_api.lint.advice.requirement_advice import PLACES, AdviceRules, Known, unmet
from kerf_api.lint.problem import Problem, at
from kerf_api.lint.reading.reading import part

_RULES: Final = AdviceRules(
    unknown_value="KERF-NO-301",
    factless="KERF-NO-307",
    region="KERF-NO-302",
    conflict="KERF-NO-303",
    nothing_left="KERF-NO-304",
    fate="the overlay changes nothing",
)
_ALL_OF_IT: Final = "-100%"
#: No type costs so many US dollars an hour; the most expensive one costs about half of it.
_DEAREST: Final = 1000
#: A price as people write it. An exponent is refused elsewhere, and working it out could take for ever.
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,20}(?:\.[0-9]{0,20})?", re.ASCII)


def check(known: Known) -> Iterator[Problem]:
    """Advice about the requirements and the prices of a NodeOverlay."""
    place, _ = PLACES["NodeOverlay"]
    yield from unmet(known, place, _RULES)
    count = known.left.bit_count()
    if count > 1:
        yield from _price(known, count)


def _price(known: Known, count: int) -> Iterator[Problem]:
    price, adjustment = (part(known.manifest, "spec", field) for field in ("price", "priceAdjustment"))
    if isinstance(price, str):
        if _number(price) == 0:
            yield _free("price", price, count)
        elif known.types.distinct(f"{labels.AWS_GROUP}/instance-cpu", known.left) > 1:
            message = f"{count} instance types of different sizes get one price; the largest costs no more than any"
            hint = "name one type, or use priceAdjustment, which preserves the order of prices"
            yield at(("spec", "price"), "KERF-NO-306", "info", message, hint, price)
    elif isinstance(adjustment, str) and (adjustment == _ALL_OF_IT or (_number(adjustment) or 0) <= -_DEAREST):
        yield _free("priceAdjustment", adjustment, count)


def _free(field: str, value: Any, count: int) -> Problem:
    message = f"{count} instance types then cost nothing, and between them nothing decides: the largest is as cheap"
    hint = 'priceAdjustment: "-99.99%" is next to nothing too, and preserves the order of prices'
    return at(("spec", field), "KERF-NO-305", "warning", message, hint, value)


def _number(text: str) -> Fraction | None:
    """An amount of money; None for a percentage, and for what is none."""
    return Fraction(text) if _NUMBER.fullmatch(text) else None
