"""The lines of a part of a record beside those of snapshots. docs/recorder.md describes them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from kerf.snapshots.lines import End, Fact, Header, Line, Objects, Types

FORMAT: Final = "kerf.sh/record"
#: It rises when a reader of the version before would misunderstand a record.
VERSION: Final = 1


class Start(Line, frozen=True, kw_only=True, tag="record"):
    """The first line of a part; a snapshot follows, and then decisions.

    `software` are versions by name, and the CPU model. `run` names the process that wrote it.
    """

    format: str = FORMAT
    version: int = VERSION
    run: str = ""
    software: Mapping[str, str] = {}


class Gone(Line, frozen=True, kw_only=True, tag="gone"):
    """Objects of one kind that were deleted: `namespace/name`, or the name of one without a namespace."""

    kind: str
    keys: tuple[str, ...]


class Change(Line, frozen=True, kw_only=True, tag="change"):
    """Changed entries of a fact that is a map, and the keys of those that were removed."""

    name: str
    entries: Any = None
    gone: Any = ()


class Known(Line, frozen=True, kw_only=True, tag="known"):
    """The names of the EC2NodeClasses whose instance types are known from here on."""

    classes: tuple[str, ...]


class Act(Line, frozen=True, kw_only=True, tag="action"):
    """An action in words: its verb and object, its reason, and the digest of its content."""

    key: str
    reason: str
    digest: str


class Decision(Line, frozen=True, kw_only=True, tag="decision"):
    """The plan for the snapshot of the lines so far, as of `at`.

    `digest` covers all of the plan but `due`, the time of the next reconcile. `missed` decisions before this one were
    not recorded, because the recorder could not follow.
    """

    at: datetime
    digest: str
    due: datetime | None = None
    actions: tuple[Act, ...] = ()
    more_actions: int = 0
    refused: int = 0
    missed: int = 0


AnyLine = Start | Header | Objects | Fact | Types | End | Gone | Change | Known | Decision
