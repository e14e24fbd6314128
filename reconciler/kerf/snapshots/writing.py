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
#: What has a line of its own, or is computed from others.
_ELSEWHERE: Final = frozenset({"now", "catalogues"})


def lines(captured: Captured, key: bytes) -> Iterator[bytes]:
    """The lines of a file, each with its line feed. `key` is the key of the digests that stand for user data.

    Nothing is computed before it is asked for, so that a caller can give way between two lines.
    """
    count = 0
    for line in _lines(captured, Sanitizer(key, captured.snapshot)):
        yield msgspec.json.encode(line) + b"\n"
        count += 1
    yield msgspec.json.encode(End(lines=count)) + b"\n"


def _lines(captured: Captured, sanitizer: Sanitizer) -> Iterator[Line]:
    snapshot = captured.snapshot
    yield Header(at=snapshot.now, software=captured.software)
    for kind, name in FIELDS.items():
        yield from _objects(sanitizer, kind, list(getattr(snapshot, name).values()))
    yield from _objects(
        sanitizer, kinds.NODE_CLAIM.name, [one for some in snapshot.foreign_by_provider.values() for one in some]
    )
    for name, value in _facts(snapshot, sanitizer):
        yield Fact(name=name, value=value)
    if captured.region is not None:
        yield Types(region=plain(captured.region), known=tuple(sorted(snapshot.catalogues)))


def _objects(sanitizer: Sanitizer, kind: str, values: Sequence[Any]) -> Iterator[Line]:
    of = kinds.BY_NAME[kind]
    for start in range(0, len(values), _PIECE):
        items = [sanitizer.object(of, value) for value in values[start : start + _PIECE]]
        yield Objects(kind=kind, items=msgspec.Raw(msgspec.json.encode(items)))


def _facts(snapshot: Snapshot, sanitizer: Sanitizer) -> Iterator[tuple[str, Any]]:
    """The facts that differ from their defaults."""
    clean: Mapping[str, Callable[[Any], Any]] = {
        "instances": lambda found: {id_: sanitizer.instance(one) for id_, one in found.items()},
        "interruptions": lambda found: [sanitizer.interruption(one) for one in found],
        "dry_runs": lambda found: {name: sanitizer.dry_run(one) for name, one in found.items()},
        "proposals": lambda found: [sanitizer.proposal(one) for one in found],
    }
    usual = {one.name: one.default for one in fields(Snapshot)}
    for name in FACTS:
        value = getattr(snapshot, name)
        if name in _ELSEWHERE or value == usual[name] or (isinstance(value, Sized) and not len(value)):
            continue
        if name == "under_way":
            yield name, [actions.to_plain(one, sanitizer) for one in value]
        else:
            yield name, plain(clean.get(name, _as_it_is)(value))


def _as_it_is(value: Any) -> Any:
    return value
