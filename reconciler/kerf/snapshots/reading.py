"""From the lines of a file to a Snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, get_type_hints

from kerf.ec2.instance_types import catalogue
from kerf.ec2.instance_types.formulas import Unresolvable
from kerf.model import kinds
from kerf.model.aws.cloud import Instance, Region
from kerf.model.aws.instance_type import Catalogue
from kerf.model.cluster import FACTS, Cluster
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.snapshots import actions
from kerf.snapshots.captured import Captured
from kerf.snapshots.lines import FORMAT, VERSION, AnyLine, End, Fact, Header, Objects, Types
from kerf.snapshots.plain import typed
from kerf_api.decoders import decoder_of

#: The types of facts by their names.
HINTS: Final = {**get_type_hints(Snapshot), "instances": Mapping[str, Instance]}


class Unreadable(Exception):
    """A file that is no snapshot, or none that this version reads: the line, and why."""


@dataclass(slots=True)
class _Reader:
    cluster: Cluster = field(default_factory=Cluster)
    facts: dict[str, Any] = field(default_factory=dict)
    header: Header | None = None
    region: Region | None = None
    known: tuple[str, ...] = ()
    unknown: list[str] = field(default_factory=list)
    complete: bool = False

    def take(self, number: int, text: bytes) -> None:
        """Raises Unreadable."""
        if self.complete:
            raise Unreadable(f"line {number}: there is something after the end")
        try:
            line: AnyLine = decoder_of(AnyLine).decode(text)
            if self.header is None and not isinstance(line, Header):
                raise Unreadable(f"line {number}: a snapshot begins with its header")
            self._take(number, line)
        except (ArithmeticError, AttributeError, LookupError, ValueError, TypeError, RecursionError) as error:
            words = "it is no line of a snapshot" if self.header is None else str(error)
            raise Unreadable(f"line {number}: {words}") from error

    def _take(self, number: int, line: AnyLine) -> None:
        match line:
            case Header():
                self._begin(number, line)
            case Objects():
                kind = kinds.BY_NAME.get(line.kind)
                if kind is None:
                    self.unknown.append(line.kind)
                    return
                for value in decoder_of(tuple[kind.type, ...]).decode(line.items):  # type: ignore[name-defined]
                    self.cluster.apply(kind, value)
            case Fact():
                self._fact(line)
            case Types():
                self.region, self.known = typed(line.region, Region), line.known
            case End():
                if line.lines != number - 1:
                    raise Unreadable(f"line {number}: it ends after {line.lines} lines")
                self.complete = True

    def _begin(self, number: int, line: Header) -> None:
        if self.header is not None:
            raise Unreadable(f"line {number}: a second header")
        if line.format != FORMAT:
            raise Unreadable(f"line {number}: the format is {line.format!r}, not {FORMAT}")
        if line.version > VERSION:
            raise Unreadable(
                f"line {number}: it has version {line.version} of the format, and this kerf reads {VERSION} at most; "
                "use the version of kerf that wrote it, or a later one"
            )
        self.header = line

    def _fact(self, line: Fact) -> None:
        if line.name == "under_way":
            self.facts[line.name] = tuple(map(actions.from_plain, line.value))
        elif line.name in FACTS and line.name in HINTS:
            self.facts[line.name] = typed(line.value, HINTS[line.name])
        else:
            self.unknown.append(line.name)


def read(lines: Iterable[bytes]) -> Captured:
    """The snapshot that these lines are of, as it was saved.

    Instance types are computed again from the region's facts. Raises Unreadable.
    """
    reader = _Reader()
    for number, text in enumerate(lines, 1):
        reader.take(number, text)
    if reader.header is None:
        raise Unreadable("it is empty")
    if not reader.complete:
        raise Unreadable("its last lines are missing: it was not written to its end, or was cut")
    return _captured(reader, reader.header)


def _captured(reader: _Reader, header: Header) -> Captured:
    settings = reader.facts.pop("settings", None)
    if not isinstance(settings, Settings):
        raise Unreadable("it has no settings")
    classes = reader.cluster.objects(kinds.NODE_CLASS)
    catalogues = dict[str, Catalogue]()
    for name in reader.known if reader.region is not None else ():
        if name in classes and name in reader.facts.get("class_facts", {}):
            try:
                facts = reader.facts["class_facts"][name]
                catalogues[name] = catalogue.build(classes[name], facts, reader.region, settings)  # type: ignore[arg-type]
            except (Unresolvable, ValueError):  # as for the controller: not known
                continue
            except (ArithmeticError, RuntimeError) as error:  # types with numbers that EC2 does not have
                raise Unreadable(f"the instance types of EC2NodeClass {name} cannot be computed: {error}") from error
    snapshot = reader.cluster.snapshot(now=_utc(header.at), settings=settings, catalogues=catalogues, **reader.facts)
    return Captured(snapshot, reader.region, header.software, tuple(sorted(set(reader.unknown))), header.names, True)


def _utc(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise Unreadable("its time has no zone")
    return at
