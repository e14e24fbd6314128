"""Snapshots that note what is looked up in them, and until when that holds; a plan with all that it rests on."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any, Final, cast

from kerf.model.changes.following import Following
from kerf.model.changes.indexes import InstanceIndex, PodIndex
from kerf.model.instants import earliest
from kerf.model.plan import Plan, Source
from kerf.model.snapshot import BY_FOLLOWING, Snapshot

#: An entry of a table that was looked up; None stands for the table as a whole.
Read = tuple[str, str | None]
_AT_ONCE = timedelta(0)
#: What the whole plan is about, not one object: a step must not look at it, and finds nothing there.
_NOT_FOR_STEPS: Mapping[str, Any] = {
    f.name: f.default for f in fields(Snapshot) if f.name in BY_FOLLOWING[Following.NOT_FOR_STEPS]
}
#: The fields that are one table each; pods and instances are several.
_TABLES = tuple(f.name for f in fields(Snapshot) if str(f.type).startswith("Mapping["))

#: The kinds of the objects in the tables that steps are asked about, as refusals spell them.
_KINDS: Final = {
    "node_claims": "nodeclaim",
    "nodes": "node",
    "node_pools": "nodepool",
    "pool_specs": "nodepool",
    "node_classes": "ec2nodeclass",
    "node_overlays": "nodeoverlay",
    "capacity_buffers": "capacitybuffer",
    "instances": "instance",
}
#: What a plan rests on beside the tables and the time.
_BESIDE: Final = {*BY_FOLLOWING[Following.WHOLE], *BY_FOLLOWING[Following.NOT_FOR_STEPS]} - {"now", "journal"}
#: A plan that is due sooner than this may be due so long after it was made, whenever that is.
_RELATIVE: Final = timedelta(minutes=1)


class Tape:
    """What is looked up while a step runs, and until when the outcomes of steps that it asked hold."""

    __slots__ = ("reads", "until")

    def __init__(self) -> None:
        self.reads: set[Read] | None = None
        self.until: datetime | None = None

    def note(self, table: str, key: str | None) -> None:
        if self.reads is not None:
            self.reads.add((table, key))

    def inherit(self, reads: Iterable[Read], until: datetime | None) -> None:
        """The step that runs rests on an outcome that rested on these."""
        if self.reads is not None:
            self.reads.update(reads)
            self.until = earlier(self.until, until)


class _Noted(Mapping[Any, Any]):
    """A table that notes what is looked up in it."""

    __slots__ = ("_name", "_table", "_tape")

    def __init__(self, name: str, table: Mapping[Any, Any], tape: Tape) -> None:
        self._name, self._table, self._tape = name, table, tape

    def __getitem__(self, key: Any) -> Any:
        self._tape.note(self._name, str(key))
        return self._table[key]

    def get(self, key: Any, default: Any = None) -> Any:
        self._tape.note(self._name, str(key))
        return self._table.get(key, default)

    def __contains__(self, key: object) -> bool:
        self._tape.note(self._name, str(key))
        return key in self._table

    def __iter__(self) -> Iterator[Any]:
        self._tape.note(self._name, None)
        return iter(self._table)

    def __len__(self) -> int:
        self._tape.note(self._name, None)
        return len(self._table)


class _NotedInstants(_Noted):
    """A table of instants up to which something holds: what rests on one that is ahead holds no longer than that."""

    __slots__ = ("_after", "_now")

    def __init__(
        self, name: str, table: Mapping[Any, datetime], tape: Tape, now: datetime, after: timedelta = _AT_ONCE
    ) -> None:
        super().__init__(name, table, tape)
        self._now, self._after = now, after

    def __getitem__(self, key: Any) -> Any:
        found: datetime = super().__getitem__(key)
        self._expect(found)
        return found

    def get(self, key: Any, default: Any = None) -> Any:
        found = super().get(key, default)
        if isinstance(found, datetime):
            self._expect(found)
        return found

    def _expect(self, instant: datetime) -> None:
        until = instant + self._after
        if until > self._now:
            self._tape.until = earlier(self._tape.until, until)


def earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((instant for instant in (one, other) if instant is not None), default=None)


def table_of(snapshot: Snapshot, name: str) -> Mapping[Any, Any]:
    if name == "instances":
        return snapshot.instances.by_id
    if name == "instances_by_group":
        return snapshot.instances.by_group
    return cast(Mapping[Any, Any], getattr(snapshot, name))


def subject_of(table: str, key: str) -> str:
    """The object behind a key of a table, as refusals spell it."""
    if table == "state_nodes":
        return key if key.startswith("node/") else f"nodeclaim/{key}"
    return f"{_KINDS.get(table, table)}/{key}"


def noting(snapshot: Snapshot, tape: Tape) -> Snapshot:
    """The snapshot with tables that note what is looked up in them."""

    def noted(name: str, table: Mapping[Any, Any]) -> Any:
        return _Noted(name, table, tape)

    pods, instances = snapshot.pods, snapshot.instances
    own: dict[str, Any] = {name: _Noted(name, getattr(snapshot, name), tape) for name in _TABLES}
    own["pods"] = PodIndex(
        noted("pods", pods.by_key),
        noted("pods_on", pods.by_node),
        noted("pending", pods.pending),
        noted("expected_on", pods.nominated),
    )
    stale = snapshot.settings.stale_after + timedelta(microseconds=1)  # the last instant still counts
    own["fresh_at"] = _NotedInstants("fresh_at", snapshot.fresh_at, tape, snapshot.now, stale)
    for name in ("nominated_until", "not_before", "out_of_stock", "shifted"):
        own[name] = _NotedInstants(name, getattr(snapshot, name), tape, snapshot.now)
    own["instances"] = InstanceIndex(
        noted("instances", instances.by_id), noted("instances_by_group", instances.by_group)
    )
    return replace(snapshot, **own, **_NOT_FOR_STEPS)


class Room:
    """A part of a decision whose plan is kept by itself.

    Attributes:
        name: unique among the rooms of a decision.
        beside: the fields of the Snapshot that its plan rests on beside the tables and the time.
    """

    __slots__ = ("_apart", "beside", "name")

    def __init__(self, name: str, unread: Iterable[str] = (), apart: Iterable[tuple[str, str]] = ()) -> None:
        """Neither the room nor a step that it asks reads the `unread` fields of the Snapshot, nor the entries that are
        `apart`: of a table, those whose keys have this beginning.

        Raises ValueError for a field that is not compared anyway.
        """
        if unknown := sorted({*unread} - _BESIDE):
            raise ValueError(f"room {name}: no plan is compared by {', '.join(unknown)}")
        self.name, self.beside, self._apart = name, tuple(sorted(_BESIDE - {*unread})), tuple(apart)

    def reads(self, table: str, key: str) -> bool:
        """Whether its plan may rest on an entry of a table."""
        return not any(table == name and key.startswith(beginning) for name, beginning in self._apart)


#: All rooms together.
WHOLE_DECISION: Final = Room("decision")


@dataclass(frozen=True, slots=True)
class Decision:
    """A plan that would be made again until then, unless an entry of a table changes. `key`: how it is decided.

    It is `sure` that no part of `next_due` counts from when the plan was made.
    """

    key: Hashable
    plan: Plan
    made_at: datetime
    until: datetime
    beside: Mapping[str, Any]
    fresh: frozenset[Source]
    sure: bool

    @classmethod
    def of(
        cls, room: Room, key: Hashable, plan: Plan, snapshot: Snapshot, until: datetime | None, before: Decision | None
    ) -> Decision:
        """The decision of a room about a snapshot, after the one `before`. `until`: when it is due; None: never.

        A plan that was made twice, at two times, is due at a time that counts from neither.
        """
        now = snapshot.now
        sure = (until is None or until > now + max(_RELATIVE, snapshot.settings.disruption_period)) or (
            before is not None and before.made_at < now and before.alike(key, snapshot) and before.plan == plan
        )
        latest = now + _RELATIVE  # a time that no due has is found again within a minute
        until = latest if until is None else min(until, latest)
        values = {name: getattr(snapshot, name) for name in room.beside}
        beside = {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}
        return cls(key, plan, now, until, beside, _fresh(snapshot), sure)

    def repeats(self, key: Hashable, snapshot: Snapshot) -> bool:
        """Whether the plan need not be made again."""
        return self.sure and self.alike(key, snapshot)

    def alike(self, key: Hashable, snapshot: Snapshot) -> bool:
        """Whether the inputs are the same, but for the time."""
        return (
            self.made_at <= snapshot.now < self.until
            and key == self.key
            and all(getattr(snapshot, name) == value for name, value in self.beside.items())
            and _fresh(snapshot) == self.fresh
        )


@dataclass(slots=True)
class Decisions:
    """The latest plan of each room, until an entry of a table changes that it may rest on."""

    _known: dict[Room, Decision] = field(default_factory=dict)

    def changed(self, table: str, key: str) -> None:
        """Forget the plans that may rest on an entry of a table."""
        for room in [room for room in self._known if room.reads(table, key)]:
            del self._known[room]

    def repeated(self, room: Room, key: Hashable, snapshot: Snapshot) -> Plan | None:
        """The plan of the latest decision of a room when this one would be the same; `key` is how it is decided."""
        known = self._known.get(room)
        return known.plan if known is not None and known.repeats(key, snapshot) else None

    def keep(self, room: Room, key: Hashable, plan: Plan, snapshot: Snapshot, dues: Iterable[datetime | None]) -> None:
        """Keep a plan, if it does nothing, for as long as it would be made again.

        `dues`: when the outcomes of the steps that it may rest on may be other ones.
        """
        before = self._known.pop(room, None)
        if plan.actions or plan.measured or plan.accounts is not None:
            return
        until = earliest((plan.next_due, *dues))
        if until is None or until > snapshot.now:
            self._known[room] = Decision.of(room, key, plan, snapshot, until, before)


def _fresh(snapshot: Snapshot) -> frozenset[Source]:
    return frozenset(source for source in snapshot.fresh_at if snapshot.fresh(source))
