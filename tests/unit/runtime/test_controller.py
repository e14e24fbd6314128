"""The loop in a world: what it waits for, and what it survives."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.aws.cloud import Region
from kerf.model.kinds import Ref
from kerf.model.memory import Memory
from kerf.model.plan import EvictPod, PatchObject, Plan
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.ports import Ports, Unavailable
from kerf.runtime.controller import AFTER_A_BUG, Controller
from kerf.runtime.parts import Parts
from kerf.runtime.proposer import Changes
from kerf.sandbox.faults import Call, Faults
from kerf.sandbox.world import World
from tests.unit.runtime.loops import WHY, Decider, controller, node
from tests.worlds import node_class

CLASS_REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


def test_everything_is_known_at_the_first_decision() -> None:
    world, decide = World(), Decider()
    node(world, "a")
    controller(world, decide).tick()
    (seen,) = decide.seen
    assert "a" in seen.nodes
    assert seen.cluster is not None
    assert all(seen.fresh(source) for source in seen.fresh_at)
    assert len(seen.fresh_at) == 7


def test_own_writes_are_in_the_next_snapshot() -> None:
    world = World()
    node(world, "a")
    patch = PatchObject(verb="V", ref=Ref("Node", "", "a"), patch={"metadata": {"labels": {"x": "1"}}}, reason=WHY)
    decide = Decider(Plan((patch,)))
    loop = controller(world, decide)
    loop.tick()
    assert loop.next_due is not None
    assert loop.next_due - world.clock.now() < timedelta(seconds=1)
    loop.tick()
    assert decide.seen[1].nodes["a"].metadata.labels["x"] == "1"


def test_a_bug_in_deciding_does_not_end_the_loop() -> None:
    world = World()

    def broken(snapshot: Snapshot, memory: Memory) -> Plan:
        raise ZeroDivisionError

    loop = controller(world, broken)
    assert loop.tick() == Plan()
    assert loop.next_due is not None
    assert world.clock.now() < loop.next_due <= world.clock.now() + AFTER_A_BUG
    errors = loop.telemetry.metrics.registry.get_sample_value("kerf_errors_total", {"where": "decide"})
    assert errors == 1
    assert loop.tick() == Plan()


def test_a_standby_decides_nothing_but_knows_everything() -> None:
    world, decide = World(), Decider()
    loop = controller(world, decide, may_act=lambda: False)
    loop.tick()
    assert decide.seen == []
    assert loop.synced
    assert loop.missing() == []


def test_a_failed_action_is_left_alone_for_a_while() -> None:
    world = World()
    ghost = PatchObject(verb="V", ref=Ref("Node", "", "a"), patch={"spec": 1}, reason=WHY)
    node(world, "a")
    decide = Decider(*[Plan((ghost,)) for _ in range(50)])
    loop = controller(world, decide)
    asked = loop.telemetry.metrics.registry
    world.run(loop, timedelta(seconds=3))
    tried = asked.get_sample_value("kerf_actions_total", {"action": "V", "outcome": "invalid"})
    assert tried is not None
    assert 2 <= tried <= 4


def test_the_same_eviction_is_not_asked_twice_in_a_row() -> None:
    world = World()
    node(world, "a")
    spec = {"nodeName": "a", "containers": [{"name": "c"}]}
    pod = world.kube.create(kinds.POD, {"metadata": {"name": "p", "namespace": "default"}, "spec": spec})
    evict = EvictPod(ref=Ref("Pod", "default", "p"), uid=pod.metadata.uid, reason=WHY)
    loop = controller(world, Decider(*[Plan((evict,)) for _ in range(5)]))
    for _ in range(5):
        loop.tick()
    registry = loop.telemetry.metrics.registry
    assert registry.get_sample_value("kerf_actions_total", {"action": "EvictPod", "outcome": "ok"}) == 1


def test_it_looks_again_when_the_plan_says_so() -> None:
    world = World()
    due = world.clock.now() + timedelta(seconds=17)
    loop = controller(world, Decider(Plan(next_due=due)))
    loop.tick()
    assert loop.next_due == due


def test_a_controller_that_leads_no_more_does_not_spin() -> None:
    """What it wanted to do next, when it led, is no reason to look again and again."""
    world, leads = World(), [True]
    node(world, "a")
    claim = {"metadata": {"name": "c"}, "spec": {"nodeClassRef": CLASS_REF, "requirements": []}}
    world.kube.create(kinds.NODE_CLAIM, claim)
    failing = PatchObject(verb="V", ref=Ref("Node", "", "a"), patch={}, resource_version="999", reason=WHY)
    loop = controller(world, Decider(Plan((failing,)), Plan((failing,))), may_act=lambda: leads[0])
    loop.tick()
    leads[0] = False
    world.clock.sleep(100)
    loop.tick()
    assert loop.next_due is not None
    assert loop.next_due - world.clock.now() > timedelta(milliseconds=500)


class Listener:
    """A proposer that proposes nothing, and keeps what it was told."""

    def __init__(self) -> None:
        self.told, self.forgot = list[set[Ref]](), 0

    def start(self, snapshot: Snapshot, changes: Changes) -> bool:
        self.told.append(set(changes))
        return True

    def forget(self) -> None:
        self.forgot += 1

    def rest(self) -> None:
        """It uses nothing."""

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("leads", [False, True], ids=["a standby", "a leader without claims"])
def test_who_does_not_ask_the_slow_half_keeps_no_changes_for_it(leads: bool) -> None:
    world, listener = World(), Listener()
    node(world, "a")
    loop = controller(world, Decider(), may_act=lambda: leads, proposer=listener)
    loop.tick()
    assert loop.state.changes == {}
    assert listener.forgot == 1
    assert listener.told == []


def test_a_slow_half_that_fails_is_told_everything_the_next_time() -> None:
    """What has changed since is not kept for as long as it goes on failing."""

    class Failing(Listener):
        def start(self, snapshot: Snapshot, changes: Changes) -> bool:
            raise OSError("no more processes")

    world, failing = World(), Failing()
    claim = {"metadata": {"name": "c"}, "spec": {"nodeClassRef": CLASS_REF, "requirements": []}}
    world.kube.create(kinds.NODE_CLAIM, claim)
    loop = controller(world, Decider(), proposer=failing)
    loop.tick()
    assert failing.forgot == 1
    assert loop.state.changes == {}


class Once(Faults):
    """One call of a verb fails."""

    def __init__(self, verb: str) -> None:
        self._left = {verb}

    def before(self, call: Call) -> None:
        if call.verb in self._left:
            self._left.discard(call.verb)
            raise Unavailable("not now")


def test_a_question_that_failed_is_asked_again_soon() -> None:
    """Prices are asked for every twelve hours; when that fails once, nobody can launch anything until it does not."""
    faults = Once("region")
    world, decide = World(faults=faults), Decider()
    loop = controller(world, decide)
    loop.tick()
    assert loop.state.catalogues.region is None
    world.run(loop, timedelta(seconds=5))
    assert loop.state.catalogues.region is not None


class OddCloud:
    """The cloud of a world in which a type is nothing that could be."""

    def __init__(self, cloud: Any) -> None:
        self._cloud = cloud

    def region(self) -> Region:
        found: Region = self._cloud.region()
        odd = replace(found.types["m5.large"], memory_mib=None)  # type: ignore[arg-type]
        return replace(found, types={**found.types, "m5.large": odd})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cloud, name)


def test_types_that_cannot_be_worked_out_are_told_of_and_launch_nothing() -> None:
    world, decide = World(), Decider()
    world.apply(node_class())
    settings = Settings(cluster_name="sandbox")
    cloud: Any = OddCloud(world.cloud)
    loop = Controller(
        Ports(kube=world.kube, cloud=cloud, clock=world.clock), Parts(decide=decide), settings=settings, inline=True
    )
    loop.tick()
    assert decide.seen[-1].catalogues == {}
    assert decide.seen[-1].class_facts["default"].problems
    assert loop.telemetry.metrics.registry.get_sample_value("kerf_errors_total", {"where": "types"}) == 1


class Stop(threading.Event):
    """Ends the loop at its first pause, and keeps how long that was to be."""

    pause: float | None = None

    def wait(self, timeout: float | None = None) -> bool:
        self.pause = timeout
        self.set()
        return True


@pytest.mark.parametrize(
    ("took", "waits", "plan", "pause"),
    [
        (0.4, False, Plan(), 0.4),
        (3.0, False, Plan(), 0.5),
        (0.0, False, Plan(), 0.005),
        (0.4, True, Plan(), 0.4),
        (0.9, True, Plan(), 0.1),
        (1.4, True, Plan(), 0.005),
        (0.9, True, Plan(provisioned=True), 0.005),
    ],
)
def test_after_a_slow_look_others_get_to_compute_but_no_pod_waits_for_that(
    took: float, waits: bool, plan: Plan, pause: float
) -> None:
    world, stop = World(), Stop()

    def slow(snapshot: Snapshot, memory: Memory) -> Plan:
        world.clock.sleep(took)
        return plan

    loop = controller(world, slow)
    for pod in ("pod", "another") if waits else ():
        loop.state.batch.trigger(pod, world.clock.now())
    loop.run(stop)
    assert stop.pause == pytest.approx(pause)
