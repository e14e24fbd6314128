"""From a Snapshot to the lines of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import fields
from typing import Any, Final

import msgspec

from kerf.model import kinds
from kerf.model.cluster import FACTS, FIELDS
from kerf.model.snapshot import Snapshot
from kerf.snapshots import actions
from kerf.snapshots.captured import Captured
from kerf.snapshots.lines import End, Fact, Header, Line, Objects, Types
from kerf.snapshots.plain import plain
from kerf.snapshots.sanitizing import Sanitizer

#: Objects per line: encoding them takes a few milliseconds, in which no other thread runs.
_PIECE: Final = 500
#: The facts that have a line of their own, or is computed from others.
ELSEWHERE: Final = frozenset({"now", "catalogues"})


def lines(captured: Captured, key: bytes) -> Iterator[bytes]:
    """The lines of a file, each with its line feed. `key` is the key of the digests that stand for user data.

    Nothing is computed before it is asked for, so that a caller can give way between two lines.
    """
    return sanitized(captured, Sanitizer(key, captured.snapshot))


def sanitized(captured: Captured, sanitizer: Sanitizer) -> Iterator[bytes]:
    """The same by the rules of this sanitizer."""
    count = 0
    for line in _lines(captured, sanitizer):
        yield encoded(line)
        count += 1
    yield encoded(End(lines=count))


def encoded(line: Line) -> bytes:
    """A line with its line feed."""
    return msgspec.json.encode(line) + b"\n"


def _lines(captured: Captured, sanitizer: Sanitizer) -> Iterator[Line]:
    snapshot = captured.snapshot
    plans = {written: real for real, written in sanitizer.plans.items()}
    key = sanitizer.fingerprint or captured.key  # digests of a file stay as they are
    yield Header(at=snapshot.now, software=captured.software, plans=plans, key=key)
    for kind, name in FIELDS.items():
        yield from objects(sanitizer, kind, list(getattr(snapshot, name).values()))
    yield from objects(
        sanitizer, kinds.NODE_CLAIM.name, [one for some in snapshot.foreign_by_provider.values() for one in some]
    )
    for name, value in _facts(snapshot, sanitizer):
        yield Fact(name=name, value=value)
    if captured.region is not None:
        yield Types(region=plain(captured.region), known=tuple(sorted(snapshot.catalogues)))


def objects(sanitizer: Sanitizer, kind: str, values: Sequence[Any]) -> Iterator[Line]:
    """The lines of some objects of one kind."""
    of = kinds.BY_NAME[kind]
    for start in range(0, len(values), _PIECE):
        items = [sanitizer.object(of, value) for value in values[start : start + _PIECE]]
        yield Objects(kind=kind, items=msgspec.Raw(msgspec.json.encode(items)))


def _facts(snapshot: Snapshot, sanitizer: Sanitizer) -> Iterator[tuple[str, Any]]:
    """The facts that differ from their defaults."""
    usual = {one.name: one.default for one in fields(Snapshot)}
    for name in FACTS:
        value = getattr(snapshot, name)
        if name in ELSEWHERE or value == usual[name] or (isinstance(value, Sized) and not len(value)):
            continue
        yield name, fact(sanitizer, name, value)


def fact(sanitizer: Sanitizer, name: str, value: Any) -> Any:
    """A fact as a file has it; of a mapping any of its entries."""
    clean: Mapping[str, Callable[[Any], Any]] = {
        "instances": lambda found: {id_: sanitizer.instance(one) for id_, one in found.items()},
        "interruptions": lambda found: [sanitizer.interruption(one) for one in found],
        "dry_runs": lambda found: {name: sanitizer.dry_run(one) for name, one in found.items()},
        "proposals": lambda found: [sanitizer.proposal(one) for one in found],
        "under_way": lambda found: [actions.to_plain(one, sanitizer) for one in found],
    }
    return plain(clean.get(name, _as_it_is)(value))


def _as_it_is(value: Any) -> Any:
    return value
