"""What is known of each object already: outcomes of pure steps, kept for as long as they would come out the same.

A step is a function of a view on the snapshot and of the key of one object. While it runs, what it looks up in the
snapshot is noted; its outcome is kept until an entry that it looked up changes (the journal shows it) or its time
comes. So a look at the world costs what has changed and what is due, not what there is. A memory is an argument of
`decide`, never part of the answer: with an empty one everything is computed again, and the plan is the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

from kerf.model.boundaries import broken
from kerf.model.changes.following import Following
from kerf.model.changes.journal import Journal
from kerf.model.changes.keys import SortedKeys
from kerf.model.instants import earliest
from kerf.model.noting import WHOLE_DECISION, Decisions, Read, Room, Tape, earlier, noting, subject_of, table_of
from kerf.model.plan import NOTHING, Plan, Reason, Refusal, joined
from kerf.model.snapshot import BY_FOLLOWING, Snapshot

V = TypeVar("V")
T = TypeVar("T")

#: Tables that are handed over as a whole, and compared with the ones before. Instances are two tables.
_COMPARED = (*BY_FOLLOWING[Following.COMPARED], "instances_by_group")
#: Everything rests on these.
_GROUND = BY_FOLLOWING[Following.GROUND]
#: Signs of life of the sources: nothing in the world is another for them.
_NOT_OF_THE_WORLD = ("fresh_at",)


@dataclass(frozen=True, slots=True)
class Step(Generic[V, T]):
    """`run(view, key)` gives the outcome and when it may be another one although nothing has changed.

    `table` is the field of the Snapshot whose keys it is asked about. `speaks` says whether an outcome matters to the
    whole; one that may not be `kept` is worked out at every turn. `counts` is what an outcome adds to sums.
    """

    name: str
    table: str
    run: Callable[[V, str], tuple[T, datetime | None]]
    speaks: Callable[[T], bool]
    kept: Callable[[T], bool] = lambda outcome: True
    counts: Callable[[T], Iterable[tuple[Hashable, int]]] = lambda outcome: ()


def planning(name: str, table: str, kind: str, run: Callable[[V, str], Plan]) -> Step[V, Plan]:
    """A step whose outcome is a plan. One with actions is not kept: what they rest on must be as of now.

    An object that the step fails over becomes a refusal about that object (`kind/key`), and nothing else suffers.
    """

    def guarded(view: V, key: str) -> tuple[Plan, datetime | None]:
        try:
            plan = run(view, key)
        except Exception as error:  # what one object brings to light must not keep the others waiting
            plan = Plan(refusals=(Refusal(f"{kind}/{key}", broken(error)),))
        return (plan if plan != NOTHING else NOTHING), plan.next_due  # joins recognize it by its identity

    return Step(name, table, guarded, speaks=_says_something, kept=lambda plan: not plan.actions)


def _says_something(plan: Plan) -> bool:
    return bool(plan.actions or plan.refusals or plan.events or plan.gauges)


@dataclass(frozen=True)
class Asked(Generic[T]):
    """What a step says of all objects: the outcomes that speak, in order of their keys; sums; when it may change."""

    spoken: Mapping[str, T]
    sums: Mapping[Any, int]
    due: datetime | None

    @cached_property
    def plan(self: Asked[Plan]) -> Plan:
        """Of a planning step: the plans of all objects as one."""
        due = NOTHING if self.due is None else Plan(next_due=self.due)
        return joined((*self.spoken.values(), due))


@dataclass(slots=True)
class _Entry:
    outcome: Any
    until: datetime | None
    reads: frozenset[Read]
    counts: tuple[tuple[Hashable, int], ...]


@dataclass(frozen=True, slots=True)
class _PlanOf:
    """The plans of some objects as one."""

    keys: tuple[str, ...]
    members: frozenset[str]
    plan: Plan


@dataclass(slots=True)
class _Outcomes:
    """What is known of one step. `open` are keys to be worked out (again); `dues` may hold rows that are outdated."""

    table: str
    open: set[str] = field(default_factory=set)
    whole: bool = False
    entries: dict[str, _Entry] = field(default_factory=dict)
    spoken: dict[str, Any] = field(default_factory=dict)
    sums: dict[Hashable, int] = field(default_factory=dict)
    _members: dict[Hashable, int] = field(default_factory=dict)
    dues: list[tuple[datetime, str]] = field(default_factory=list)
    #: The latest answer about all objects, until an outcome is another one or due.
    asked: Asked[Any] | None = None
    #: The latest answer about some objects, until an outcome of them is another one or due.
    part: _PlanOf | None = None

    def drop(self, key: str) -> frozenset[Read]:
        """Forget an outcome; what it had looked up."""
        self.asked = None
        if self.part is not None and key in self.part.members:
            self.part = None
        entry = self.entries.pop(key, None)
        self.spoken.pop(key, None)
        if entry is None:
            return frozenset()
        for part, amount in entry.counts:
            self._add(part, -amount, -1)
        return entry.reads

    def count(self, entry: _Entry) -> None:
        for part, amount in entry.counts:
            self._add(part, amount, 1)

    def _add(self, part: Hashable, amount: int, members: int) -> None:
        """A sum is there for as long as a step adds to it, be it nothing."""
        self._members[part] = self._members.get(part, 0) + members
        self.sums[part] = self.sums.get(part, 0) + amount
        if not self._members[part]:
            del self._members[part], self.sums[part]

    def due(self) -> datetime | None:
        """The earliest instant at which an outcome may be another one."""
        while self.dues:
            until, key = self.dues[0]
            entry = self.entries.get(key)
            if entry is not None and entry.until == until:
                return until
            heapq.heappop(self.dues)
        return None

    def expect(self, until: datetime, key: str) -> None:
        heapq.heappush(self.dues, (until, key))
        if len(self.dues) > 2 * len(self.entries) + 64:
            self.dues = [(entry.until, key) for key, entry in self.entries.items() if entry.until is not None]
            heapq.heapify(self.dues)

    def answer(self) -> Asked[Any]:
        """What is known of all objects."""
        if self.asked is None:
            self.asked = Asked({key: self.spoken[key] for key in sorted(self.spoken)}, self.sums, self.due())
        return self.asked

    def open_what_is_due(self, now: datetime) -> datetime | None:
        """When the next outcome may be another one."""
        while (until := self.due()) is not None and until <= now:
            _, key = heapq.heappop(self.dues)
            self.asked, self.entries[key].until = None, None
            self.open.add(key)
        return until


class Memory:
    """See the module. One thread uses it, one turn at a time."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.outcomes: dict[str, _Outcomes] = {}
        self.readers: dict[Read, set[tuple[str, str]]] = {}
        self._journal: Journal | None = None
        self._position = 0
        self._now: datetime | None = None
        self._compared: dict[str, Mapping[Any, Any]] = {}
        self._ground: tuple[Any, ...] = ()
        self.sorted = SortedKeys()
        self.held: tuple[Hashable, Any, datetime | None] | None = None
        self.decisions = Decisions()

    def turn(self, snapshot: Snapshot) -> Turn:
        """Take in what has changed since the last turn; then steps can be asked."""
        ground = tuple(getattr(snapshot, name) for name in _GROUND)
        journal = snapshot.journal
        rows = journal.since(self._position) if journal is not None and journal is self._journal else None
        back = self._now is not None and snapshot.now < self._now  # outcomes hold from when they were worked out
        if rows is None or ground != self._ground or back:
            self._forget()
        else:
            for table, key in dict.fromkeys(rows):
                self._touch(snapshot, table, key)
        self._compare(snapshot)
        self._ground, self._journal, self._now = ground, journal, snapshot.now
        self._position = journal.position if journal is not None else 0
        return Turn(self, snapshot)

    def _compare(self, snapshot: Snapshot) -> None:
        for name in _COMPARED:
            table, known = table_of(snapshot, name), self._compared.get(name, {})
            if table is not known:
                for key in known.keys() | table.keys():
                    if known.get(key) is not table.get(key) and known.get(key) != table.get(key):
                        self._touch(snapshot, name, str(key))
            # a view of something live would change with it
            self._compared[name] = table if type(table) is dict else dict(table)

    def _touch(self, snapshot: Snapshot, table: str, key: str) -> None:
        """An entry of a table has changed: what rests on it is open, and so is what is asked about it."""
        if table not in _NOT_OF_THE_WORLD:
            self.held = None
            self.decisions.changed(table, key)
        for read in ((table, key), (table, None)):
            for step, subject in self.readers.get(read, ()):
                self.decisions.changed(table, key)
                self.outcomes[step].open.add(subject)
        self.sorted.follow(table, key, lambda: key in table_of(snapshot, table))
        for step, known in self.outcomes.items():
            if known.table == table:
                if key not in table_of(snapshot, table):  # no step asks for it any more
                    self.drop(step, key)
                    known.open.discard(key)
                elif known.whole or key in known.entries:  # what was never asked of a step for some is not open
                    known.open.add(key)

    def drop(self, step: str, key: str) -> None:
        for read in self.outcomes[step].drop(key):
            readers = self.readers[read]
            readers.discard((step, key))
            if not readers:
                del self.readers[read]


