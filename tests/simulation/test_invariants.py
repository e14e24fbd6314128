"""Every invariant can fail: in a small world at rest something forbidden is done in the controller's name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from kerf.model import kinds
from kerf.model.gauges import PlanGauge
from kerf.model.plan import Plan, Reason, Refusal
from kerf.ports import Conflict, PortError, Unavailable
from kerf.runtime.controller import Controller
from kerf.sandbox.faults import Call
from kerf.sandbox.nodes.kubelets import NOT_READY
from kerf.sandbox.world import World
from kerf_api import labels
from kerf_api.v1.nodepool import Budget
from tests.simulation.arithmetic import allowed
from tests.simulation.chaos import SETTINGS
from tests.simulation.invariants import PATIENCE, Invariants, Violation
from tests.simulation.memories import difference
from tests.simulation.memory import grown
from tests.simulation.rest import unrest
from tests.simulation.scripts import TYPES, Fault
from tests.simulation.trouble import Trouble
from tests.worlds import deployment, node_class, node_pool

POOL = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never", "budgets": [{"nodes": "0"}]}


class Scene:
    """One node with one pod, and a controller that has gone home: whatever happens now is said to be its doing."""

    def __init__(self, *faults: Fault) -> None:
        self.trouble = Trouble(faults)
        self.world = world = World(seed=1, types=TYPES, faults=self.trouble)
        self.trouble.begin(world.clock.now)
        self.invariants = Invariants(world, self.trouble, SETTINGS)
        world.apply(node_class())
        world.apply(node_pool("general", {"disruption": POOL, "limits": {"cpu": "2"}}))
        world.apply(deployment("web", {"replicas": 1}))
        self.controller = Controller(world.ports, settings=SETTINGS, inline=True)
        world.run(self.controller, timedelta(minutes=3))
        assert unrest(world) == []
        self.invariants.check()
        self.invariants.acting = 1

    @property
    def claim(self) -> Any:
        return self._only(kinds.NODE_CLAIM)

    @property
    def node(self) -> Any:
        return self._only(kinds.NODE)

    @property
    def pod(self) -> Any:
        return self._only(kinds.POD)

    def _only(self, kind: kinds.Kind) -> Any:
        (record,) = self.world.server.records(kind)
        return record.value

    def patch(self, value: Any, kind: kinds.Kind, **metadata: Any) -> None:
        meta = value.metadata
        self.world.server.patch(kind, meta.namespace, meta.name, {"metadata": metadata})

    def command(self, reason: str) -> None:
        command = msgspec.json.encode({"reason": reason}).decode()
        self.patch(self.claim, kinds.NODE_CLAIM, annotations={labels.COMMAND: command})

    def call(self, verb: str, subject: str, port: str = "kube") -> None:
        self.request(Call(port, verb, subject))

    def request(self, call: Call) -> None:
        self.trouble.before(call)
        self.trouble.after(call)

    def vanish(self, value: Any, kind: kinds.Kind) -> None:
        self.patch(value, kind, finalizers=[])
        self.world.server.delete(kind, value.metadata.namespace, value.metadata.name)


def _limits(scene: Scene, limits: dict[str, str]) -> None:
    scene.world.apply(node_pool("general", {"disruption": POOL, "limits": limits}))
    manifest = {"metadata": {"name": "more", "labels": {labels.NODEPOOL: "general"}}, "spec": _spec(scene)}
    scene.world.server.create(kinds.NODE_CLAIM, manifest)


def _spec(scene: Scene) -> dict[str, Any]:
    (record,) = scene.world.server.records(kinds.NODE_CLAIM)
    return dict(record.manifest["spec"])


def _emptiness(scene: Scene) -> None:
    scene.world.apply(node_pool("general", {"disruption": {**POOL, "budgets": [{"nodes": "100%"}]}}))
    scene.command("Empty")
    scene.world.server.delete(kinds.NODE_CLAIM, "", scene.claim.name)


def _pinned(scene: Scene) -> None:
    scene.world.apply(node_pool("general", {"disruption": {**POOL, "budgets": [{"nodes": "100%"}]}}))
    scene.patch(scene.pod, kinds.POD, annotations={labels.DO_NOT_DISRUPT: "true"})
    scene.command("Underutilized")


def _orphan(scene: Scene) -> None:
    scene.invariants.acting = 0
    scene.vanish(scene.claim, kinds.NODE_CLAIM)
    scene.invariants.check()
    scene.world.run(None, SETTINGS.adoption_time + PATIENCE + timedelta(seconds=1))


def _twins(scene: Scene, without: str) -> None:
    """One more instance, which one tag says to be the claim's."""
    (machine,) = scene.world.ec2.instances.values()
    tags = {key: value for key, value in machine.tags.items() if key != without}
    scene.world.ec2.instances["i-twin"] = replace(machine, id="i-twin", tags=tags)
    scene.world.ec2.tag("i-twin", {})


