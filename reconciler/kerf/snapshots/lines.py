"""The lines of a file: each is one JSON object. docs/reference/snapshots.md describes them.

The first has the format and its version, the last says that the file is complete. A line of a later version that this
one does not know makes the file unreadable; a field that it does not know is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Raw, Struct, field

FORMAT: Final = "kerf.sh/snapshot"
#: It rises when a reader of the version before would misunderstand a file.
VERSION: Final = 1


class Line(Struct, frozen=True, kw_only=True, tag_field="line", rename="camel", omit_defaults=True):
    """Base of all lines; `line` names the type."""


class Header(Line, frozen=True, kw_only=True, tag="header"):
    """The first line. `at` is the time of the snapshot; `names` is `plain` or `pseudonyms`.

    `plans` has digests of plans in the file, with those in the cluster. `key` is the fingerprint of the key of its
    digests; empty when that is not known, as in files of earlier versions.
    """

    format: str = FORMAT
    version: int = VERSION
    at: datetime
    names: str = "plain"
    software: Mapping[str, str] = {}
    plans: Mapping[str, str] = {}
    key: str = ""


class Objects(Line, frozen=True, kw_only=True, tag="objects"):
    """Some objects of one kind."""

    kind: str
    items: Raw = field(default_factory=lambda: Raw(b"[]"))


class Fact(Line, frozen=True, kw_only=True, tag="fact"):
    """A field of the Snapshot that is no table of objects, by its name."""

    name: str
    value: Any = None


class Types(Line, frozen=True, kw_only=True, tag="region"):
    """The region's instance types, zones and prices, and the names of the EC2NodeClasses whose types are known."""

    region: Any
    known: tuple[str, ...] = ()


class End(Line, frozen=True, kw_only=True, tag="end"):
    """The last line, with the number of those before it."""

    lines: int


AnyLine = Header | Objects | Fact | Types | End
