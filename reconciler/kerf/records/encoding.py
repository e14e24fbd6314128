"""From the changes of snapshots and their plans to the lines of a part.

One thread uses an Encoder. It keeps references to the current objects, so that it can write a checkpoint at any time
without the controller's help. The hashes of removed texts are kept for as long as the Encoder lives: nodes have the
hashes of earlier versions of their NodePool. When it learns a hash, objects written before may have it, so that a new
part must begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kerf.model import kinds
from kerf.model.aws.cloud import Region
from kerf.model.changes.indexes import PodIndex
from kerf.model.cluster import FIELDS
from kerf.model.plan import Plan
from kerf.model.snapshot import Snapshot
from kerf.records import plans
from kerf.records.following import Changes
from kerf.records.lines import Change, Gone, Known, Start
from kerf.snapshots.captured import Captured
from kerf.snapshots.lines import Fact, Line, Types
from kerf.snapshots.plain import plain
from kerf.snapshots.sanitizing import Sanitizer
from kerf.snapshots.writing import ELSEWHERE, encoded, fact, objects, sanitized
from kerf_api.v1.nodeclaim import NodeClaim

_CLAIM: Final = kinds.NODE_CLAIM.name


@dataclass(slots=True)
class Encoder:
    """See the module. `key` is the key of the digests that stand for user data; `software` goes to the header.

    The fields with defaults are its own.
    """

    key: bytes
    software: Mapping[str, str]
    run: str = ""
    _objects: dict[str, dict[str, Any]] = field(default_factory=lambda: {kind: {} for kind in FIELDS})
    _foreign: dict[str, tuple[NodeClaim, ...]] = field(default_factory=dict)
    _facts: dict[str, Any] = field(default_factory=dict)
    _region: Region | None = None
    _sanitizer: Sanitizer | None = None
    _hashed: list[object] = field(default_factory=list)

    def take(self, changes: Changes) -> list[bytes] | None:
        """The lines of these changes; None when a new part must begin, with `checkpoint`."""
        if changes.whole is not None:
            self._take_all(changes.whole)
        kept, lines = self._renewed(changes), list[Line]()
        lines += self._objects_lines(changes)
        lines += self._fact_lines(changes.facts)
        if changes.region is not self._region:
            self._region = changes.region
            lines.append(Types(region=plain(self._region), known=self._known()))
        return [encoded(line) for line in lines] if kept and changes.whole is None else None

    def checkpoint(self, changes: Changes) -> Iterator[bytes]:
        """The first lines of a part, as of these changes, which were taken. Nothing is computed before it is needed."""
        yield encoded(Start(software=self.software, run=self.run))
        found: dict[str, Any] = {name: self._objects[kind] for kind, name in FIELDS.items()}
        found["pods"] = PodIndex(self._objects[kinds.POD.name], {}, {})
        snapshot = Snapshot(now=changes.at, foreign_by_provider=self._foreign, **found, **self._facts)
        yield from sanitized(Captured(snapshot, self._region, self.software), self._cleaner)

    def decision(self, changes: Changes, plan: Plan, missed: int) -> bytes:
        """The line of the plan for these changes, which were taken."""
        return encoded(plans.decision(plan, self._cleaner, at=changes.at, missed=missed))

    @property
    def _cleaner(self) -> Sanitizer:
        assert self._sanitizer is not None, "changes were read"
        return self._sanitizer

    def _known(self) -> tuple[str, ...]:
        return tuple(sorted(self._facts.get("catalogues", ())))

    # --- objects ------------------------------------------------------------------------------------------------
    def _take_all(self, whole: Snapshot) -> None:
        self._objects = {kind: dict(getattr(whole, name)) for kind, name in FIELDS.items()}
        self._foreign = dict(whole.foreign_by_provider)

    def _renewed(self, changes: Changes) -> bool:
        """Take in the changed objects with hashes; False when a hash became known that objects may have already."""
        for (kind, key), value in changes.objects.items():
            _put(self._objects[kind], key, value)
        pools, classes = self._objects[kinds.NODE_POOL.name], self._objects[kinds.NODE_CLASS.name]
        cluster = changes.facts.get("cluster", self._facts.get("cluster"))
        hashed = [cluster, *(pool.spec for pool in pools.values()), *classes.values()]
        if self._sanitizer is not None and _same(hashed, self._hashed):
            return True
        known = {} if self._sanitizer is None else self._sanitizer.hashes
        settings = changes.facts.get("settings", self._facts.get("settings"))
        snapshot = Snapshot(now=changes.at, settings=settings, cluster=cluster, node_pools=pools, node_classes=classes)
        self._sanitizer, self._hashed = Sanitizer(self.key, snapshot, known), hashed
        return self._sanitizer.hashes == known

    def _objects_lines(self, changes: Changes) -> Iterator[Line]:
        """Objects that changed, after those of the same kinds that were deleted."""
        found: dict[str, dict[str, Any | None]] = {}
        for provider, claims in changes.foreign.items():
            before = {one.name: None for one in self._foreign.get(provider, ())}
            found.setdefault(_CLAIM, {}).update(before)
            _put(self._foreign, provider, claims or None)
        for claims in changes.foreign.values():
            found[_CLAIM].update({one.name: one for one in claims})
        for (kind, key), value in changes.objects.items():
            if value is not None or found.get(kind, {}).get(key) is None:
                found.setdefault(kind, {})[key] = value
        for kind, values in found.items():
            if gone := tuple(key for key, value in values.items() if value is None):
                yield Gone(kind=kind, keys=gone)
            yield from objects(self._cleaner, kind, [value for value in values.values() if value is not None])

    # --- facts --------------------------------------------------------------------------------------------------
    def _fact_lines(self, facts: Mapping[str, Any]) -> Iterator[Line]:
        for name, value in facts.items():
            before, self._facts[name] = self._facts.get(name), value
            if name == "catalogues":
                if before is None or before.keys() != value.keys():
                    yield Known(classes=self._known())
            elif name in ELSEWHERE or value is before or value == before:
                continue
            elif isinstance(value, Mapping):
                yield from self._entries(name, before or {}, value)
            else:
                yield Fact(name=name, value=fact(self._cleaner, name, value))

    def _entries(self, name: str, before: Mapping[Any, Any], now: Mapping[Any, Any]) -> Iterator[Line]:
        changed = {key: one for key, one in now.items() if key not in before or _differs(before[key], one)}
        gone = [key for key in before if key not in now]
        if changed or gone:
            yield Change(name=name, entries=fact(self._cleaner, name, changed), gone=plain(gone))


def _differs(before: Any, now: Any) -> bool:
    return before is not now and before != now


def _same(one: Sequence[object], other: Sequence[object]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _put(table: dict[str, Any], key: str, value: Any | None) -> None:
    """The entry of a key; None removes it."""
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value
