"""docs/reference/values.md as a table, and values.yaml and its schema beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import yaml

from tests.sources import ROOT

CHART: Final = ROOT / "charts/kerf"
PAGE: Final = ROOT / "docs/reference/values.md"
_CELL: Final = re.compile(r"`([^`]*)`")


@dataclass(frozen=True, slots=True)
class Row:
    """A value: its path in values.yaml, the default that Karpenter's chart has (for ours: the default), what the page
    says of it here, and where it goes: a kind of object, perhaps with a component before it, and a path in it."""

    value: str
    theirs: str
    here: str
    kind: str
    path: str

    @property
    def same(self) -> bool:
        return self.here == "same" or self.here.startswith("same; ")

    @property
    def stated(self) -> str:
        """The default that the page says the chart has, as YAML."""
        found = _CELL.match(self.here)
        return self.theirs if self.same or found is None else found[1]


@cache
def rows(heading: str) -> tuple[Row, ...]:
    """The rows under a heading of the page."""
    _, _, part = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")
    lines = [line for line in part.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return tuple(_row(*row) if len(row) == 4 else _row(row[0], row[1], "same", row[2]) for row in cells)


def _row(value: str, theirs: str, here: str, goes_to: str) -> Row:
    path = _CELL.search(goes_to)
    kind = goes_to.partition("`")[0].strip()
    return Row(value.strip("`"), theirs.strip("`"), here, kind, path[1] if path else "")


@cache
def schema() -> Any:
    return json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))


@cache
def defaults() -> Any:
    return yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))


def leaves(values: Mapping[str, Any], described: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Paths and values, as deep as the schema spells the keys out itself."""
    for key, value in values.items():
        inner = described["properties"][key]
        if "properties" in inner:
            yield from leaves(value, inner, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def at(values: Any, path: str) -> Any:
    """The value at a path; raises KeyError when there is none."""
    for key in path.split("."):
        values = values[key]
    return values
