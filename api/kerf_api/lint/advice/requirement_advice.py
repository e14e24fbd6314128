"""Advice about requirements that NodePools and NodeOverlays share, by the instance types that the linter knows.

A requirement that nothing meets is legal: a pool never launches, an overlay changes nothing, and neither says so. Here
it is reported at once, with the nearest value or the one requirement that excludes all types. What all advice of one
validation needs is read once, into a `Known`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, Final

from kerf_api import labels, type_names
from kerf_api.lint import nearest
from kerf_api.lint.catalogue import Catalogue
from kerf_api.lint.problem import Problem, Steps, at, shown
from kerf_api.lint.reading.reading import entries, mapping, texts
from kerf_api.lint.settings import LintSettings
from kerf_api.requirements import Requirement, Requirements, requirement

_REGION: Final = re.compile(r"[a-z]{2}(?:-[a-z]+)++-[0-9]")
#: The forms of `us-east-1a` and `us-west-2-lax-1a`, and those of `use1-az1` and `usw2-lax1-az1`.
_ZONE_NAME: Final = re.compile(r"[a-z]{2}(?:-[a-z]+)++-[0-9](?:[a-z]|-[a-z0-9-]{1,40})")
_ZONE_ID: Final = re.compile(r"[a-z]{2,8}[0-9](?:-[a-z0-9]{1,12}){0,2}-az[0-9]{1,2}")
#: Where a kind's requirements stand, and the labels that all of its nodes get.
PLACES: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "NodePool": (("spec", "template", "spec", "requirements"), ("spec", "template", "metadata", "labels")),
    "NodeOverlay": (("spec", "requirements"), ()),
}
#: What is looked at: more entries are refused anyway, and a longer list of unknown values helps no reader.
_MOST_ROWS: Final = 200
_MOST_UNKNOWN: Final = 20
_LONGEST_NUMBER: Final = 30
_FAMILY: Final = f"{labels.AWS_GROUP}/instance-family"
_IN_MIB: Final = frozenset({f"{labels.AWS_GROUP}/instance-memory", f"{labels.AWS_GROUP}/instance-gpu-memory"})
_SIZE: Final = re.compile(r"([0-9]{1,6})(gib?|gb?|)", re.ASCII | re.IGNORECASE)
#: The MiB of a GiB; few types have less memory.
_GIB: Final = 1024
#: Names that other tools have for a value.
_OTHER_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    labels.ARCH: {
        "x86_64": "amd64",
        "x86-64": "amd64",
        "x86": "amd64",
        "x64": "amd64",
        "aarch64": "arm64",
        "arm": "arm64",
    },
}


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement and where it stands: an entry of the list, or a label of the template.

    `values` are those that are listed for the operator In; `is_label` says that there is one, and no list around it.
    """

    steps: Steps
    wanted: Requirement
    values: tuple[str, ...]
    is_label: bool = False

    def place(self, index: int) -> Steps:
        """Where one of the values stands."""
        return self.steps if self.is_label else (*self.steps, "values", index)


@dataclass(frozen=True, slots=True)
class Known:
    """What all advice of one validation knows: the manifest as it was written, the same with its defaults, the types
    to look things up in, what is required, and the set of types that meet all of it.

    `factless` says that types are listed which the catalogue lacks: `left` is not all that may be left then."""

    given: Mapping[str, Any]
    manifest: Mapping[str, Any]
    types: Catalogue
    rows: tuple[Row, ...]
    left: int
    factless: bool

    @classmethod
    def of(cls, kind: str, given: Mapping[str, Any], manifest: Mapping[str, Any], settings: LintSettings) -> Known:
        """Read it; every type is left where the kind has no requirements."""
        rows, types = rows_of(kind, manifest), settings.types
        factless = any(types.lacks(row.wanted.key, value) for row in rows for value in row.values)
        return cls(given, manifest, types, rows, types.meeting_all(row.wanted for row in rows), factless)


