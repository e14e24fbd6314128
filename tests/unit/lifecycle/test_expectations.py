"""Pods are told which node was made for them, before it takes any: who, when, for how long, and what if it goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed
from datetime import timedelta

import pytest
from msgspec.structs import replace

from api import labels
from api.v1.meta import decode
from reconciler.lifecycle.expectations import HELD_AT_MOST, HELD_FOR
from reconciler.model.kinds import Ref
from reconciler.model.objects import Node, Pod
from reconciler.model.plan import PatchObject
from reconciler.scheduling.claims import pod_mark
from tests.unit.lifecycle.world import NOW, World, node_claim, pod, prepared

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
REFUSED = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


def waiting(name: str, **spec: object) -> Pod:
    one = pod(name, "", status=REFUSED, **spec)
    return replace(one, status=replace(one.status, start_time=None))


def marked(*planned: str) -> dict[str, str]:
    return {labels.PLANNED_PODS: ",".join(pod_mark(f"uid-{name}") for name in planned)}


def launched(*planned: str, on: bool = True, **spec: object) -> World:
    """A claim that was made for these pods, with its instance; `web` and `db` wait."""
    world = prepared(node_claim("a", meta={"annotations": marked(*planned)}, **spec))
    world.settings = changed(world.settings, nominate_pods=on)
    world.settle()
    world.put(waiting("web"))
    world.put(waiting("db"))
    world.deeds.clear()
    return world


def ranked(*, web: Sequence[str] = ("web",), db: Sequence[str] = ("db",), **more: object) -> World:
    """Two claims with their instances: `a` was made for `web`, `b` for `db`, which is more important; both wait."""
    world = prepared(
        node_claim("a", meta={"annotations": marked(*web)}), node_claim("b", meta={"annotations": marked(*db), **more})
    )
    world.settings = changed(world.settings, nominate_pods=True)
    world.settle()
    important = waiting("db")
    world.put(waiting("web"))
    world.put(replace(important, spec=replace(important.spec, priority=100)))
    return world


def join(world: World, claim: str = "a", *, ready: bool = True, taints: Sequence[dict[str, str]] = ()) -> Node:
    """Its machine joins now."""
    held = {"key": labels.UNREGISTERED_TAINT, "effect": "NoExecute"}
    node = world.join(world.claim(claim), ready=ready, taints=[held, *taints])
    found: Node = world.put(replace(node, metadata=replace(node.metadata, creation_timestamp=world.now)))
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


STARTS = {"key": "agent/not-ready", "effect": "NoSchedule"}


@pytest.mark.parametrize(("ready", "taints"), [(False, []), (True, [STARTS])])
def test_the_node_takes_no_pods_before_it_is_up(ready: bool, taints: list[dict[str, str]]) -> None:
    """Whoever was tried there before is nominated no more, and the next would take what was meant for it."""
    world = launched("web", startupTaints=taints)
    join(world, ready=ready, taints=taints)
    world.settle()
    assert told(world)["web"] == "node-a"
    assert not world.node("node-a").registered
    node = world.node("node-a")
    kept = tuple(taint for taint in node.spec.taints if taint.key == labels.UNREGISTERED_TAINT)
    world.put(replace(node, spec=replace(node.spec, taints=kept)))
    world.set_ready("node-a", True)
    world.settle()
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


def test_a_node_gives_way_to_pods_that_are_more_important() -> None:
    """They would take it, or make others go again, before their own node is up."""
    world = ranked()
    join(world)
    assert world.settle().next_due == NOW + HELD_AT_MOST
    assert told(world) == {"web": "node-a", "db": ""}
    join(world, "b", ready=False)
    world.settle()
    assert told(world) == {"web": "node-a", "db": "node-b"}
    assert not world.node("node-a").registered
    world.set_ready("node-b", True)
    world.settle()
    assert (world.node("node-a").registered, world.node("node-b").registered) == (True, True)


def test_it_gives_way_no_longer_than_some_seconds() -> None:
    world = ranked()
    join(world)
    world.settle()
    world.pass_time(HELD_AT_MOST.total_seconds() - 1)
    world.settle()
    assert not world.node("node-a").registered
    world.pass_time(1)
    world.settle()
    assert world.node("node-a").registered


def test_two_nodes_that_give_way_to_each_other_open_when_both_are_up() -> None:
    """Each was made for a pod that matters more than one of the other's."""
    world = ranked(web=("web", "low"), db=("db", "small"))
    for name in ("low", "small"):
        world.put(waiting(name))
    web = world.objects[Ref("Pod", "default", "web")]
    world.put(replace(web, spec=replace(web.spec, priority=100)))
    join(world)
    world.settle()
    assert not world.node("node-a").registered
    join(world, "b")
    world.settle()
    assert world.node("node-a").registered
    assert world.node("node-b").registered


def test_a_node_gives_way_to_pods_that_must_be_together() -> None:
    """The first would take what is left of it, and the second would find no room beside the first."""
    world = ranked()
    together = {"podAffinity": {REQUIRED: [{"topologyKey": labels.HOSTNAME, "labelSelector": {}}]}}
    world.put(waiting("db", affinity=together))
    join(world)
    world.settle()
    assert not world.node("node-a").registered
    join(world, "b")
    world.settle()
    assert world.node("node-a").registered


def test_it_gives_way_to_no_pods_of_another_nodepool() -> None:
    world = ranked(labels={labels.NODEPOOL: "other", labels.NODECLASS: "default"})
    join(world)
    world.settle()
    assert world.node("node-a").registered
