"""Emptiness (52 to 61 of the disruption catalogue)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.disrupt import disrupt
from kerf.model.plan import CreateNodeClaim, Plan
from kerf.model.settings import FeatureGates, Settings
from kerf.sandbox.world import World as Sandbox
from kerf.telemetry.telemetry import Telemetry
from kerf_api import labels
from tests.unit.disruption import worlds as w

SECOND = timedelta(seconds=1)
GLADLY = {labels.POD_DELETION_COST: str(-(2**27))}
FAILED = "karpenter_voluntary_disruption_failed_validations_total"


def plan(*objects: Any, **facts: Any) -> Plan:
    return disrupt(w.snapshot(objects, **facts), w.never)


def empty(*names: str, own: Any = None, **more: Any) -> w.World:
    return w.World.of(own or w.pool(), *w.pairs(*names, **more))


def test_052_an_empty_node_goes_without_a_replacement() -> None:
    """Of several each has a command, all in the same plan."""
    world = empty("a", "b", "c")
    first = world.tick()
    assert w.started(first) == ["a", "b", "c"]
    assert {action.reason.code for action in first.actions} == {"Empty"}
    world.settle()
    assert all(world.claim(name).metadata.deleting for name in "abc")
    assert world.replacements == []
    assert not [key for key in world.done if key.startswith(CreateNodeClaim.__name__)]


@pytest.mark.parametrize("status", ["False", "Unknown", None])
def test_053_an_empty_node_that_is_not_consolidatable_is_kept(status: str | None) -> None:
    a = w.claim("a", consolidatable=False)
    if status is not None:
        said = replace(a.status.conditions[0], type="Consolidatable", status=status)
        a = replace(a, status=replace(a.status, conditions=(*a.status.conditions, said)))
    assert w.started(plan(w.pool(), a, w.node(a))) == []
    assert w.started(plan(w.pool(), *w.pairs("a"))) == ["a"]


def test_054_a_pod_that_would_be_missed_keeps_its_node() -> None:
    """One of a DaemonSet would not, nor one that costs nothing to move."""
    pods = {
        "plain": w.pod("p", "a"),
        "daemon": w.pod("p", "a", owner="DaemonSet"),
        "static": w.pod("p", "a", owner="Node"),
        "gladly": w.pod("p", "a", annotations=GLADLY),
    }
    found = {
        name: w.started(disrupt(w.snapshot([w.pool(), *w.pairs("a"), pod]), w.nowhere)) for name, pod in pods.items()
    }
    assert found == {"plain": [], "daemon": ["a"], "static": ["a"], "gladly": ["a"]}


@pytest.mark.parametrize(("owner", "gone"), [("ReplicaSet", ["a"]), ("StatefulSet", [])])
def test_055_a_pod_that_ends_keeps_its_node_if_it_comes_back_under_its_name(owner: str, gone: list[str]) -> None:
    ending = w.pod("p", "a", owner=owner, deletion=w.NOW + w.MINUTE)
    assert w.started(disrupt(w.snapshot([w.pool(), *w.pairs("a"), ending]), w.nowhere)) == gone


def test_056_a_node_that_is_empty_and_has_drifted_goes_as_an_empty_one() -> None:
    """Where nothing is consolidated it goes as a drifted one."""

    def reasons(own: Any, **more: Any) -> list[str]:
        return [a.reason.code for a in plan(own, *w.pairs("a", drifted=w.NOW - w.MINUTE, **more)).actions]

    assert reasons(w.pool(annotations=w.HASHES)) == ["Empty"]
    assert reasons(w.rolling(), consolidatable=False) == ["Drifted"]


def test_057_a_pod_that_comes_to_one_of_two_nodes_spares_that_one_only() -> None:
    """And it is looked at again when that pod has gone."""
    world = empty("a", "b")
    assert w.started(world.tick()) == ["a", "b"]
    world.add(w.pod("late", "a"))
    world.settle()
    assert {name: world.claim(name).metadata.deleting for name in "ab"} == {"a": False, "b": True}
    assert not world.tainted("a")
    del world.objects["pod/shop/late"]
    assert w.started(world.plan()) == ["a"]


@pytest.mark.parametrize("event", [False, True])
def test_058_nothing_goes_before_it_has_been_quiet_for_fifteen_seconds(event: bool) -> None:
    """Since it became consolidatable, and since the last event of a pod."""
    a = w.claim("a", since=w.NOW - w.HOUR if event else w.NOW - 10 * SECOND)
    a = replace(a, status=replace(a.status, last_pod_event_time=w.NOW - 10 * SECOND if event else None))
    waiting = plan(w.pool(), a, w.node(a))
    assert (w.started(waiting), waiting.next_due) == ([], w.NOW + 5 * SECOND)
    assert w.started(plan(w.pool(), a, w.node(a), now=w.NOW + 5 * SECOND)) == ["a"]


@pytest.mark.parametrize("what", ["budget", "pod", "nominated"])
def test_059_what_happens_during_the_wait_spares_the_node(what: str) -> None:
    world = empty("a", since=w.NOW - 10 * SECOND)
    assert w.started(world.tick()) == []
    _happens(world, what)
    world.now += 5 * SECOND
    assert [key for key in (a.key for a in world.tick().actions) if "Conditions" not in key] == []
    assert not world.tainted("a")


@pytest.mark.parametrize(("what", "count"), [("pod", 1), ("nominated", 1), ("nothing", None)])
def test_059_a_command_that_is_taken_back_is_counted(what: str, count: int | None) -> None:
    sandbox, world = Sandbox(), empty("a")
    telemetry = Telemetry.quiet(sandbox.kube, sandbox.clock)
    world.tick()
    _happens(world, what)
    for _ in range(4):
        for action in world.plan().actions:
            known = world.objects.get(action.lane)
            world.perform([action])
            telemetry.done(action, "ok", None, None, known)
    assert telemetry.metrics.registry.get_sample_value(FAILED, {"consolidation_type": "empty"}) == count
    assert world.claim("a").metadata.deleting == (what == "nothing")


def _happens(world: w.World, what: str) -> None:
    if what == "budget":
        world.add(w.pool(budgets=[{"nodes": "0"}]))
    elif what == "pod":
        world.add(w.pod("late", "a"))
    elif what == "nominated":
        world.facts["nominated_until"] = {"a": w.NOW + w.MINUTE}


@pytest.mark.parametrize("gate", [False, True])
def test_060_an_empty_node_of_a_static_pool_is_kept(gate: bool) -> None:
    settings = Settings("test", gates=FeatureGates(static_capacity=gate))
    assert plan(w.pool(replicas=1), *w.pairs("a"), settings=settings).actions == ()


def test_061_room_that_buffers_keep_on_a_node_keeps_that_node() -> None:
    """It is known for each node; where it is none any more the node goes."""
    world = [w.pool(), *w.pairs("a", "b")]
    kept = plan(*world, buffer_pods={"a": 2})
    assert (w.started(kept), w.refusals(kept)) == (["b"], {"node/node-a": "BufferPods"})
    assert w.started(plan(*world, buffer_pods={"a": 0, "b": 1})) == ["a"]
    assert w.started(plan(*world)) == ["a", "b"]
