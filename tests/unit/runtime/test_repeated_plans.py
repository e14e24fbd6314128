"""A plan of a cluster at rest is repeated instead of being made again; it is the one that an empty memory makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from kerf.decide import decide
from kerf.model.memory import Memory
from kerf.model.plan import Plan, Source
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.ports import Ports
from kerf.runtime.controller import Controller
from kerf.runtime.parts import Parts
from kerf.sandbox.world import World
from tests.worlds import deployment, node_class, node_pool

MINUTE = timedelta(minutes=1)


class Life:
    """Seven minutes of a small world, with every decision that was made in it."""

    def __init__(self) -> None:
        world, self.memory = World(types=["m5.large"]), Memory()
        for manifest in (node_class(), node_pool("general", {}), deployment("web", {"replicas": 2})):
            world.apply(manifest)
        self.decisions: list[tuple[Plan, bool]] = []
        self.differences: list[tuple[Plan, Plan]] = []
        self.snapshot: Snapshot | None = None
        ports = Ports(kube=world.kube, cloud=world.cloud, clock=world.clock)
        loop = Controller(ports, Parts(decide=self._decide), settings=Settings(cluster_name="sandbox"), inline=True)
        world.run(loop, 7 * MINUTE)

    def _decide(self, snapshot: Snapshot, memory: Memory) -> Plan:
        before, plan = self.decisions[-1][0] if self.decisions else None, decide(snapshot, memory)
        self.decisions.append((plan, plan is before))
        if (again := decide(snapshot)) != plan:
            self.differences.append((plan, again))
        self.memory, self.snapshot = memory, snapshot
        return plan


def test_a_plan_of_a_cluster_at_rest_is_repeated_and_is_what_an_empty_memory_decides() -> None:
    life = Life()
    assert life.differences == []
    repeated = [plan for plan, again in life.decisions if again]
    assert len(repeated) > len(life.decisions) // 4
    assert not any(plan.actions for plan in repeated)


def test_a_plan_is_made_again_when_it_is_due_or_an_input_is_another() -> None:
    life = Life()
    assert life.snapshot is not None
    now, memory = life.snapshot, life.memory
    plan = decide(now, memory)
    assert plan.next_due is not None
    later = replace(now, now=now.now + timedelta(seconds=1))
    assert decide(later, memory) is plan
    lists: dict[Source, datetime] = {source: at for source, at in now.fresh_at.items() if source != Source.PODS}
    changes: dict[str, Callable[[Snapshot], Snapshot]] = {
        "due": lambda one: replace(one, now=plan.next_due or one.now),
        "clock set back": lambda one: replace(one, now=one.now - MINUTE),
        "another time of the examination": lambda one: replace(one, examined_at=one.now - MINUTE),
        "pods not listed": lambda one: replace(one, fresh_at=lists),
        "a Node has changed": lambda one: replace(one, node_changed_at={"a": one.now}),
    }
    for name, change in changes.items():
        settled = decide(now, memory)
        assert decide(change(now), memory) is not settled, name


def test_a_plan_that_is_due_soon_is_repeated_once_it_was_made_twice() -> None:
    """Made once, it may be due at a time that counts from when it was made; then another look moves that time."""
    snapshot = Life().snapshot
    assert snapshot is not None

    def after(seconds: int) -> Snapshot:
        return replace(snapshot, now=snapshot.now + timedelta(seconds=seconds))

    memory, plan = Memory(), Plan(next_due=after(30).now)
    for seconds in (0, 1):
        turn = memory.turn(after(seconds))
        assert turn.repeated("how") is None
        turn.decided("how", plan)
    assert memory.turn(after(2)).repeated("how") is plan
    assert memory.turn(after(2)).repeated("otherwise") is None
    assert memory.turn(after(30)).repeated("how") is None
    moved = Memory()
    for seconds in range(4):
        turn = moved.turn(after(seconds))
        assert turn.repeated("how") is None
        turn.decided("how", Plan(next_due=after(seconds + 10).now))
