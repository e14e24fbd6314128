"""Notices of event processing, as values: logs, metrics and events read them afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kerf.model.aws.interruptions import InterruptionKind, Message
from kerf.model.kinds import Kind


@dataclass(frozen=True, slots=True)
class ObjectChanged:
    """An object of ours is there, is another, or is gone: `old` and `new`, None where there is none."""

    kind: Kind
    old: Any | None
    new: Any | None


@dataclass(frozen=True, slots=True)
class TypesFailed:
    """The instance types of a node class cannot be worked out."""

    class_name: str
    error: Exception


@dataclass(frozen=True, slots=True)
class ImpairmentFound:
    """EC2 finds something with an instance of ours, newly."""

    category: str


@dataclass(frozen=True, slots=True)
class MessageRead:
    """A message of the interruption queue; `error` where a bug keeps it from being read."""

    kind: InterruptionKind
    message: Message
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class FieldsDropped:
    """The API server accepted a write of an object without these fields (`kerf.model.kept`)."""

    kind: str
    fields: tuple[str, ...]


Noticed = ObjectChanged | TypesFailed | ImpairmentFound | MessageRead | FieldsDropped


class Notices:
    """One thread uses it."""

    def __init__(self) -> None:
        self._found: list[Noticed] = []

    def note(self, one: Noticed) -> None:
        self._found.append(one)

    def drain(self) -> list[Noticed]:
        """What was noticed since the last time, in its order."""
        found, self._found = self._found, []
        return found
