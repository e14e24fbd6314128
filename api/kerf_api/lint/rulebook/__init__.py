"""The rule book: every rule of the linter with its reason, its fix, and an example of each side.

A problem names its rule (`KERF-NP-120`); here stands what that rule is about. `kerf explain` and the reference page in
the documentation are made from these entries, and a test breaks and keeps every rule with its own examples, so that
no entry can say what is not so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

import msgspec
from ruamel.yaml import YAML

from kerf_api.lint.problem import Severity

#: One file per family, in the order in which a reader meets them.
FAMILIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "NodePool": "nodepool.yaml",
        "EC2NodeClass": "ec2nodeclass.yaml",
        "NodeClaim": "nodeclaim.yaml",
        "NodeOverlay": "nodeoverlay.yaml",
        "CapacityBuffer": "capacitybuffer.yaml",
        "Names": "meta.yaml",
        "Shape": "schema.yaml",
        "Side by side": "set.yaml",
        "Changes": "diff.yaml",
        "Old names": "old.yaml",
        "Conversion": "conversion.yaml",
        "Files": "file.yaml",
    }
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One rule.

    `wrong` and `right` change fields of the smallest manifest of `kind`: a path and what stands there, None for a field
    that is left out. `old` is the same for the object before a change. Rules across objects have lists of objects
    instead, in `wrong_files` and `right_files`: the smallest manifest of a kind, by name, with fields that are `set`.
    Rules about what a change means have `old_files`, too, which may become either; a list may be empty then.
    """

    id: str
    family: str
    title: str
    severity: Severity
    why: str
    fix: str
    kind: str = ""
    wrong: Mapping[str, Any] | None = None
    right: Mapping[str, Any] | None = None
    old: Mapping[str, Any] | None = None
    wrong_files: tuple[Mapping[str, Any], ...] = ()
    right_files: tuple[Mapping[str, Any], ...] = ()
    old_files: tuple[Mapping[str, Any], ...] = ()


@cache
def book() -> Mapping[str, Entry]:
    """Every entry by its ID, in the order of the book. Raises ValueError for an entry that cannot be read."""
    entries = [entry for family, name in FAMILIES.items() for entry in _read(family, name)]
    found = {entry.id: entry for entry in entries}
    if len(found) != len(entries):
        raise ValueError("a rule is twice in the rule book")
    return MappingProxyType(found)


def _read(family: str, name: str) -> list[Entry]:
    text = files(__name__).joinpath(name).read_text(encoding="utf-8")
    return [_entry(family, rule, fields) for rule, fields in YAML(typ="safe").load(text).items()]


def _entry(family: str, rule: str, fields: dict[str, Any]) -> Entry:
    try:
        return msgspec.convert({"id": rule, "family": family, **fields}, Entry)
    except msgspec.ValidationError as problem:
        raise ValueError(f"{rule} in the rule book: {problem}") from None
