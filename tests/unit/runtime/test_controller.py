"""The loop in a world: what it waits for, and what it survives."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from api.v1.meta import ObjectMeta
from reconciler.model import kinds
from reconciler.model.cloud import Message, Region
from reconciler.model.kinds import Ref
from reconciler.model.memory import Memory
from reconciler.model.objects import Node, Pod, PodSpec
from reconciler.model.plan import EvictPod, PatchObject, Plan, Reason, Source
from reconciler.model.settings import FeatureGates, Settings
from reconciler.model.snapshot import Snapshot
from reconciler.ports import Listing, Unavailable
from reconciler.runtime.controller import AFTER_A_BUG, AT_LEAST_EVERY, Controller
from reconciler.runtime.inbox import Changed, Done, Inbox, Listed, News, Received
from reconciler.runtime.proposer import Changes
from reconciler.runtime.results import subject
from reconciler.sandbox.clock import START
from reconciler.sandbox.faults import Call, Faults
from reconciler.sandbox.world import World
from reconciler.telemetry.telemetry import Telemetry
from tests.unit.runtime.clocks import SetBack
from tests.worlds import node_class

WHY = Reason("Test")
CLASS_REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


class Decider:
    """Decides what a test put in, and keeps what it saw."""

    def __init__(self, *plans: Plan) -> None:
        self.plans, self.seen = list(plans), list[Snapshot]()

    def __call__(self, snapshot: Snapshot, memory: Memory) -> Plan:
        self.seen.append(snapshot)
        return self.plans.pop(0) if self.plans else Plan()


def controller(world: World, decide: Any, **options: Any) -> Controller:
    settings = Settings(cluster_name="sandbox")
    return Controller(
        kube=world.kube, cloud=world.cloud, clock=world.clock, settings=settings, decide=decide, inline=True, **options
    )


def node(world: World, name: str) -> None:
    world.kube.create(kinds.NODE, {"metadata": {"name": name}, "spec": {}})


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
        return replace(found, types={**found.types, "x1.odd": None})  # type: ignore[dict-item]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cloud, name)


def test_types_that_cannot_be_worked_out_are_told_of_and_launch_nothing() -> None:
    world, decide = World(), Decider()
    world.apply(node_class())
    settings = Settings(cluster_name="sandbox")
    cloud: Any = OddCloud(world.cloud)
    loop = Controller(kube=world.kube, cloud=cloud, clock=world.clock, settings=settings, decide=decide, inline=True)
    loop.tick()
    assert decide.seen[-1].catalogues == {}
    assert decide.seen[-1].class_facts["default"].problems
    assert loop.telemetry.metrics.registry.get_sample_value("kerf_errors_total", {"where": "types"}) == 1


# --- bugs in taking news in ---------------------------------------------------------------------------------------
#: What no decoder makes: indexing it fails after it has been filed.
ODD = Pod(metadata=ObjectMeta(name="odd", namespace="default", uid="odd"), spec=PodSpec(node_name=[]))  # type: ignore[arg-type]
PODS = frozenset({Source.PODS})


def errors(loop: Controller, where: str) -> float | None:
    return loop.telemetry.metrics.registry.get_sample_value("kerf_errors_total", {"where": where})


@pytest.mark.parametrize(
    "news",
    [Changed(kinds.POD, ODD), Listed(kinds.POD, (ODD,), "999", START)],
    ids=["changed", "listed"],
)
def test_what_cannot_be_taken_in_puts_its_kind_in_doubt_and_the_rest_is_taken_in(news: News) -> None:
    world, decide = World(), Decider()
    loop = controller(world, decide)
    loop.tick()
    assert loop.state.fresh(PODS, world.clock.now())
    loop.inbox.put(news)
    loop.inbox.put(Changed(kinds.NODE, Node(metadata=ObjectMeta(name="later", uid="later"))))
    loop.tick()
    assert "later" in decide.seen[-1].nodes
    assert not loop.state.fresh(PODS, world.clock.now())
    assert loop.state.fresh(frozenset({Source.NODES}), world.clock.now())
    assert errors(loop, "take_in") == 1


class OddKube:
    """The Kube of a world with one odd pod in its list."""

    def __init__(self, kube: Any) -> None:
        self._kube = kube

    def list(self, kind: kinds.Kind, **selectors: str) -> Listing:
        found: Listing = self._kube.list(kind, **selectors)
        return replace(found, items=(*found.items, ODD)) if kind is kinds.POD else found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kube, name)


def test_before_a_first_list_was_taken_in_nothing_is_decided() -> None:
    world, decide = World(), Decider()
    kube: Any = OddKube(world.kube)
    settings = Settings(cluster_name="sandbox")
    loop = Controller(kube=kube, cloud=world.cloud, clock=world.clock, settings=settings, decide=decide, inline=True)
    loop.tick()
    assert loop.missing() == ["Pod"]
    assert decide.seen == []


def test_an_action_whose_outcome_cannot_be_taken_in_is_left_alone_and_so_is_what_it_changed() -> None:
    """Asked again at once it would fail again at once."""
    world = World()
    evict = EvictPod(ref=Ref("Pod", "default", "odd"), uid="odd", reason=WHY)
    loop = controller(world, Decider())
    loop.tick()
    loop.inbox.put(Done(evict, "conflict", world.clock.now(), ODD))
    loop.tick()
    assert not loop.state.fresh(PODS, world.clock.now())
    assert loop.state.held_until(evict.key, evict.uid, (subject(evict),), world.clock.now()) is not None


def test_a_message_that_cannot_be_taken_in_costs_no_other() -> None:
    world, decide = World(), Decider()
    loop = controller(world, decide)
    messages = [Message(str(number), "", None if number == 1 else "{}") for number in range(3)]  # type: ignore[arg-type]
    loop.inbox.put(Received(messages, world.clock.now()))
    loop.tick()
    assert [one.message.id for one in decide.seen[-1].interruptions] == ["0", "1", "2"]
    assert errors(loop, "take_in") == 1


class Speechless(Telemetry):
    """Telling fails, of whatever."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.witness = self.fail  # type: ignore[assignment]

    def fail(self, *_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    done = planned = fail


def test_who_cannot_tell_what_happened_goes_on_and_doubts_nothing() -> None:
    world = World()
    node(world, "a")
    patch = PatchObject(verb="V", ref=Ref("Node", "", "a"), patch={"metadata": {"labels": {"x": "1"}}}, reason=WHY)
    decide = Decider(Plan((patch,)))
    loop = controller(world, decide, telemetry=Speechless.quiet(world.kube, world.clock))
    loop.tick()
    loop.tick()
    assert decide.seen[1].nodes["a"].metadata.labels["x"] == "1"
    assert len(decide.seen[1].fresh_at) == 7
    assert errors(loop, "take_in") is None
    told = errors(loop, "telemetry")
    assert told is not None
    assert told > 3


# --- a clock that is set back -----------------------------------------------------------------------------------
class Waits(Inbox):
    """Notes how long the loop would wait for news, and ends it instead."""

    def __init__(self, stop: threading.Event) -> None:
        super().__init__()
        self.stop, self.waited = stop, list[float]()

    def wait(self, seconds: float) -> bool:
        self.waited.append(seconds)
        self.stop.set()
        return False


def test_the_loop_does_not_wait_longer_for_a_clock_that_is_set_back_in_a_look() -> None:
    world, clock, inbox = World(), SetBack(), Waits(threading.Event())

    def decide(snapshot: Snapshot, memory: Memory) -> Plan:
        clock.back(60)
        return Plan()

    settings = Settings(cluster_name="sandbox")
    loop = Controller(
        kube=world.kube,
        cloud=world.cloud,
        clock=clock,
        settings=settings,
        decide=decide,
        inline=True,
        inbox=inbox,
    )
    loop.run(inbox.stop)
    assert inbox.waited
    assert max(inbox.waited) <= AT_LEAST_EVERY.total_seconds()


class Reluctant:
    """A Kube that refuses the first list of each kind, and has nothing to say."""

    def __init__(self) -> None:
        self.refused, self.listed, self.open = set[str](), set[str](), True

    def list(self, kind: kinds.Kind, **selectors: str) -> Listing:
        if kind.name not in self.refused:
            self.refused.add(kind.name)
            raise Unavailable("not now")
        self.listed.add(kind.name)
        return Listing((), "1")

    def watch(self, kind: kinds.Kind, resource_version: str) -> Reluctant:
        return self

    def read(self, timeout_seconds: float) -> tuple[()]:
        time.sleep(0.01)
        return ()

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("gates", [FeatureGates(), FeatureGates(node_overlay=True)])
def test_a_list_that_failed_is_not_put_off_by_a_clock_that_is_set_back(gates: FeatureGates) -> None:
    """Of any kind; one behind a feature gate is not even asked for while that is closed."""
    world, clock, kube = World(), SetBack(), Reluctant()
    settings = Settings(cluster_name="sandbox", gates=gates)
    loop = Controller(kube=kube, cloud=world.cloud, clock=clock, settings=settings)  # type: ignore[arg-type]
    every = {kind.name for kind in kinds.WATCHED} | ({"NodeOverlay"} if gates.node_overlay else set())
    loop.start()
    try:
        assert _soon(lambda: kube.refused == every)
        time.sleep(0.1)  # they wait now, each half a second at least
        clock.back(60)
        assert _soon(lambda: kube.listed == every)
    finally:
        loop.close()


def _soon(so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 5
    while not so() and time.monotonic() < deadline:
        time.sleep(0.01)
    return so()


class Once(Faults):
    """One call of a verb fails."""

    def __init__(self, verb: str) -> None:
        self._left = {verb}

    def before(self, call: Call) -> None:
        if call.verb in self._left:
            self._left.discard(call.verb)
            raise Unavailable("not now")