def _shared(scene: Scene) -> None:
    metadata = {
        "name": "more",
        "labels": {labels.NODEPOOL: "general"},
        "annotations": {labels.INSTANCE: scene.claim.instance_id},
    }
    scene.invariants.acting = 0
    scene.world.server.create(kinds.NODE_CLAIM, {"metadata": metadata, "spec": _spec(scene)})


def _drain(scene: Scene) -> None:
    """The pod on a node that is not ready may run all the same."""
    scene.patch(scene.node, kinds.NODE, annotations={NOT_READY: "true"})
    scene.world.run(None, timedelta(seconds=20))
    assert not scene.node.ready
    scene.call("terminate", scene.claim.instance_id, "cloud")


def _deadline(scene: Scene) -> None:
    """The pods of a claim without a grace period have no end by which they must be gone."""
    scene.world.server.delete(kinds.NODE_CLAIM, "", scene.claim.name)
    scene.patch(scene.claim, kinds.NODE_CLAIM, annotations={labels.TERMINATION_TIMESTAMP: "2026-01-01T01:00:00Z"})


def _fight(scene: Scene) -> None:
    for turn in range(50):
        scene.patch(scene.claim, kinds.NODE_CLAIM, annotations={"turn": str(turn % 2)})


def _lease(scene: Scene) -> None:
    scene.invariants.leads = lambda: False
    scene.call("patch", f"nodeclaim/{scene.claim.name}")


