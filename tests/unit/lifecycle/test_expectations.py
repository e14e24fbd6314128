"""Pods are told which node was made for them, before it takes any: who, when, for how long, and what if it goes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from kerf.lifecycle.nodeclaim.expectations import EXPECT, HELD_AT_MOST, SETTLES, TAKE_BACK, TOLD_FOR
from kerf.model.kinds import Ref
from kerf.model.kubernetes.objects import Node
from kerf.model.plan import PatchObject
from kerf.runtime.act.results import subject
from kerf_api import labels
from kerf_api.v1.meta import decode
from tests.unit.lifecycle.nominated import has_just_come, join, launched, marked, name_node, occupy, told, writes
from tests.unit.lifecycle.world import NOW, node_claim, pod


def test_those_it_was_made_for_are_told_and_nobody_else() -> None:
    world = launched("web", "gone")
    join(world)
    world.settle()
    assert told(world) == {"web": "node-a", "db": ""}


def test_nobody_is_told_unless_asked_for() -> None:
    world = launched("web", on=False)
    join(world)
    world.settle()
    assert told(world) == {"web": "", "db": ""}
    assert world.node("node-a").registered


def test_the_node_takes_pods_when_they_have_been_told() -> None:
    world = launched("web")
    join(world)
    plan = world.decide()
    assert [a.ref.kind for a in plan.actions if isinstance(a, PatchObject)][:1] == ["Pod"]
    world.obey(plan)
    assert not world.node("node-a").registered
    world.obey(world.decide())
    assert world.node("node-a").registered


def test_it_opens_some_seconds_after_it_is_ready() -> None:
    """When it comes all that wait are tried once more; what is told meanwhile is forgotten."""
    world = launched("web")
    has_just_come(world, join(world))
    assert world.settle().next_due == NOW + SETTLES
    assert told(world)["web"] == "node-a"
    assert not world.node("node-a").registered
    world.pass_time(SETTLES.total_seconds())
    world.settle()
    assert world.node("node-a").registered


def test_it_waits_no_longer_than_some_seconds_for_that() -> None:
    """The writes may take their time."""
    world = launched("web")
    join(world)
    assert world.decide().next_due == NOW + HELD_AT_MOST
    world.pass_time(HELD_AT_MOST.total_seconds())
    plan = world.decide()
    assert [(a.verb, a.ref.kind) for a in plan.actions if isinstance(a, PatchObject)][:2] == [
        ("ExpectPod", "Pod"),
        ("UpdateNode", "Node"),
    ]


def test_it_does_not_wait_for_who_cannot_be_told() -> None:
    """The writes may be forbidden."""
    world = launched("web")
    join(world)
    [write] = (a for a in world.decide().actions if isinstance(a, PatchObject) and a.ref.kind == "Pod")
    world.facts["not_before"] = {subject(write): NOW + timedelta(seconds=1)}
    assert "UpdateNode" in [a.verb for a in world.decide().actions if isinstance(a, PatchObject)]


STARTS = {"key": "agent/not-ready", "effect": "NoSchedule"}


@pytest.mark.parametrize(("ready", "taints"), [(False, []), (True, [STARTS])])
def test_the_node_takes_no_pods_before_it_is_up(ready: bool, taints: list[dict[str, str]]) -> None:
    """Whoever was tried there before is nominated no more, and the next would take what was meant for it; so nobody is
    told before, either."""
    world = launched("web", startupTaints=taints)
    join(world, ready=ready, taints=taints)
    world.settle()
    assert told(world)["web"] == ""
    assert not world.node("node-a").registered
    node = world.node("node-a")
    kept = tuple(taint for taint in node.spec.taints if taint.key == labels.UNREGISTERED_TAINT)
    world.put(replace(node, spec=replace(node.spec, taints=kept)))
    world.set_ready("node-a", True)
    world.settle()
    assert told(world)["web"] == "node-a"
    assert world.node("node-a").registered


def test_one_that_does_not_become_ready_is_not_held_for_long() -> None:
    world = launched("web")
    join(world, ready=False)
    world.settle()
    world.pass_time(HELD_AT_MOST.total_seconds())
    world.settle()
    assert world.node("node-a").registered


def test_a_node_without_pods_to_tell_waits_for_nothing() -> None:
    world = launched("gone")
    join(world)
    world.obey(world.decide())
    assert world.node("node-a").registered


def test_for_whom_others_go_is_left_alone_until_its_own_node_takes_pods() -> None:
    world = launched("web")
    world.put(decode(Node, {"metadata": {"name": "other"}}))
    name_node(world, "web", "other")
    join(world, ready=False)
    world.settle()
    assert told(world)["web"] == "other"
    world.set_ready("node-a", True)
    world.settle()
    assert told(world)["web"] == "node-a"


# --- told again -------------------------------------------------------------------------------------------------
def test_what_was_forgotten_is_told_again_until_the_node_has_been_up_for_some_seconds() -> None:
    """The kube-scheduler forgets whenever it tries the pod in vain, and may not have heard yet that the node is up."""
    world = launched("web")
    join(world)
    assert world.settle().next_due == NOW + TOLD_FOR
    assert world.claim().is_true("Initialized")
    assert writes(world) == []
    world.pass_time(TOLD_FOR.total_seconds() - 1)
    name_node(world, "web", "")
    assert writes(world) == [(EXPECT, "web")]
    world.settle()
    assert told(world)["web"] == "node-a"
    name_node(world, "web", "")
    world.pass_time(1)
    assert writes(world) == []


def test_who_has_no_room_any_more_is_not_told_again() -> None:
    world = launched("web")
    join(world)
    world.settle()
    name_node(world, "web", "")
    web = world.objects[Ref("Pod", "default", "web")]
    asks = pod("x", "", containers=[{"name": "a", "resources": {"requests": {"cpu": "1500m"}}}]).spec.containers
    world.put(replace(web, spec=replace(web.spec, containers=asks)))
    occupy(world, "node-a", "500m")
    assert writes(world) == [(EXPECT, "web")]
    occupy(world, "node-a", "501m")
    assert writes(world) == []


def test_what_was_told_is_taken_back_when_others_have_taken_the_room() -> None:
    """Nothing may happen that makes the kube-scheduler try the pod again, and nobody else cares for it meanwhile."""
    world = launched("web")
    join(world)
    world.settle()
    web = world.objects[Ref("Pod", "default", "web")]
    asks = pod("x", "", containers=[{"name": "a", "resources": {"requests": {"cpu": "1500m"}}}]).spec.containers
    world.put(replace(web, spec=replace(web.spec, containers=asks)))
    occupy(world, "node-a", "500m")
    assert writes(world) == []
    occupy(world, "node-a", "501m")
    assert writes(world) == [(TAKE_BACK, "web")]
    world.settle()
    assert told(world)["web"] == ""


def test_a_pod_that_two_nodes_were_made_for_is_told_the_newer_one() -> None:
    """It was found to have no room on the other one."""
    world = launched("web")
    join(world)
    world.settle()
    created = (world.now + timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    world.put(node_claim("0", meta={"annotations": marked("web"), "creationTimestamp": created}))
    name_node(world, "web", "")
    world.settle()
    join(world, "0")
    world.settle()
    assert told(world)["web"] == "node-0"


# --- taken back -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("going", [True, False])
def test_what_was_expected_of_a_node_that_goes_is_taken_back(going: bool) -> None:
    world = launched("web")
    node = join(world)
    world.obey(world.decide())
    assert told(world)["web"] == "node-a"
    if going:
        meta = replace(node.metadata, deletion_timestamp=world.now + timedelta(seconds=1), finalizers=("a/b",))
        world.put(replace(node, metadata=meta))
    else:
        del world.objects[Ref("Node", "", "node-a")]
    world.obey(world.decide())
    assert told(world)["web"] == ""
