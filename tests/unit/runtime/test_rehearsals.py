"""Who waits for the lease rehearses: the first decision after a hand-over does not begin with an empty memory."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from kerf.decide import decide as decide_all
from kerf.model.memory import Memory
from kerf.model.snapshot import Snapshot
from kerf.sandbox.world import World
from tests.unit.runtime.loops import Decider, controller, node


class Rehearsals:
    """When there was one, in seconds; each takes so long, and may fail."""

    def __init__(self, world: World, seconds: float, *, fail: bool = False) -> None:
        self.world, self.seconds, self.fail, self.began = world, seconds, fail, list[float]()
        self.memories = set[int]()

    def __call__(self, snapshot: Snapshot, memory: Memory) -> None:
        self.began.append(self.world.clock.monotonic())
        self.memories.add(id(memory))
        self.world.clock.sleep(self.seconds)
        if self.fail:
            raise ValueError("odd")


@pytest.mark.parametrize("fail", [False, True])
def test_a_standby_rehearses_for_a_tenth_of_its_time_at_most_so_that_its_first_decision_is_quick(fail: bool) -> None:
    world, decide = World(), Decider()
    slow, leading = Rehearsals(world, 1.0, fail=fail), list[bool]()
    loop = controller(world, decide, may_act=lambda: bool(leading), rehearse=slow)
    world.run(loop, timedelta(seconds=35))
    pauses = [b - a for a, b in itertools.pairwise(slow.began)]
    assert len(pauses) == 3
    assert all(10 <= pause <= 12 for pause in pauses)
    assert decide.seen == []
    leading.append(True)
    world.run(loop, timedelta(seconds=35))
    assert len(slow.began) == 4
    assert decide.seen
    assert slow.memories == {id(loop._memory)}


def test_what_was_rehearsed_is_known_when_it_must_be_decided() -> None:
    world = World()
    for name in ("a", "b"):
        node(world, name)
    loop = controller(world, decide_all, may_act=lambda: False)
    world.run(loop, timedelta(seconds=6))
    known = {step: set(outcomes.entries) for step, outcomes in loop._memory.outcomes.items()}
    assert known["sites"] == {"node/a", "node/b"}
    assert all(not outcomes.open for outcomes in loop._memory.outcomes.values())


def test_who_leads_from_the_start_rehearses_once_so_that_the_first_pods_do_not_wait_for_it() -> None:
    world, decide = World(), Decider()
    rehearsals = Rehearsals(world, 1.0)
    world.run(controller(world, decide, rehearse=rehearsals), timedelta(seconds=35))
    assert rehearsals.began == [0.0]
    assert decide.seen