class Turn:
    """One look at the world. `snapshot` is for what looks at the whole; steps must look at `noted`."""

    def __init__(self, memory: Memory, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._memory, self._tape = memory, Tape()
        self._failed: dict[str, Reason] = {}
        self._asked: set[str] = set()

    @cached_property
    def noted(self) -> Snapshot:
        """Made when a step needs it: a turn that repeats a plan asks none."""
        return noting(self.snapshot, self._tape)

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """The objects over which steps failed at this turn, sorted; of each the first failure."""
        return tuple(Refusal(subject, reason) for subject, reason in sorted(self._failed.items()))

    def all(self, step: Step[V, T], view: V) -> Asked[T]:
        """Ask about every object of the step's table, as far as the answer is not known.

        An object over which the step fails has no outcome and counts nowhere. It is in `refusals`, and open again.
        """
        known = self._known(step)
        known.open_what_is_due(self.snapshot.now)
        if known.whole and not known.open:
            return known.answer()
        table = table_of(self.snapshot, step.table)
        if not known.whole:
            known.whole = True
            known.open |= set(table) - known.entries.keys()
        for key in tuple(known.open):
            known.open.discard(key)
            if key in table:
                try:
                    self._work_out(step, known, view, key)
                except Exception as error:  # one object must not keep the others from their outcomes
                    self._memory.drop(step.name, key)
                    known.open.add(key)
                    self._failed.setdefault(subject_of(step.table, key), broken(error))
        return known.answer()

    def one(self, step: Step[V, T], view: V, key: str) -> T:
        """Ask about one object of the step's table. A step may ask another one that is kept."""
        return self._outcome(step, self._known(step), view, key)

    def some(self, step: Step[V, T], view: V, keys: Iterable[str]) -> Iterator[T]:
        """Ask about some objects of the step's table, in their order."""
        known = self._known(step)
        return (self._outcome(step, known, view, key) for key in keys)

    def plan_of(self, step: Step[V, Plan], view: V, keys: Sequence[str]) -> Plan:
        """The plans of some objects as one, in their order. No step may ask for it."""
        known = self._known(step)
        known.open_what_is_due(self.snapshot.now)
        if known.part is None or known.part.keys != tuple(keys) or not known.open.isdisjoint(known.part.members):
            plan = joined([self._outcome(step, known, view, key) for key in keys])
            known.part = _PlanOf(tuple(keys), frozenset(keys), plan)
        return known.part.plan

    def _outcome(self, step: Step[V, T], known: _Outcomes, view: V, key: str) -> T:
        entry = known.entries.get(key)
        if entry is None or key in known.open or (entry.until is not None and entry.until <= self.snapshot.now):
            known.open.discard(key)
            entry = self._work_out(step, known, view, key)
        self._tape.inherit(entry.reads, entry.until)
        return cast(T, entry.outcome)

    def hold(self, key: Hashable, make: Callable[[], T]) -> T:
        """Keep one outcome that rests on the whole world: until anything in a table of it changes, or a step that it
        asked is due. `key` is what else it rests on."""
        before, self._asked = self._asked, set()
        try:
            outcome = make()
            dues = [self._memory.outcomes[name].open_what_is_due(self.snapshot.now) for name in self._asked]
        finally:
            self._asked |= before
        self._memory.held = (key, outcome, earliest(dues))
        return outcome

    def held(self, key: Hashable) -> Any | None:
        """What is kept under this key; None when nothing is, or not any more."""
        known, outcome, until = self._memory.held or (None, None, None)
        return outcome if known == key and (until is None or self.snapshot.now < until) else None

    def repeated(self, key: Hashable) -> Plan | None:
        """The plan of the latest decision when this one would be the same; `key` is how it is decided."""
        return self._memory.decisions.repeated(WHOLE_DECISION, key, self.snapshot)

    def decided(self, key: Hashable, plan: Plan) -> Plan:
        """Keep the plan of a decision without a batch for as long as it would be made again."""
        if self.snapshot.batch is None:
            self._keep(WHOLE_DECISION, key, plan, self._memory.outcomes.values())
        return plan

    def standing(self, room: Room, key: Hashable, make: Callable[[], Plan]) -> Plan:
        """The plan of a room: the latest one while it would be made again, else a new one. `key`: how it is made."""
        known = self._memory.decisions.repeated(room, key, self.snapshot)
        if known is not None:
            return known
        self._asked = set()
        plan = make()
        if not self._failed:  # a kept plan would not report the object over which a step failed
            self._keep(room, key, plan, (self._memory.outcomes[name] for name in self._asked))
        return plan

    def _keep(self, room: Room, key: Hashable, plan: Plan, rests_on: Iterable[_Outcomes]) -> None:
        dues = (known.open_what_is_due(self.snapshot.now) for known in rests_on)
        self._memory.decisions.keep(room, key, plan, self.snapshot, dues)

    def keys(self, table: str) -> Sequence[str]:
        """The keys of a table that steps are asked about, sorted."""
        return self._memory.sorted.of(table, table_of(self.snapshot, table))

    def _known(self, step: Step[V, T]) -> _Outcomes:
        self._asked.add(step.name)
        known = self._memory.outcomes.get(step.name)
        if known is None:
            known = self._memory.outcomes[step.name] = _Outcomes(step.table)
        return known

    def _work_out(self, step: Step[V, T], known: _Outcomes, view: V, key: str) -> _Entry:
        outcome, until, reads = self._run(step, known, view, key)
        before = known.entries.get(key)
        self._memory.drop(step.name, key)
        entry = known.entries[key] = _Entry(outcome, until, reads, tuple(step.counts(outcome)))
        for read in reads:
            self._memory.readers.setdefault(read, set()).add((step.name, key))
        known.count(entry)
        if until is not None and (before is None or before.until != until):
            known.expect(until, key)
        if step.speaks(outcome):
            known.spoken[key] = outcome
        if not step.kept(outcome):
            known.open.add(key)
        return entry

    def _run(self, step: Step[V, T], known: _Outcomes, view: V, key: str) -> tuple[T, datetime | None, frozenset[Read]]:
        """The outcome, how long it holds, and what it rests on."""
        tape, reads = self._tape, set[Read]()
        outer, tape.reads, tape.until = (tape.reads, tape.until), reads, None
        try:
            outcome, until = step.run(view, key)
            return outcome, earlier(until, tape.until), frozenset(reads)
        except BaseException:
            known.open.add(key)
            raise
        finally:
            held, (tape.reads, tape.until) = tape.until, outer
            tape.inherit(reads, held)  # a step that catches a failure of this one rests on what led to it
