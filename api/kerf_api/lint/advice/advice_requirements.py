"""Advice about what a NodePool's requirements leave over, by the instance types that the linter knows.

What pools and overlays have in common is in requirement_advice.py; here is what matters to a pool alone, which has to
find machines: one zone, few types for spot, and minValues.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerf_api import labels
from kerf_api.lint.advice.requirement_advice import PLACES, AdviceRules, Known, Row, no_zone, unmet
from kerf_api.lint.problem import Problem, at

_RULES: Final = AdviceRules(
    unknown_value="KERF-NP-301",
    factless="KERF-NP-308",
    region="KERF-NP-302",
    conflict="KERF-NP-304",
    nothing_left="KERF-NP-305",
    fate="the NodePool never launches",
)
#: Fewer types than this, and one shortage of spot capacity stops the pool.
FEW_TYPES: Final = 5


def check(known: Known) -> Iterator[Problem]:
    """Advice about the requirements of a NodePool."""
    place, _ = PLACES["NodePool"]
    found = [*unmet(known, place, _RULES)]
    yield from found
    yield from (problem for row in known.rows for problem in _one_zone(row))
    if known.factless or any(problem.rule != _RULES.region for problem in found):
        return
    for row in known.rows:
        yield from _spot(row, known)
        yield from _too_few_values(row, known)


def _one_zone(row: Row) -> Iterator[Problem]:
    if row.wanted.key == labels.ZONE and len(set(row.values)) == 1 and no_zone(row.values[0]) is None:
        message = f"all nodes are in the one zone {row.values[0]}"
        hint = "list two zones or more, unless volumes or prices tie the pods to this one"
        yield at(row.steps, "KERF-NP-303", "warning", message, hint, row.values[0])


def _spot(row: Row, known: Known) -> Iterator[Problem]:
    wants_spot = row.wanted.key == labels.CAPACITY_TYPE and labels.SPOT in row.values
    if wants_spot and known.left.bit_count() < FEW_TYPES:
        names = known.types.named(known.left)
        message = f"only {len(names)} instance types are left ({', '.join(names)}), which is few for spot"
        hint = "allow more families or sizes; spot capacity of one type runs out at once in all its zones"
        yield at(row.steps, "KERF-NP-306", "warning", message, hint, len(names))


def _too_few_values(row: Row, known: Known) -> Iterator[Problem]:
    least, key = row.wanted.min_values, row.wanted.key
    if least is None or not known.types.knows(key):
        return
    found = known.types.distinct(key, known.left)
    if found < least:
        message = f"minValues is {least}, but the types that meet all requirements have only {found} values of {key}"
        hint = f"use {found} or less, or allow more types"
        yield at((*row.steps, "minValues"), "KERF-NP-307", "warning", message, hint, least)
