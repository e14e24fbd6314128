"""From the lines of a file to a Snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final, get_type_hints

from kerf.ec2.instance_types import catalogue
from kerf.ec2.instance_types.built import Built, Inputs
from kerf.ec2.instance_types.formulas import Unresolvable
from kerf.model import kinds
from kerf.model.aws.cloud import ClassFacts, Instance, Region
from kerf.model.aws.instance_type import Catalogue
from kerf.model.cluster import FACTS, Cluster
from kerf.model.kinds import Kind
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.snapshots import actions
from kerf.snapshots.captured import Captured
from kerf.snapshots.lines import FORMAT, VERSION, AnyLine, End, Fact, Header, Objects, Types
from kerf.snapshots.plain import typed
from kerf_api.decoders import decoder_of
from kerf_api.v1.ec2nodeclass import EC2NodeClass

#: The types of facts by their names.
HINTS: Final = {**get_type_hints(Snapshot), "instances": Mapping[str, Instance]}
#: What a line with wrong values raises.
WRONG: Final = (ArithmeticError, AttributeError, LookupError, ValueError, TypeError, RecursionError)
_MOST_UNKNOWN: Final = 100
_LONGEST_NAME: Final = 100


class Unreadable(Exception):
    """A file that is no snapshot, or none that this version reads: the line, and why."""


def _itself(_: Kind, value: Any) -> Any:
    return value


@dataclass(slots=True)
class Reader:
    """The snapshot that lines describe. `take` gets the lines of a file; `apply` gets later changes as well.

    Attributes:
        offset: the number of lines before the snapshot's first one.
        substitute: the object in place of one of the file.
    """

    offset: int = 0
    substitute: Callable[[Kind, Any], Any] = _itself
    cluster: Cluster = field(default_factory=Cluster)
    facts: dict[str, Any] = field(default_factory=dict)
    header: Header | None = None
    region: Region | None = None
    known: tuple[str, ...] = ()
    unknown: set[str] = field(default_factory=set)
    complete: bool = False
    _built: Built = field(default_factory=Built)

    def take(self, number: int, text: bytes) -> None:
        """Raises Unreadable."""
        if self.complete:
            raise Unreadable(f"line {number}: the file continues after its end; save the snapshot again")
        try:
            line: AnyLine = decoder_of(AnyLine).decode(text)
            if self.header is None and not isinstance(line, Header):
                raise Unreadable(f"line {number}: a snapshot begins with its header")
            self._take(number, line)
        except WRONG as error:
            words = "it is no line of a snapshot" if self.header is None else str(error)
            raise Unreadable(f"line {number}: {words}") from error

    def _take(self, number: int, line: AnyLine) -> None:
        match line:
            case Header():
                self._begin(number, line)
            case End():
                if line.lines != number - 1 - self.offset:
                    raise Unreadable(
                        f"line {number}: the record of the end counts {line.lines} lines; save the snapshot again"
                    )
                self.complete = True
            case _:
                self.apply(line)

    def apply(self, line: Objects | Fact | Types) -> None:
        """Take in objects, a fact or the region's instance types. Raises ValueError for a wrong value."""
        match line:
            case Objects():
                kind = kinds.BY_NAME.get(line.kind)
                if kind is None:
                    self.ignore(line.kind)
                    return
                for value in decoder_of(tuple[kind.type, ...]).decode(line.items):  # type: ignore[name-defined]
                    self.cluster.apply(kind, self.substitute(kind, value))
            case Fact():
                self._fact(line)
            case Types():
                self.region, self.known = typed(line.region, Region), line.known

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
        if line.at.tzinfo is None:
            raise Unreadable(f"line {number}: its time has no zone")
        self.header = line

    def _fact(self, line: Fact) -> None:
        if line.name == "under_way":
            self.facts[line.name] = tuple(map(actions.from_plain, line.value))
        elif line.name in FACTS and line.name in HINTS:
            self.facts[line.name] = typed(line.value, HINTS[line.name])
        else:
            self.ignore(line.name)

    def ignore(self, name: str) -> None:
        """Note a kind or a fact that this version does not know; a few of them, as any file may be read."""
        if len(self.unknown) < _MOST_UNKNOWN:
            self.unknown.add(name[:_LONGEST_NAME])

    def captured(self, at: datetime) -> Captured:
        """The snapshot as of a time; it shares its maps with this reader. Raises Unreadable."""
        settings = self.facts.get("settings")
        if not isinstance(settings, Settings):
            raise Unreadable("it has no settings")
        facts = {name: value for name, value in self.facts.items() if name != "settings"}
        snapshot = self.cluster.snapshot(now=at, settings=settings, catalogues=self._catalogues(settings), **facts)
        header = self.header or Header(at=at)
        unknown = tuple(sorted(self.unknown))
        return Captured(snapshot, self.region, header.software, unknown, header.names, True, header.plans, header.key)

    def _catalogues(self, settings: Settings) -> dict[str, Catalogue]:
        """By class name; a catalogue is computed again when one of its inputs has changed, as the controller does."""
        classes, found = self.cluster.objects(kinds.NODE_CLASS), dict[str, Catalogue]()
        for name in self.known if self.region is not None else ():
            facts = self.facts.get("class_facts", {}).get(name)
            if name not in classes or facts is None or self.region is None:
                continue
            meta = classes[name].metadata
            inputs = Inputs(self.region, facts, meta.uid, meta.generation)
            made = self._built.get(name, inputs, partial(_types, classes[name], facts, self.region, settings))
            if made is not None:
                found[name] = made
        return found


def _types(node_class: EC2NodeClass, facts: ClassFacts, region: Region, settings: Settings) -> Catalogue | None:
    """None where they cannot be computed, as for the controller. Raises Unreadable."""
    try:
        return catalogue.build(node_class, facts, region, settings)
    except (Unresolvable, ValueError):
        return None
    except (ArithmeticError, RuntimeError) as error:  # types with numbers that EC2 does not have
        name = node_class.metadata.name
        raise Unreadable(f"the instance types of EC2NodeClass {name} cannot be computed: {error}") from error


def read(lines: Iterable[bytes]) -> Captured:
    """The snapshot that these lines are of, as it was saved.

    Instance types are computed again from the region's facts. Raises Unreadable.
    """
    reader = Reader()
    for number, text in enumerate(lines, 1):
        reader.take(number, text)
    if reader.header is None:
        raise Unreadable("it is empty")
    if not reader.complete:
        raise Unreadable("its last lines are missing: it was not written to its end, or was cut")
    return reader.captured(reader.header.at)
