"""Plans of rooms that are kept: each decision is that of an empty memory, and rests on nothing that a room leaves out.

The decisions are those of examples of `kerf simulate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kerf import decide as deciding
from kerf.cli.verbs.simulation.loading import File
from kerf.decide import decide
from kerf.disruption.disrupt import DISRUPTION, disrupt, waits_for_first_pass
from kerf.lifecycle.lifecycle import LIFECYCLE, lifecycle
from kerf.model.memory import Memory, Turn
from kerf.model.noting import WHOLE_DECISION, Read, Room, Tape, noting
from kerf.model.plan import Plan
from kerf.model.snapshot import Batch, Snapshot
from kerf.runtime.parts import Parts
from kerf.simulating.autoscalers import models
from kerf.simulating.playing import Play
from tests.simulation.memories import difference
from tests.sources import ROOT

Make = Callable[[Snapshot, Turn], Plan]
FOLDER = ROOT / "manifests" / "simulate"
EXAMPLES = [path for path in sorted(FOLDER.glob("*.yaml")) if "\nduration:" in path.read_text()]
ROOMS: list[tuple[Room, Make]] = [
    (LIFECYCLE, lifecycle),
    (DISRUPTION, lambda snapshot, turn: disrupt(snapshot, turn=turn)),
]
EVICTIONS = ("not_before", "eviction/")


# --- decisions of a scenario --------------------------------------------------------------------------------------
@dataclass
class Watch:
    """Decides for a controller, and looks at each decision of which the number can be divided by `every`."""

    every: int
    look: Callable[[Snapshot, Plan], Iterator[str]]
    made: int = 0
    found: list[str] = field(default_factory=list)

    def decide(self, snapshot: Snapshot, memory: Memory) -> Plan:
        plan = decide(snapshot, memory)
        self.made += 1
        if self.made % self.every == 0:
            self.found += self.look(snapshot, plan)
        return plan

    def run(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        usual = models.parts

        def parts(*given: Any) -> Parts:
            return replace(usual(*given), decide=self.decide)

        monkeypatch.setattr(models, "parts", parts)
        Play(File(str(path)).case(), seed=0).run()


def twice(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    return difference(plan, decide(snapshot))


def example(name: str) -> Path:
    return FOLDER / f"{name}.yaml"


@pytest.mark.parametrize("name", ["pdb-deadlock", "broken-agent"])
def test_each_decision_is_that_of_an_empty_memory_while_plans_of_rooms_are_kept(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = dict.fromkeys(("lifecycle", "disrupt"), 0)

    def counted(room: str, make: Callable[..., Plan], *given: Any, **named: Any) -> Plan:
        asked[room] += 1
        return make(*given, **named)

    for room, make in (("lifecycle", lifecycle), ("disrupt", disrupt)):
        monkeypatch.setattr(deciding, room, partial(counted, room, make))
    watch = Watch(10**9, twice)
    watch.run(monkeypatch, example(name))
    assert min(asked.values()) < watch.made / 2
    watch = Watch(7, twice)
    watch.run(monkeypatch, example(name))
    assert watch.found == []


@pytest.mark.long
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_each_decision_of_the_examples_is_that_of_an_empty_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(1, twice)
    watch.run(monkeypatch, path)
    assert watch.made > 50
    assert watch.found == []


# --- what rooms leave out -----------------------------------------------------------------------------------------
class Hidden(Exception):
    pass


def blind(snapshot: Snapshot, room: Room, instead: Mapping[str, Any]) -> Snapshot:
    """A snapshot whose fields that a room does not read have other values, or raise an error."""

    def hidden(name: str) -> property:
        def read(_: Snapshot) -> Any:
            if name in instead:
                return instead[name]
            raise Hidden(name)

        return property(read)

    unread = sorted({*WHOLE_DECISION.beside} - {*room.beside})
    kind = type("Blind", (Snapshot,), {"__slots__": (), **{name: hidden(name) for name in unread}})
    found: Snapshot = object.__new__(kind)
    for one in fields(Snapshot):
        Snapshot.__dict__[one.name].__set__(found, getattr(snapshot, one.name))
    return found


def blindly(room: Room, make: Make, snapshot: Snapshot) -> Plan:
    """`make` without the fields that a room does not read; of a batch it reads only what is part of the key."""
    maiden = Batch(snapshot.now, snapshot.now, maiden=True) if waits_for_first_pass(snapshot) else None
    turn = Memory().turn(snapshot)
    instead = {"batch": maiden} if room is DISRUPTION else {}
    turn.snapshot, turn.noted = (blind(one, room, instead) for one in (turn.snapshot, turn.noted))
    return make(turn.snapshot, turn)


def unseen(snapshot: Snapshot, _: Plan) -> Iterator[str]:
    for room, make in ROOMS:
        yield from (f"{room.name}: {one}" for one in difference(blindly(room, make, snapshot), usual(make, snapshot)))


def usual(make: Make, snapshot: Snapshot) -> Plan:
    return make(snapshot, Memory().turn(snapshot))


@pytest.mark.parametrize(("name", "every"), [("spot-loss", 5), ("pdb-deadlock", 25), ("image-roll-out", 9)])
def test_a_room_does_not_read_the_fields_that_it_leaves_out(
    name: str, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(every, unseen)
    watch.run(monkeypatch, example(name))
    assert watch.found == []


def test_a_field_that_is_read_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    forgetful = Room("forgetful", unread=("inventories",))

    def look(snapshot: Snapshot, _: Plan) -> Iterator[str]:
        return difference(blindly(forgetful, lifecycle, snapshot), usual(lifecycle, snapshot))

    watch = Watch(50, look)
    watch.run(monkeypatch, example("image-roll-out"))
    assert any("inventories" in one for one in watch.found)


def reads(make: Make, snapshot: Snapshot) -> set[Read]:
    """The entries of tables that a room and its steps look up."""
    memory, tape = Memory(), Tape()
    turn, tape.reads = memory.turn(snapshot), set()
    whole = {name: getattr(snapshot, name) for name in WHOLE_DECISION.beside}
    turn.snapshot = replace(noting(snapshot, tape), **whole)
    make(turn.snapshot, turn)
    return {*tape.reads, *memory.readers}


def test_only_the_lifecycle_reads_back_offs_of_evictions(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, set[Read]] = {room.name: set() for room, _ in ROOMS}

    def look(snapshot: Snapshot, _: Plan) -> Iterator[str]:
        for room, make in ROOMS:
            found[room.name] |= reads(make, snapshot)
        return iter(())

    Watch(25, look).run(monkeypatch, example("pdb-deadlock"))
    table, beginning = EVICTIONS
    back_offs = {
        name: {key for at, key in entries if at == table and (key is None or key.startswith(beginning))}
        for name, entries in found.items()
    }
    assert back_offs[LIFECYCLE.name]
    assert back_offs[DISRUPTION.name] == set()
    assert not DISRUPTION.reads(table, f"{beginning}default/web")
    assert DISRUPTION.reads(table, "nodepool/general")
    assert LIFECYCLE.reads(table, f"{beginning}default/web")


def test_a_room_leaves_out_only_what_plans_are_compared_by() -> None:
    with pytest.raises(ValueError, match="room forgetful: no plan is compared by nodes, now"):
        Room("forgetful", unread=("now", "batch", "nodes"))