PLANTED: dict[str, Callable[[Scene], None]] = {
    "limits: more makes 4000 cpu": lambda scene: _limits(scene, {"cpu": "2"}),
    "limits: more makes .* memory": lambda scene: _limits(scene, {"cpu": "100", "memory": "6Gi"}),
    "budget": lambda scene: scene.command("Drifted"),
    "emptiness": _emptiness,
    "pinned": _pinned,
    "released": lambda scene: scene.vanish(scene.claim, kinds.NODE_CLAIM),
    "released: node": lambda scene: scene.vanish(scene.node, kinds.NODE),
    "orphan": _orphan,
    "twins: 2 instances of": lambda scene: _twins(scene, without=labels.LAUNCH_GROUP),
    "twins: 2 instances in the launch groups": lambda scene: _twins(scene, without=labels.TAG_NODECLAIM),
    "shared": _shared,
    "fight": _fight,
    "lease": _lease,
    "force": lambda scene: scene.call("delete", f"pod/{scene.pod.key}"),
    "taint": lambda scene: scene.call("evict", f"pod/{scene.pod.key}"),
    "drain": lambda scene: scene.call("terminate", scene.claim.instance_id, "cloud"),
    "drain: .* is terminated under": _drain,
    "deadline: .* its grace period is None": _deadline,
    "owned": lambda scene: scene.call("terminate", scene.claim.instance_id, "cloud"),
    "launch": lambda scene: scene.call("create_fleet", "unheard-of", "cloud"),
    "bug": lambda scene: scene.invariants.broken(["bug: planted"]),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_violation_is_found(name: str) -> None:
    scene = Scene()
    PLANTED[name](scene)
    with pytest.raises(Violation, match=name):
        scene.invariants.check()


# --- what faults hide ---------------------------------------------------------------------------------------------
def _at(seconds: float, error: str, verb: str, **more: Any) -> Fault:
    return Fault(seconds, error, "kube", (verb,), **more)


def test_a_refused_write_excuses_nothing() -> None:
    """The taint is refused, and the pod evicted all the same."""
    scene = Scene(_at(190, "Unavailable", "patch"))
    scene.world.run(None, timedelta(seconds=20))
    with pytest.raises(Unavailable):
        scene.call("patch", f"node/{scene.node.name}")
    scene.call("evict", f"pod/{scene.pod.key}")
    with pytest.raises(Violation, match="taint"):
        scene.invariants.check()


def test_what_a_silent_watch_hides_is_held_against_nobody_until_it_speaks() -> None:
    scene = Scene(_at(190, "Silence", "read", subject="nodes", lasts=30))
    scene.world.run(None, timedelta(seconds=20))
    read = Call("kube", "read", "nodes")
    assert scene.trouble.silent(read)
    scene.call("evict", f"pod/{scene.pod.key}")
    scene.invariants.check()
    scene.world.run(None, timedelta(seconds=30))
    assert not scene.trouble.silent(read)
    scene.call("evict", f"pod/{scene.pod.key}")
    with pytest.raises(Violation, match="taint"):
        scene.invariants.check()


@pytest.mark.parametrize(
    ("fault", "call", "hidden"),
    [
        (_at(190, "Unavailable", "patch", after=True), Call("kube", "patch", "nodeclaim/general-1"), "nodeclaims"),
        (_at(190, "Forbidden", "list"), Call("kube", "list", "pods"), "pods"),
        (Fault(190, "Throttled", "cloud", ("instances",)), Call("cloud", "instances", ""), "instances"),
        (Fault(190, "Unavailable", "cloud", ("terminate",), True), Call("cloud", "terminate", "i-1"), "instances"),
        (_at(190, "Invalid", "patch"), Call("kube", "patch", "nodeclaim/general-1"), ""),
        (_at(190, "Forbidden", "get"), Call("kube", "get", "nodeclaim/general-1"), ""),
        (Fault(190, "Unavailable", "cloud", ("resolve",)), Call("cloud", "resolve", "default"), ""),
    ],
    ids=lambda value: str(value) if isinstance(value, Fault) else "",
)
def test_what_hides_something_and_what_does_not(fault: Fault, call: Call, hidden: str) -> None:
    scene = Scene(fault)
    scene.world.run(None, timedelta(seconds=20))
    with pytest.raises(PortError):
        scene.request(call)
    for source in (*(kind.plural for kind in kinds.WATCHED), "instances"):
        assert scene.trouble.sight.of(source) == (source != hidden)


def test_an_orphan_is_found_although_writes_are_refused_again_and_again() -> None:
    scene = Scene(*(_at(190 + 60 * turn, "Conflict", "patch") for turn in range(8)))
    scene.invariants.acting = 0
    scene.vanish(scene.claim, kinds.NODE_CLAIM)
    for _ in range(7):
        scene.invariants.check()
        scene.world.run(None, timedelta(minutes=1))
        with pytest.raises(Conflict):
            scene.call("patch", "node/any")
    with pytest.raises(Violation, match="orphan"):
        scene.invariants.check()


# --- the judge's own arithmetic -----------------------------------------------------------------------------------
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)  # a Monday


@pytest.mark.parametrize(
    ("nodes", "there", "most"),
    [("1", 3, 1), ("0", 3, 0), ("50%", 3, 2), ("5%", 10, 1), ("0%", 5, 0), ("100%", 4, 4), ("10%", 20, 2), ("x", 5, 0)],
)
def test_what_a_budget_allows(nodes: str, there: int, most: int) -> None:
    assert allowed([Budget(nodes=nodes)], there, "Empty", NOON) == most


