"""Pods are told which node was made for them, before it takes any: who, when, for how long, and what if it goes."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta

import pytest
from msgspec.structs import replace

from api import labels
from api.v1.meta import decode
from reconciler.lifecycle.expectations import HELD_FOR
from reconciler.model.kinds import Ref
from reconciler.model.objects import Node, Pod
from reconciler.model.plan import PatchObject
from reconciler.scheduling.claims import pod_mark
from tests.unit.lifecycle.world import NOW, World, node_claim, pod, prepared

REFUSED = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


def waiting(name: str) -> Pod:
    one = pod(name, "", status=REFUSED)
    return replace(one, status=replace(one.status, start_time=None))


def launched(*planned: str, on: bool = True) -> World:
    """A claim that was made for these pods, with its instance; `web` and `db` wait."""
    marks = {labels.PLANNED_PODS: ",".join(pod_mark(f"uid-{name}") for name in planned)}
    world = prepared(node_claim("a", meta={"annotations": marks}))
    world.settings = changed(world.settings, nominate_pods=on)
    world.settle()
    world.put(waiting("web"))
    world.put(waiting("db"))
    world.deeds.clear()
    return world


def join(world: World, **meta: object) -> Node:
    """Its machine joins now."""
    node = world.join(world.claim())
    found: Node = world.put(replace(node, metadata=replace(node.metadata, creation_timestamp=world.now, **meta)))
    return found


def told(world: World) -> dict[str, str]:
    found = (world.objects[Ref("Pod", "default", name)] for name in ("db", "web"))
    return {one.metadata.name: one.status.nominated_node_name for one in found}


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


def test_it_waits_no_longer_than_some_seconds_for_that() -> None:
    """The writes may be forbidden, or fail."""
    world = launched("web")
    join(world)
    refused = world.decide()
    assert refused.next_due == NOW + HELD_FOR
    world.pass_time(HELD_FOR.total_seconds())
    plan = world.decide()
    assert [(a.verb, a.ref.kind) for a in plan.actions if isinstance(a, PatchObject)][:2] == [
        ("ExpectPod", "Pod"),
        ("UpdateNode", "Node"),
    ]


def test_a_node_without_pods_to_tell_waits_for_nothing() -> None:
    world = launched("gone")
    join(world)
    world.obey(world.decide())
    assert world.node("node-a").registered


def test_who_was_told_by_the_kube_scheduler_is_left_alone() -> None:
    world = launched("web")
    one = world.objects[Ref("Pod", "default", "web")]
    world.put(decode(Node, {"metadata": {"name": "other"}}))
    world.put(replace(one, status=replace(one.status, nominated_node_name="other")))
    join(world)
    world.settle()
    assert told(world)["web"] == "other"


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
