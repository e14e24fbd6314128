"""A claim's whole life, and a crash after any action of it: whatever was done, deciding again comes to the same end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from kerf.model import kinds
from kerf.model.plan import DeleteObject, EvictPod, LaunchInstances, PatchObject, Plan, Source, TerminateInstance
from kerf_api import labels
from tests.unit.lifecycle.world import World, node_claim, node_class, node_pool, pod, prepared, running


def launched(world: World, *names: str) -> set[str]:
    return {world.claim(name).status.provider_id for name in names}


class TestFromClaimToNode:
    def test_equal_claims_cost_one_call(self) -> None:
        world = prepared(node_claim("a"), node_claim("b"))
        world.settle()
        assert [call.claims for call in world.done(LaunchInstances)][-1] == ("a", "b")
        assert len(world.calls) == 1
        assert launched(world, "a", "b") == {"aws:///us-west-2a/i-0000", "aws:///us-west-2a/i-0001"}

    def test_unequal_claims_are_launched_apart(self) -> None:
        taints = [{"key": "own", "value": "x", "effect": "NoSchedule"}]
        world = prepared(node_claim("a"), node_claim("b", taints=taints))
        world.settle()
        assert len(world.calls) == 2

    def test_the_call_waits_until_every_claim_carries_it(self) -> None:
        world = prepared(node_claim("a"), node_claim("b"))
        plan = world.decide()
        assert [action.key for action in plan.actions] == ["PrepareLaunch nodeclaim/a", "PrepareLaunch nodeclaim/b"]
        world.obey(plan, first=1)
        assert [action.key for action in world.decide().actions] == ["PrepareLaunch nodeclaim/b"]

    def test_a_claim_that_comes_later_does_not_join_a_group(self) -> None:
        world = prepared(node_claim("a"), node_claim("c"))
        world.obey(world.decide(), first=1)
        world.put(node_claim("b"))
        world.settle()
        assert sorted(len(ids) for ids in world.calls.values()) == [1, 2]
        assert len(launched(world, "a", "b", "c")) == 3

    def test_what_launching_writes(self) -> None:
        world = prepared(node_claim("a", meta={"labels": {labels.NODEPOOL: "default", labels.ARCH: "own"}}))
        world.settle()
        claim = world.claim()
        assert claim.status.image_id == "ami-1"
        assert claim.status.capacity == {"cpu": "2", "ephemeral-storage": "20Gi", "memory": "8Gi", "pods": "29"}
        assert claim.metadata.labels[labels.ARCH] == "own"
        assert claim.metadata.labels[labels.INSTANCE_TYPE] == "m5.large"
        assert claim.metadata.labels[labels.ZONE] == "us-west-2a"
        stamps = world.get(kinds.NODE_CLASS, "default").metadata.annotations
        assert claim.metadata.annotations[labels.NODECLASS_HASH] == stamps[labels.NODECLASS_HASH]
        assert claim.metadata.annotations[labels.INSTANCE_PROFILE] == "demo_1"
        assert labels.LAUNCH_REQUEST not in claim.metadata.annotations

    def test_metadata_is_there_before_the_status_says_launched(self) -> None:
        world = prepared(node_claim("a"))
        while not world.claim().is_true("Launched"):
            assert world.claim().status.provider_id == ""
            world.obey(world.decide())
        assert world.claim().metadata.labels[labels.INSTANCE_TYPE] == "m5.large"

    def test_the_node_gets_what_the_claim_has(self) -> None:
        claim = node_claim(
            "a",
            meta={"annotations": {"example.com/note": "1"}},
            taints=[{"key": "own", "value": "x", "effect": "NoSchedule"}],
            startupTaints=[{"key": "agent", "effect": "NoSchedule"}],
        )
        world = prepared(claim)
        world.settle()
        world.join(world.claim())
        world.settle()
        node = world.node("node-a")
        assert [str(t) for t in node.spec.taints] == ["own=x:NoSchedule", "agent:NoSchedule"]
        assert node.metadata.labels[labels.NODEPOOL] == "default"
        assert node.registered
        assert node.metadata.annotations["example.com/note"] == "1"
        assert not any(key.startswith("kerf.sh/") for key in node.metadata.annotations)
        assert node.metadata.finalizers == (labels.TERMINATION_FINALIZER,)
        assert [(o.kind, o.uid, o.block_owner_deletion) for o in node.metadata.owner_references] == [
            ("NodeClaim", "uid-a", True)
        ]
        assert world.claim().status.node_name == "node-a"

    def test_ready_in_the_end_and_then_nothing(self) -> None:
        world = running(node_claim("a"))
        assert world.claim().is_true("Ready")
        assert world.node("node-a").initialized
        assert world.decide() == Plan()

    def test_an_idle_world_writes_nothing_as_time_passes(self) -> None:
        world = running(node_claim("a"), node_claim("b"))
        world.put(pod("web", "node-a"))
        world.settle()
        for seconds in (1, 10, 60, 600, 7200):
            world.pass_time(seconds)
            assert world.decide() == Plan()


class TestTheEnd:
    def test_the_stages_one_after_the_other(self) -> None:
        world = running(node_claim("a"))
        world.put(pod("web", "node-a"))
        world.pass_time(30)
        world.delete(kinds.ref(world.claim()))
        world.settle()
        assert world.node("node-a").metadata.deleting
        assert [str(t) for t in world.node("node-a").spec.taints] == ["karpenter.sh/disrupted:NoSchedule"]
        assert world.node("node-a").metadata.labels[labels.EXCLUDE_BALANCERS] == "karpenter"
        assert [e.ref.name for e in world.done(EvictPod)] == ["web"]
        assert world.condition("Drained") == ("Unknown", "Draining")
        world.pass_time(30)
        world.settle()
        assert world.condition("Drained") == ("True", "Drained")
        assert world.condition("VolumesDetached") == ("True", "VolumesDetached")
        assert world.condition("InstanceTerminating") == ("True", "InstanceTerminating")
        assert len(world.done(TerminateInstance)) == 1
        world.pass_time(5)
        assert world.settle().next_due is not None
        assert world.claim().name == "a"
        world.pass_time(20)
        world.settle()
        assert world.get(kinds.NODE, "node-a") is None
        assert world.get(kinds.NODE_CLAIM, "a") is None
        assert not world.instances

    def test_the_taint_is_there_before_the_first_eviction(self) -> None:
        world = running(node_claim("a"))
        world.put(pod("web", "node-a"))
        world.delete(kinds.ref(world.claim()))
        while not world.done(EvictPod):
            plan = world.decide()
            if any(isinstance(action, EvictPod) for action in plan.actions):
                assert labels.DISRUPTED_TAINT in [t.key for t in world.node("node-a").spec.taints]
            world.obey(plan)

    def test_a_node_that_a_person_deletes_is_drained_and_takes_its_claim_along(self) -> None:
        world = running(node_claim("a"))
        world.put(pod("web", "node-a"))
        world.delete(kinds.ref(world.node("node-a")))
        world.settle()
        assert world.claim().metadata.deleting
        assert [e.ref.name for e in world.done(EvictPod)] == ["web"]
        finish(world)
        assert world.get(kinds.NODE, "node-a") is None

    def test_a_claim_that_never_launched_just_goes(self) -> None:
        world = prepared(node_claim("a"))
        world.delete(kinds.ref(world.claim()))
        world.settle()
        assert world.get(kinds.NODE_CLAIM, "a") is None
        assert not world.calls

    def test_an_instance_on_its_way_to_a_deleted_claim_is_terminated(self) -> None:
        world = prepared(node_claim("a"))
        world.obey(world.decide())
        world.obey(world.decide())
        assert len(world.instances) == 1
        world.delete(kinds.ref(world.claim()))
        finish(world)
        assert world.get(kinds.NODE_CLAIM, "a") is None
        assert not world.instances

    def test_a_deleted_claim_waits_for_what_its_call_may_have_launched(self) -> None:
        world = prepared(node_claim("a"))
        world.obey(world.decide())
        world.delete(kinds.ref(world.claim()))
        plan = world.settle()
        assert world.claim().metadata.deleting
        assert plan.next_due is not None
        world.pass_time(62)
        world.settle()
        assert world.get(kinds.NODE_CLAIM, "a") is None

    def test_living_members_come_first_when_the_instances_are_fewer(self) -> None:
        world = prepared(node_claim("a"), node_claim("b"))
        world.obey(world.decide())
        world.given = 1
        world.delete(kinds.ref(world.claim("a")))
        world.obey(world.decide())
        world.settle()
        assert world.claim("b").is_true("Launched")
        assert world.get(kinds.NODE_CLAIM, "a") is None

    def test_without_a_fresh_list_nothing_is_terminated(self) -> None:
        world = running(node_claim("a"))
        world.delete(kinds.ref(world.claim()))
        world.pass_time(10)
        world.settle()
        world.pass_time(10)
        world.facts["fresh_at"] = {Source.NODE_CLAIMS: world.now, Source.NODES: world.now}
        plan = world.settle()
        assert not world.done(TerminateInstance)
        assert [r.reason.code for r in plan.refusals] == ["StaleSource"]
        assert plan.next_due is not None

    def test_a_list_from_before_the_termination_proves_nothing(self) -> None:
        world = running(node_claim("a"))
        world.delete(kinds.ref(world.claim()))
        world.settle()
        world.pass_time(6)
        world.settle()
        world.instances.clear()
        world.now += timedelta(seconds=5)
        world.settle()
        assert world.claim().metadata.finalizers
        world.pass_time(0)
        world.settle()
        assert world.get(kinds.NODE_CLAIM, "a") is None

    def test_termination_is_asked_again_when_the_instance_lives_on(self) -> None:
        world = running(node_claim("a"))
        world.delete(kinds.ref(world.claim()))
        world.settle()
        world.pass_time(6)
        plan = world.decide()
        while not any(isinstance(a, TerminateInstance) for a in plan.actions):
            world.obey(plan)
            plan = world.decide()
        patches = [a for a in plan.actions if isinstance(a, PatchObject)]
        world.obey(Plan(actions=tuple(patches)))
        assert world.condition("InstanceTerminating") == ("True", "InstanceTerminating")
        world.pass_time(5)
        assert any(isinstance(a, TerminateInstance) for a in world.decide().actions)


def finish(world: World) -> None:
    for _ in range(12):
        world.settle()
        world.pass_time(11)


# --- crashes ----------------------------------------------------------------------------------------------------
def start_launch() -> World:
    return prepared(node_claim("a"), node_claim("b"), node_claim("c"))


def all_launched(world: World) -> None:
    assert len(launched(world, "a", "b", "c")) == 3
    assert all(world.claim(name).is_true("Launched") for name in "abc")
    assert len(world.calls) == 1
    assert len(world.instances) == 3
    for name in "abc":
        claim = world.claim(name)
        assert claim.metadata.annotations[labels.INSTANCE] == claim.instance_id


def start_end() -> World:
    world = running(node_claim("a"), node_claim("b"))
    world.put(pod("web", "node-a"))
    world.put(pod("agent", "node-a", meta={"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet"}]}))
    world.delete(kinds.ref(world.claim()))
    return world


def all_ended(world: World) -> None:
    assert world.get(kinds.NODE_CLAIM, "a") is None
    assert world.get(kinds.NODE, "node-a") is None
    assert set(world.instances) == {world.claim("b").instance_id}
    assert world.claim("b").is_true("Ready")
    assert len({e.uid for e in world.done(EvictPod)}) == 2


def count_actions(start: Callable[[], World]) -> int:
    world = start()
    before = len(world.deeds)
    finish(world)
    return len(world.deeds) - before


@pytest.mark.parametrize(("start", "check"), [(start_launch, all_launched), (start_end, all_ended)])
def test_a_crash_after_any_action_changes_nothing(start: Callable[[], World], check: Callable[[World], None]) -> None:
    total = count_actions(start)
    assert total > 8
    for stop in range(total + 1):
        world = start()
        left = stop
        for _ in range(100):
            plan = world.decide()
            if not plan.actions:
                world.pass_time(11)
                continue
            world.obey(plan, first=left)
            left -= len(plan.actions)
            if left <= 0:
                break
        world.failures.clear()
        world.pass_time(3)
        finish(world)
        check(world)


def test_a_crash_in_which_ec2_does_not_show_the_instances_yet_repeats_the_same_call() -> None:
    world = start_launch()
    world.obey(world.decide())
    world.obey(world.decide())
    hidden, world.instances = world.instances, {}
    repeat = world.decide()
    assert [action.key for action in repeat.actions] == [world.done(LaunchInstances)[0].key]
    assert repeat.actions[0].request == world.done(LaunchInstances)[0].request  # type: ignore[attr-defined]
    world.instances = hidden
    world.settle()
    all_launched(world)


def test_deletion_of_a_registered_claim_asks_for_its_node_first() -> None:
    world = running(node_claim("a"))
    world.delete(kinds.ref(world.claim()))
    deletions = [a for a in world.decide().actions if isinstance(a, DeleteObject)]
    assert [str(a.ref) for a in deletions] == ["node/node-a"]
    assert deletions[0].sources == {Source.NODE_CLAIMS}


def test_an_empty_world_asks_for_nothing() -> None:
    assert World().decide() == Plan()
    assert World(node_class(), node_pool()).settle() == Plan()