def test_the_strictest_budget_that_is_about_the_reason_counts() -> None:
    budgets = [Budget(nodes="3"), Budget(nodes="2"), Budget(nodes="0", reasons=("Drifted",))]
    assert allowed(budgets, 9, "Empty", NOON) == 2
    assert allowed(budgets, 9, "Drifted", NOON) == 0
    assert allowed((), 9, "Drifted", NOON) == 9


@pytest.mark.parametrize(
    ("schedule", "duration", "held"),
    [
        ("0 12 * * *", "1m", True),
        ("0 9 * * mon-fri", "3h", False),  # until noon, and no longer
        ("0 9 * * mon-fri", "3h1m", True),
        ("0 9 * * sat,sun", "8h", False),
        ("0 9 * * 6", "51h", False),
        ("0 9 * * 6", "52h", True),
        ("30 */6 1 1 *", "24h", False),
        ("0 0 6 * mon", "24h", True),  # either of the days will do
        ("@weekly", "36h1m", True),
        ("@hourly", "1m", True),
        ("0 11 5 jan *", "90m", True),
    ],
)
def test_when_a_budget_has_its_hours(schedule: str, duration: str, *, held: bool) -> None:
    budgets = [Budget(nodes="0", schedule=schedule, duration=duration)]
    assert allowed(budgets, 4, "Drifted", NOON) == (0 if held else 4)


@pytest.mark.parametrize("schedule", ["0 9 * * tue-mon", "0 9 * *", "61 9 * * *", "0 9 * * someday"])
def test_hours_that_cannot_be_read_let_nobody_go(schedule: str) -> None:
    budgets = [Budget(nodes="2"), Budget(nodes="1", schedule=schedule, duration="1h", reasons=("Empty",))]
    assert allowed(budgets, 4, "Drifted", NOON) == 0


# --- at rest, and afterwards --------------------------------------------------------------------------------------
def test_unrest_is_found() -> None:
    scene = Scene()
    scene.world.scale("default", "web", 2)
    scene.patch(scene.node, kinds.NODE, labels={labels.EXCLUDE_BALANCERS: "karpenter"})
    scene.command("Drifted")
    (machine,) = scene.world.ec2.instances.values()
    scene.world.ec2.instances["i-left"] = replace(machine, id="i-left")
    words = "; ".join(unrest(scene.world))
    for part in ("carries", "are not the same", "out of load balancers", "has 1 of 2 pods"):
        assert part in words


def test_a_table_that_only_grows_is_found() -> None:
    scene = Scene()
    assert grown(scene.controller, scene.controller) == []
    other = Scene().controller
    assert grown(scene.controller, other) == []
    for number in range(40):
        scene.controller.state.actions.failed(f"gone-{number}", scene.world.clock.now())
    found = grown(scene.controller, other)
    assert [text.split()[1] for text in found] == [".state.actions._failures", ".state.actions._until"]


def test_a_plan_that_remembers_wrongly_is_found() -> None:
    """Each part of a plan that is more, less or in another order; and a look that comes too late, not one too early."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    rows = tuple(Refusal(f"node/{name}", Reason("Busy", "not now")) for name in "ab")
    anew = Plan(refusals=rows, next_due=noon)
    assert list(difference(anew, anew)) == []
    assert list(difference(replace(anew, next_due=noon - timedelta(seconds=1)), anew)) == []
    late = "memory: due"
    wrong = {
        "has \\[\\], lacks \\[Refusal": replace(anew, refusals=rows[:1]),
        "has \\[Refusal": replace(anew, refusals=(*rows, Refusal("node/c", rows[0].reason))),
        "another order": replace(anew, refusals=rows[::-1]),
        "gauges are": replace(anew, gauges={(PlanGauge.REFUSED_PODS, ()): 1.0}),
        f"{late} None": replace(anew, next_due=None),
        f"{late} 2026": replace(anew, next_due=noon + timedelta(seconds=1)),
    }
    for words, plan in wrong.items():
        (found,) = difference(plan, anew)
        assert re.search(words, found)
