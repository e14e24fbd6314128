"""The instance types that the linter knows, so that it can say what a requirement leaves over.

A table with a column for each label, as `kerf catalogue` prints it. A set of types is one integer, a bit for each; the
types that meet a requirement are looked up once for each label and value and then combined, so that a NodePool of
thirty requirements costs microseconds. The table is of one region and one day: what is found here is advice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from importlib.resources import files
from typing import Final

import msgspec

from kerf_api import labels, type_names
from kerf_api.decoders import decoder_of
from kerf_api.requirements import Requirement

Cell = str | list[str] | None


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file: names, and for every label one value for each name."""

    types: list[str]
    labels: dict[str, list[Cell]]


class Catalogue:
    """Instance types and their labels; immutable. With `partial` EC2 may have others, in any region."""

    def __init__(self, table: Table, *, partial: bool = False) -> None:
        if any(len(column) != len(table.types) for column in table.labels.values()):
            raise ValueError("every label of a catalogue needs one value for each type")
        self.names: Final = tuple(table.types)
        self._partial: Final = partial
        own: dict[str, list[Cell]] = {labels.INSTANCE_TYPE: [*table.types], labels.OS: _systems(table)}
        self._columns: Final[dict[str, list[Cell]]] = {**table.labels, **own}
        self._masks: Final[dict[str, Mapping[str, int]]] = {}

    @cached_property
    def every(self) -> int:
        """The set of all types."""
        return (1 << len(self.names)) - 1

    def knows(self, key: str) -> bool:
        """Whether the types say anything about a label."""
        return key in self._columns

    def values(self, key: str) -> Mapping[str, int]:
        """The values that a label has, each with the set of types that have it."""
        if key not in self._masks:
            found: dict[str, int] = {}
            for bit, cell in enumerate(self._columns.get(key, ())):
                for value in _cells(key, cell):
                    found[value] = found.get(value, 0) | 1 << bit
            self._masks[key] = found
        return self._masks[key]

    def lacks(self, key: str, value: str) -> bool:
        """Whether a partial table lacks the facts of types that have this value, by their names."""
        named = self._partial and key in type_names.LABELS and value not in self.values(key)
        return named and value in type_names.values()[key]

    def meeting(self, requirement: Requirement) -> int:
        """The set of types that meet a requirement; all of them when they say nothing about its label."""
        if not self.knows(requirement.key):
            return self.every
        found = (
            0 if requirement.operator not in ("NotIn", "DoesNotExist") else self.every & ~self._having(requirement.key)
        )
        for value, types in self.values(requirement.key).items():
            if requirement.has(value):
                found |= types
        return found

    def meeting_all(self, requirements: Iterable[Requirement]) -> int:
        """The set of types that meet every requirement."""
        found = self.every
        for requirement in requirements:
            found &= self.meeting(requirement)
        return found

    def distinct(self, key: str, types: int) -> int:
        """How many different values of a label there are among some types."""
        return sum(1 for having in self.values(key).values() if having & types)

    def named(self, types: int) -> list[str]:
        """The names in a set."""
        return [name for bit, name in enumerate(self.names) if types >> bit & 1]

    def _having(self, key: str) -> int:
        found = 0
        for types in self.values(key).values():
            found |= types
        return found


def read(text: bytes) -> Catalogue:
    """A catalogue from the text that `kerf catalogue` prints. Raises ValueError for any other text."""
    return Catalogue(decoder_of(Table).decode(text))


@cache
def shipped() -> Catalogue:
    """The catalogue that is part of the linter: the types of us-east-1."""
    table = decoder_of(Table).decode(files("kerf_api.lint").joinpath("instance_types.json").read_bytes())
    return Catalogue(table, partial=True)


def _systems(table: Table) -> list[Cell]:
    """Every type can run Linux, and those of amd64 Windows too."""
    architectures = table.labels.get(labels.ARCH, [])
    return [["linux", "windows"] if cell == "amd64" else "linux" for cell in architectures]


def _cells(key: str, cell: Cell) -> Iterable[str]:
    values = () if cell is None else (cell,) if isinstance(cell, str) else tuple(cell)
    # What can be bought on demand can be reserved.
    return (*values, labels.RESERVED) if key == labels.CAPACITY_TYPE and labels.ON_DEMAND in values else values
