"""Where a drain ends, or is not needed: instances that are gone, claims that share, nodes without a claim."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from kerf.model import kinds
from kerf.model.plan import DeleteObject, EvictPod, PatchObject, Plan, TerminateInstance
from kerf_api import labels
from tests.unit.lifecycle.drains import DAEMON, draining, evicted
from tests.unit.lifecycle.world import node_claim, pod, running


def test_a_node_without_a_claim_is_drained_and_its_instance_left_to_the_collector() -> None:
    world = running(node_claim("a"))
    world.put(pod("web", "node-a"))
    instance_id = world.claim().instance_id
    world.objects.pop(kinds.ref(world.claim()))
    world.delete(kinds.ref(world.node("node-a")))
    world.instances[instance_id] = world.add_instance(instance_id, {}, launched=world.now + timedelta(hours=1))
    world.obey(world.decide())
    assert [str(t) for t in world.node("node-a").spec.taints] == ["karpenter.sh/disrupted:NoSchedule"]
    assert evicted(Plan(actions=tuple(world.deeds))) == []
    world.settle()
    assert evicted(Plan(actions=tuple(world.deeds))) == ["web"]
    world.pass_time(30)
    world.settle()
    assert world.get(kinds.NODE, "node-a") is None
    assert not world.done(TerminateInstance)


def test_a_claim_that_shares_its_instance_does_not_end_it() -> None:
    world = running(node_claim("a"))
    twin = world.claim()
    world.put(replace(twin, metadata=replace(twin.metadata, name="twin", uid="uid-twin")))
    world.delete(kinds.ref(world.claim("twin")))
    world.settle()
    assert world.get(kinds.NODE_CLAIM, "twin") is None
    assert not world.done(TerminateInstance)
    assert world.claim("a").metadata.finalizers


def test_a_shared_node_stays_with_the_claim_that_stays() -> None:
    world = running(node_claim("a"))
    twin = world.claim()
    world.put(replace(twin, metadata=replace(twin.metadata, name="twin", uid="uid-twin")))
    world.delete(kinds.ref(world.claim("twin")))
    world.settle()
    assert not world.node("node-a").metadata.deleting


def test_a_pod_that_comes_after_the_instance_was_ended_is_not_drained() -> None:
    world = draining()
    world.settle()
    world.pass_time(5)
    world.settle()
    assert world.condition("InstanceTerminating") == ("True", "InstanceTerminating")
    world.put(pod("agent", "node-a", meta=DAEMON))
    world.settle()
    assert world.condition("Drained") == ("True", "Drained")
    assert not world.done(EvictPod)


def test_finalizers_go_only_with_fresh_lists() -> None:
    world = draining()
    for _ in range(3):
        world.settle()
        world.pass_time(11)
    plan = world.decide()
    released = [a for a in plan.actions if isinstance(a, PatchObject) and a.verb == "ReleaseNode"]
    assert [{str(s) for s in a.sources} for a in released] == [{"Instance"}]


def test_a_node_without_our_finalizer_gets_it_back_before_it_is_deleted() -> None:
    """Else it would be gone at once, and its pods would end with its instance, not drained."""
    world = running(node_claim("a"))
    world.put(pod("plain", "node-a"))
    node = world.node("node-a")
    world.put(replace(node, metadata=replace(node.metadata, finalizers=())))
    world.delete(kinds.ref(world.claim()))
    world.deeds.clear()
    world.settle()
    deeds = [action for action in world.deeds if isinstance(action, (PatchObject, DeleteObject, EvictPod))]
    on_node = [type(action).__name__ for action in deeds if action.ref.name in ("node-a", "plain")]
    assert on_node[:4] == ["PatchObject", "DeleteObject", "PatchObject", "EvictPod"]
    assert labels.TERMINATION_FINALIZER in world.node("node-a").metadata.finalizers