@dataclass(frozen=True, slots=True)
class AdviceRules:
    """The IDs by which a kind is advised on its requirements, and what comes of it when nothing meets them."""

    unknown_value: str
    factless: str
    region: str
    conflict: str
    nothing_left: str
    fate: str


def rows_of(kind: str, manifest: Mapping[str, Any]) -> tuple[Row, ...]:
    """What a manifest asks of nodes, row by row, as far as it can be read."""
    if kind not in PLACES:
        return ()
    place, fixed = PLACES[kind]
    return tuple(islice(chain(_listed(manifest, place), _labels(manifest, fixed)), _MOST_ROWS))


def requirements(kind: str, manifest: Mapping[str, Any]) -> Requirements:
    """What a manifest asks of nodes, all demands on a label made one."""
    return Requirements(row.wanted for row in rows_of(kind, manifest))


def _listed(manifest: Mapping[str, Any], place: tuple[str, ...]) -> Iterator[Row]:
    for steps, entry in entries(manifest, *place):
        key, operator, values = entry.get("key"), entry.get("operator"), tuple(texts(entry.get("values")))
        least = entry.get("minValues")
        if isinstance(key, str) and isinstance(operator, str):
            try:
                wanted = requirement(key, operator, values, least if isinstance(least, int) else None)
            except ValueError:
                continue
            yield Row(steps, wanted, values if operator == "In" else ())


def _labels(manifest: Mapping[str, Any], place: tuple[str, ...]) -> Iterator[Row]:
    for key, value in mapping(manifest, *place).items() if place else ():
        if isinstance(value, str):
            yield Row((*place, key), requirement(key, "In", (value,)), (value,), is_label=True)


def unmet(known: Known, place: Steps, rules: AdviceRules) -> Iterator[Problem]:
    """Why nothing meets the requirements at a place, as far as that is known; nothing when something does."""
    unknown = partial(_unknown_values, types=known.types, rules=rules)
    missing = [*islice(chain.from_iterable(map(unknown, known.rows)), _MOST_UNKNOWN)]
    conflicts = [*_conflicts(known.rows, rules)]
    yield from missing
    yield from chain.from_iterable(_regions(row, rules) for row in known.rows)
    yield from conflicts
    if known.rows and not (missing or conflicts or known.left or known.factless):
        yield from _nothing_left(known, place, rules)


def _unknown_values(row: Row, types: Catalogue, rules: AdviceRules) -> Iterator[Problem]:
    """Listed values that no type has. Values of keys that the linter itself knows are judged elsewhere."""
    key = row.wanted.key
    if not types.knows(key) or key == labels.CAPACITY_TYPE:
        return
    having = types.values(key)
    for index, value in enumerate(row.values):
        if value in having:
            continue
        if types.lacks(key, value):
            yield at(row.place(index), rules.factless, "info", *_factless(key, value), value)
            continue
        hint = _value_hint(key, value, having)
        message = f"no instance type has {shown(value)} as its {key}"
        yield at(row.place(index), rules.unknown_value, "warning", message, hint, value)


def _value_hint(key: str, value: str, having: Collection[str]) -> str:
    """What to write in place of a value that no type has; empty when nothing is likely."""
    named = type_names.values()[key] if key in type_names.LABELS else frozenset[str]()
    if value in named:
        return "EC2 has it, but not in the region of this catalogue"
    known = {*having, *named}
    if key in _IN_MIB:
        return _mebibytes(value, known)
    meant = _OTHER_NAMES.get(key, {}).get(value.lower()) or (value.partition(".")[0] if key == _FAMILY else "")
    close = meant if meant in known else _nearest_value(value, known)
    return f"did you mean {close}?" if close else ""


def _mebibytes(value: str, known: Collection[str]) -> str:
    """Sizes of memory are numbers of MiB; a smaller number, or one with a unit, was thought of in GiB."""
    found = _SIZE.fullmatch(value)
    if found is None or (not found[2] and int(found[1]) >= _GIB):
        close = _nearest_value(value, known)
        return f"did you mean {close}?" if close else ""
    return f"the unit is MiB: {found[1]} GiB is {int(found[1]) * _GIB}"


