"""Advice about what a NodePool's requirements leave over, by the instance types that the linter knows.

A requirement that nothing meets is legal: the pool is Ready and never launches. Here it is told at once, with the
nearest value or the one requirement that stands in the way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from api import labels
from api.requirements import Requirement, Requirements, requirement

from . import nearest
from .catalogue import Catalogue
from .problem import Problem, Steps, at, shown
from .reading import entries, mapping, texts
from .settings import LintSettings

_TEMPLATE: Final = ("spec", "template", "spec")
_LABELS: Final = ("spec", "template", "metadata", "labels")
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]")
#: Fewer types than this, and one shortage of spot capacity stops the pool.
FEW_TYPES: Final = 5
#: What is looked at: more entries are refused anyway, and of more unknown values nobody reads.
_MOST_ROWS: Final = 200
_MOST_UNKNOWN: Final = 20
_LONGEST_NUMBER: Final = 30


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement and where it stands: an entry of the list, or a label of the template."""

    steps: Steps
    wanted: Requirement
    values: tuple[str, ...]

    def place(self, index: int) -> Steps:
        """Where one of the values stands; a label has but one."""
        return self.steps if self.steps[: len(_LABELS)] == _LABELS else (*self.steps, "values", index)


def check(given: Mapping[str, Any], manifest: Mapping[str, Any], settings: LintSettings) -> Iterator[Problem]:
    """Advice about the requirements of a NodePool."""
    types, rows = settings.types, [*islice(_rows(manifest), _MOST_ROWS)]
    missing = [*islice((problem for row in rows for problem in _unknown_values(row, types)), _MOST_UNKNOWN)]
    yield from missing
    yield from (problem for row in rows for problem in _zones(row))
    conflicts = [*_conflicts(rows)]
    yield from conflicts
    if missing or conflicts:
        return
    left = types.meeting_all(row.wanted for row in rows)
    if not left:
        yield from _nothing_left(rows, types)
        return
    yield from _spot(rows, types, left)
    yield from (problem for row in rows for problem in _too_few_values(row, types, left))


def requirements(manifest: Mapping[str, Any]) -> Requirements:
    """What a NodePool asks of its nodes, as far as it can be read: its requirements and the template's labels."""
    return Requirements(row.wanted for row in islice(_rows(manifest), _MOST_ROWS))


def _rows(manifest: Mapping[str, Any]) -> Iterator[Row]:
    for steps, entry in entries(manifest, *_TEMPLATE, "requirements"):
        key, operator, values = entry.get("key"), entry.get("operator"), tuple(texts(entry.get("values")))
        least = entry.get("minValues")
        if isinstance(key, str) and isinstance(operator, str):
            try:
                wanted = requirement(key, operator, values, least if isinstance(least, int) else None)
            except ValueError:
                continue
            yield Row(steps, wanted, values if operator == "In" else ())
    for key, value in mapping(manifest, *_LABELS).items():
        if isinstance(value, str):
            yield Row((*_LABELS, key), requirement(key, "In", (value,)), (value,))


def _unknown_values(row: Row, types: Catalogue) -> Iterator[Problem]:
    """Listed values that no type has. Values of keys that the linter itself knows are judged elsewhere."""
    key = row.wanted.key
    if not types.knows(key) or key == labels.CAPACITY_TYPE:
        return
    known = types.values(key)
    for index, value in enumerate(row.values):
        if value in known:
            continue
        close = _nearest_value(value, known)
        message = f"no instance type has {shown(value)} as its {key}"
        yield at(row.place(index), "KERF-NP-301", "warning", message, f"did you mean {close}?" if close else "", value)


def _nearest_value(value: str, known: Mapping[str, int]) -> str | None:
    if not (value.isascii() and value.isdigit() and len(value) <= _LONGEST_NUMBER):
        return nearest.name(value, known)
    numbers = [int(entry) for entry in known if entry.isdigit()]
    return str(min(numbers, key=lambda number: (abs(number - int(value)), number))) if numbers else None


def _zones(row: Row) -> Iterator[Problem]:
    if row.wanted.key != labels.ZONE:
        return
    for index, value in enumerate(row.values):
        if _REGION.fullmatch(value):
            message = f"{shown(value)} is a region; no zone has that name"
            yield at(row.place(index), "KERF-NP-302", "warning", message, f"did you mean {value}a?", value)
    if len(set(row.values)) == 1 and not _REGION.fullmatch(row.values[0]):
        message = f"all nodes are in the one zone {row.values[0]}"
        hint = "list two zones or more, unless volumes or prices tie the pods to this one"
        yield at(row.steps, "KERF-NP-303", "warning", message, hint, row.values[0])


def _conflicts(rows: list[Row]) -> Iterator[Problem]:
    """Two demands on one label that no value meets."""
    before: dict[str, Requirement] = {}
    for row in rows:
        key = row.wanted.key
        other = before.get(key)
        if other is not None and not other.intersects(row.wanted):
            message = f"no value of {key} meets this and what was asked of it before; the pool never launches"
            yield at(row.steps, "KERF-NP-304", "warning", message, "remove one of the two", None)
        before[key] = row.wanted if other is None else other.intersection(row.wanted)


def _nothing_left(rows: list[Row], types: Catalogue) -> Iterator[Problem]:
    """No type meets all: the requirement without which most types would be left is to blame."""
    spared = [(types.meeting_all(r.wanted for r in rows if r is not row).bit_count(), -i) for i, row in enumerate(rows)]
    count, index = max(spared)
    message = "no instance type meets all requirements together; the pool never launches"
    if not count:
        yield at((*_TEMPLATE, "requirements"), "KERF-NP-305", "warning", message, "allow more in two of them or more")
        return
    row = rows[-index]
    hint = f"{count} types meet all others; look at this one first"
    yield at(row.steps, "KERF-NP-305", "warning", f"{message}: {row.wanted} goes with none of them", hint)


def _spot(rows: list[Row], types: Catalogue, left: int) -> Iterator[Problem]:
    for row in rows:
        if row.wanted.key == labels.CAPACITY_TYPE and labels.SPOT in row.values and left.bit_count() < FEW_TYPES:
            names = types.named(left)
            message = f"only {len(names)} instance types are left ({', '.join(names)}), which is few for spot"
            hint = "allow more families or sizes; spot capacity of one type runs out at once in all its zones"
            yield at(row.steps, "KERF-NP-306", "warning", message, hint, len(names))


def _too_few_values(row: Row, types: Catalogue, left: int) -> Iterator[Problem]:
    least, key = row.wanted.min_values, row.wanted.key
    if least is None or not types.knows(key):
        return
    found = types.distinct(key, left)
    if found < least:
        message = f"minValues is {least}, but the types that meet all requirements have only {found} values of {key}"
        hint = f"use {found} or less, or allow more types"
        yield at((*row.steps, "minValues"), "KERF-NP-307", "warning", message, hint, least)
