"""From the lines of a part to snapshots, each with the decision that was recorded for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Final

import msgspec

from kerf.model import kinds
from kerf.model.changes.indexes import InstanceIndex
from kerf.model.kinds import Kind
from kerf.records.lines import FORMAT, VERSION, AnyLine, Change, Decision, Gone, Known, Start
from kerf.snapshots.captured import Captured
from kerf.snapshots.lines import End, Fact, Header, Objects, Types
from kerf.snapshots.plain import typed
from kerf.snapshots.reading import HINTS, WRONG, Reader, Unreadable
from kerf_api.decoders import decoder_of

_MOST_CHANGED: Final = 1_000_000
_DECISION: Final = Decision.__struct_config__.tag


@dataclass(frozen=True, slots=True)
class Step:
    """A recorded decision.

    Attributes:
        decision: the recorded outcome.
        changed: the objects that changed since the step before, as `Kind namespace/name`.
    """

    decision: Decision
    changed: tuple[str, ...]
    _reader: Reader

    def captured(self) -> Captured:
        """The snapshot that it was made of. Call it before the next step is read. Raises Unreadable."""
        return self._reader.captured(self.decision.at)

    def objects(self, kind: Kind) -> Mapping[str, Any]:
        """The objects of a kind by key, without the cost of a snapshot. Use it before the next step is read."""
        return self._reader.cluster.objects(kind)


class _Timed(msgspec.Struct, frozen=True):
    line: str
    at: datetime | None = None


def times(lines: Iterable[bytes]) -> Iterator[datetime]:
    """The times of the decisions of a part, without the cost of their objects. Raises Unreadable."""
    decoder = decoder_of(_Timed)
    for number, text in enumerate(lines, 1):
        try:
            line = decoder.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Unreadable(f"line {number}: {error}") from error
        if line.line == _DECISION:
            if line.at is None or line.at.tzinfo is None:
                raise Unreadable(f"line {number}: its time has no zone")
            yield line.at


@dataclass(slots=True)
class Part:
    """Reads the lines of one part. `start` is its first line, once it was read."""

    start: Start | None = None
    _reader: Reader = field(default_factory=lambda: Reader(offset=1))
    _changed: dict[str, None] = field(default_factory=dict)

    @classmethod
    def replacing(cls, substitute: Callable[[Kind, Any], Any]) -> Part:
        """One whose snapshots have these objects in place of recorded ones."""
        return cls(_reader=Reader(offset=1, substitute=substitute))

    @property
    def began(self) -> datetime | None:
        """The time of its first snapshot, once the header of that was read."""
        header = self._reader.header
        return None if header is None else header.at

    def steps(self, lines: Iterable[bytes]) -> Iterator[Step]:
        """The decisions in order. Raises Unreadable, with the number of the line."""
        number = 0
        for number, text in enumerate(lines, 1):
            if number == 1:
                self._begin(text)
            elif not self._reader.complete:
                self._reader.take(number, text)
            else:
                step = self._line(number, text)
                if step is not None:
                    yield step
        if not self._reader.complete:
            raise Unreadable(f"line {number}: its first snapshot is not complete")

    def head(self, lines: Iterable[bytes]) -> datetime:
        """Read no more than the headers; the time of the first snapshot. Raises Unreadable."""
        found = iter(lines)
        for text in islice(found, 1):
            self._begin(text)
        for text in islice(found, 1):
            self._reader.take(2, text)
        if self.began is None:
            raise Unreadable("line 2: its first snapshot is missing")
        return self.began

    def _begin(self, text: bytes) -> None:
        try:
            line: AnyLine = decoder_of(AnyLine).decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Unreadable("line 1: it is no line of a record") from error
        if not isinstance(line, Start) or line.format != FORMAT:
            raise Unreadable("line 1: a record begins with its header; is it a file of `kerf snapshot`?")
        if line.version > VERSION:
            raise Unreadable(
                f"line 1: it has version {line.version} of the format, and this kerf reads {VERSION} at most; "
                "use the version of kerf that wrote it, or a later one"
            )
        self.start = line

    def _line(self, number: int, text: bytes) -> Step | None:
        try:
            line: AnyLine = decoder_of(AnyLine).decode(text)
            if not isinstance(line, Decision):
                self._take(number, line)
                return None
        except WRONG as error:
            raise Unreadable(f"line {number}: {error}") from error
        if line.at.tzinfo is None:
            raise Unreadable(f"line {number}: its time has no zone")
        changed, self._changed = tuple(self._changed), {}
        return Step(line, changed, self._reader)

    def _take(self, number: int, line: AnyLine) -> None:
        reader = self._reader
        match line:
            case Objects() | Fact() | Types():
                reader.apply(line)
                if isinstance(line, Objects):
                    self._note_all(line)
            case Gone():
                kind = kinds.BY_NAME[line.kind]
                for key in line.keys:
                    namespace, _, name = key.rpartition("/")
                    reader.cluster.remove(kind, namespace, name)
                    self._note(f"{line.kind} {key} deleted")
            case Change():
                self._entries(line)
            case Known():
                reader.known = line.classes
            case Start() | Header() | End() | Decision():
                raise Unreadable(f"line {number}: it does not belong here")

    def _note_all(self, line: Objects) -> None:
        for one in msgspec.json.decode(line.items):
            meta = one.get("metadata", {})
            place = f"{meta['namespace']}/" if meta.get("namespace") else ""
            self._note(f"{line.kind} {place}{meta.get('name', '')}")

    def _note(self, name: str) -> None:
        """Raises ValueError for more names than a cluster has objects."""
        self._changed[name] = None
        if len(self._changed) > _MOST_CHANGED:
            raise ValueError(f"more than {_MOST_CHANGED:,} objects changed before one decision")

    def _entries(self, line: Change) -> None:
        facts = self._reader.facts
        if line.name not in HINTS:
            self._reader.ignore(line.name)
            return
        before: Mapping[Any, Any] = facts.get(line.name, {})
        gone = set(map(_key, line.gone))
        kept = {key: value for key, value in before.items() if key not in gone}
        merged = {**kept, **typed(line.entries or {}, HINTS[line.name])}
        facts[line.name] = InstanceIndex.of(merged) if line.name == "instances" else merged


def _key(key: Any) -> Any:
    return tuple(map(_key, key)) if isinstance(key, list) else key