def _factless(key: str, value: str) -> tuple[str, str]:
    """Message and hint about a value of types that are known by name only."""
    if key == labels.INSTANCE_TYPE:
        message = f"{value} is an instance type of EC2, but the catalogue has no facts about it"
    else:
        message = (
            f"EC2 has instance types with {shown(value)} as their {key}, but the catalogue has no facts about them"
        )
    return message, "check that the region offers it; kerf catalogue prints a table of a region for --catalogue"


def _nearest_value(value: str, having: Collection[str]) -> str | None:
    if not (value.isascii() and value.isdigit() and len(value) <= _LONGEST_NUMBER):
        return nearest.name(value, having)
    numbers = [int(entry) for entry in having if entry.isdigit()]
    return str(min(numbers, key=lambda number: (abs(number - int(value)), number))) if numbers else None


def no_zone(value: str) -> tuple[str, str] | None:
    """Message and hint about a value that is the name of no zone; None for one that may be."""
    if _REGION.fullmatch(value):
        return f"{shown(value)} is a region; no zone has that name", f"did you mean {value}a?"
    if _ZONE_ID.fullmatch(value):
        message = f"{shown(value)} is the ID of a zone; no zone has that name"
        return message, f"write the zone's name, such as us-east-1a, or use the key {labels.ZONE_ID}"
    return None


def _no_zone_id(value: str) -> tuple[str, str] | None:
    """As `no_zone`, for IDs of zones."""
    if not (_REGION.fullmatch(value) or _ZONE_NAME.fullmatch(value)):
        return None
    what = "a region" if _REGION.fullmatch(value) else "the name of a zone"
    hint = f"write the zone's ID, such as use1-az1, or use the key {labels.ZONE}"
    return f"{shown(value)} is {what}; no zone has that ID", hint


_ZONES: Final[Mapping[str, Callable[[str], tuple[str, str] | None]]] = {
    labels.ZONE: no_zone,
    labels.ZONE_ID: _no_zone_id,
}


def _regions(row: Row, rules: AdviceRules) -> Iterator[Problem]:
    judge = _ZONES.get(row.wanted.key)
    for index, value in enumerate(row.values if judge is not None else ()):
        if judge is not None and (found := judge(value)) is not None:
            yield at(row.place(index), rules.region, "warning", *found, value)


def _conflicts(rows: Iterable[Row], rules: AdviceRules) -> Iterator[Problem]:
    """Two demands on one label that cannot be met at once."""
    before: dict[str, Requirement] = {}
    for row in rows:
        key = row.wanted.key
        other = before.get(key)
        if other is not None and Requirements((other,)).conflict(Requirements((row.wanted,))):
            message = f"no value of {key} meets this requirement and the earlier ones; {rules.fate}"
            yield at(row.steps, rules.conflict, "warning", message, "remove one of the two", None)
        before[key] = row.wanted if other is None else other.intersection(row.wanted)


def _nothing_left(known: Known, place: Steps, rules: AdviceRules) -> Iterator[Problem]:
    """No type meets all: the requirement without which most types would be left is to blame."""
    count, index = max((_without(known, row), -i) for i, row in enumerate(known.rows))
    message = f"no instance type meets all requirements together; {rules.fate}"
    if not count:
        yield at(place, rules.nothing_left, "warning", message, "allow more in two of them or more")
        return
    row = known.rows[-index]
    hint = f"{count} types meet all others; check this one first"
    message += f": {row.wanted} excludes the types that meet all others"
    yield at(row.steps, rules.nothing_left, "warning", message, hint)


def _without(known: Known, spared: Row) -> int:
    """How many types meet all requirements but one."""
    return known.types.meeting_all(row.wanted for row in known.rows if row is not spared).bit_count()
