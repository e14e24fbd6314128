"""Who leaves a node when, and how a deadline bends the rules."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from api import labels
from api.v1.meta import Taint, decode
from reconciler.model import kinds
from reconciler.model.objects import PersistentVolumeClaim, Pod, VolumeAttachment
from reconciler.model.plan import DeleteObject, EvictPod, PatchObject, Plan, TerminateInstance
from tests.unit.lifecycle.world import NOW, World, node_claim, pod, prepared, running, text

DAEMON = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet"}]}
MIRROR = {"ownerReferences": [{"apiVersion": "v1", "kind": "Node"}]}
TOLERANT = [{"key": "karpenter.sh/disrupted", "operator": "Exists"}]
CRITICAL = "system-cluster-critical"


def draining(*pods: Pod, grace: str | None = None) -> World:
    """A node that is going, tainted already, with these pods."""
    extra: dict[str, Any] = {} if grace is None else {"terminationGracePeriod": grace}
    world = running(node_claim("a", **extra))
    for value in pods:
        world.put(value)
    world.delete(kinds.ref(world.claim()))
    while labels.DISRUPTED_TAINT not in [t.key for t in world.node("node-a").spec.taints]:
        world.obey(world.decide())
    world.deeds.clear()
    return world


def evicted(plan: Plan) -> list[str]:
    return [action.ref.name for action in plan.actions if isinstance(action, EvictPod)]


def forced(plan: Plan) -> list[tuple[str, int | None]]:
    found = [a for a in plan.actions if isinstance(a, DeleteObject) and a.ref.kind == "Pod"]
    return [(a.ref.name, a.grace_seconds) for a in found]


# --- waves ------------------------------------------------------------------------------------------------------
def test_the_four_waves() -> None:
    world = draining(
        pod("plain", "node-a"),
        pod("agent", "node-a", meta=DAEMON),
        pod("dns", "node-a", priorityClassName=CRITICAL),
        pod("proxy", "node-a", meta=DAEMON, priorityClassName="system-node-critical"),
    )
    order = []
    for _ in range(4):
        plan = world.decide()
        order.append(evicted(plan))
        world.obey(plan)
        world.settle()
        assert evicted(world.decide()) == []
        world.pass_time(30)
    assert order == [["plain"], ["agent"], ["dns"], ["proxy"]]


@pytest.mark.parametrize(
    ("fields", "waits"),
    [
        ({}, True),
        ({"meta": DAEMON}, True),
        ({"meta": MIRROR}, False),
        ({"tolerations": TOLERANT}, False),
        ({"tolerations": [{"key": "karpenter.sh/disrupted", "operator": "Equal"}]}, False),
        ({"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]}, True),
        ({"status": {"phase": "Succeeded"}}, False),
        ({"status": {"phase": "Failed"}}, False),
        ({"meta": {"annotations": {labels.DO_NOT_DISRUPT: "true"}}}, True),
        ({"meta": {"deletionTimestamp": text(NOW - timedelta(seconds=59))}}, True),
        ({"meta": {"deletionTimestamp": text(NOW - timedelta(seconds=61))}}, False),
    ],
)
def test_which_pods_hold_up_a_drain(fields: dict[str, Any], waits: bool) -> None:
    world = draining(pod("web", "node-a", **fields))
    plan = world.decide()
    assert any(e.reason == "FailedDraining" for e in plan.events) == waits
    assert plan.next_due is not None


def test_a_protected_pod_is_not_evicted_and_is_waited_for() -> None:
    world = draining(pod("job", "node-a", meta={"annotations": {labels.DO_NOT_DISRUPT: "2m"}}))
    plan = world.decide()
    assert evicted(plan) == []
    world.pass_time(119)
    assert evicted(world.decide()) == []
    assert world.decide().next_due == NOW + timedelta(minutes=2)
    world.pass_time(1)
    assert evicted(world.decide()) == ["job"]


def test_a_pod_that_a_budget_protects_is_asked_again_later() -> None:
    world = draining(pod("web", "node-a"), pod("api", "node-a"))
    until = world.now + timedelta(seconds=3)
    world.facts["not_before"] = {"eviction/default/web": until}
    plan = world.decide()
    assert evicted(plan) == ["api"]
    assert plan.next_due == until
    world.pass_time(3)
    assert evicted(world.decide()) == ["api", "web"]


def test_why_the_node_goes_is_the_reason_of_the_eviction() -> None:
    world = draining(pod("web", "node-a"))
    actions = [a for a in world.decide().actions if isinstance(a, EvictPod)]
    assert [(a.reason.code, a.uid) for a in actions] == [("Forceful Termination", "uid-web")]


def test_an_empty_node_settles_for_five_seconds() -> None:
    world = draining()
    world.settle()
    assert world.condition("Drained") == ("Unknown", "Draining")
    assert world.decide().next_due == NOW + timedelta(seconds=5)
    world.pass_time(4)
    world.settle()
    assert world.condition("Drained") == ("Unknown", "Draining")
    world.pass_time(1)
    world.settle()
    assert world.condition("Drained") == ("True", "Drained")


def test_a_taint_of_the_same_key_with_another_effect_is_replaced() -> None:
    world = running(node_claim("a"))
    node = world.node("node-a")
    wrong = Taint(key=labels.DISRUPTED_TAINT, effect="NoExecute")
    world.put(replace(node, spec=replace(node.spec, taints=(wrong,))))
    world.delete(kinds.ref(world.claim()))
    world.settle()
    assert [str(t) for t in world.node("node-a").spec.taints] == ["karpenter.sh/disrupted:NoSchedule"]


# --- the deadline -----------------------------------------------------------------------------------------------
def test_the_deadline_is_written_down_once() -> None:
    world = draining(grace="5m")
    key = labels.TERMINATION_TIMESTAMP
    assert world.claim().metadata.annotations[key] == text(NOW + timedelta(minutes=5))
    assert [(str(e.ref), e.type, e.reason) for e in world.decide().events] == [
        ("node/node-a", "Warning", "TerminationGracePeriodExpiring")
    ]
    claim = world.claim()
    early = {**claim.metadata.annotations, key: text(NOW + timedelta(minutes=1))}
    world.put(replace(claim, metadata=replace(claim.metadata, annotations=early)))
    world.settle()
    assert world.claim().metadata.annotations[key] == early[key]


def test_the_deadline_is_told_on_the_claim_when_it_is_written_down() -> None:
    world = prepared(node_claim("a", terminationGracePeriod="5m"))
    world.settle()
    world.delete(kinds.ref(world.claim()))
    plan = world.decide()
    (event,) = plan.events
    assert (str(event.ref), event.reason) == ("nodeclaim/a", "TerminationGracePeriodExpiring")
    assert text(NOW + timedelta(minutes=5)) in event.message
    world.obey(plan)
    assert world.decide().events == ()


def test_without_a_grace_period_there_is_no_deadline() -> None:
    assert labels.TERMINATION_TIMESTAMP not in draining().claim().metadata.annotations


@pytest.mark.parametrize(
    ("grace", "pod_grace", "after", "given"),
    [
        ("300s", 300, 0, 300),
        ("300s", 60, 0, None),
        ("300s", 60, 239, None),
        ("300s", 60, 240, 60),
        ("300s", 400, 0, 300),
        ("0s", 30, 0, 1),
        ("300s", 60, 500, 1),
    ],
)
def test_when_a_pod_is_deleted_by_force(grace: str, pod_grace: int, after: int, given: int | None) -> None:
    protected = {"annotations": {labels.DO_NOT_DISRUPT: "true"}}
    world = draining(pod("web", "node-a", meta=protected, terminationGracePeriodSeconds=pod_grace), grace=grace)
    world.pass_time(after)
    plan = world.decide()
    assert forced(plan) == ([] if given is None else [("web", given)])
    assert ("Disrupted" in [e.reason for e in plan.events]) == (given is not None)


def test_a_pod_that_ends_too_late_is_cut_short_once() -> None:
    late = {"deletionTimestamp": text(NOW + timedelta(seconds=6000))}
    world = draining(pod("slow", "node-a", meta=late), grace="300s")
    plan = world.decide()
    assert forced(plan) == [("slow", 300)]
    world.obey(plan)
    assert forced(world.decide()) == []


def test_past_the_deadline_a_pod_is_not_cut_again_and_again() -> None:
    world = draining(pod("stuck", "node-a", meta={"finalizers": ["x/y"]}), grace="10s")
    world.pass_time(60)
    world.obey(world.decide())
    world.pass_time(1)
    assert forced(world.decide()) == []
    world.pass_time(62)
    world.settle()
    assert world.condition("Drained") == ("True", "Drained")


def test_forced_pods_of_later_waves_do_not_wait_for_their_wave() -> None:
    held = pod("held", "node-a", meta={"annotations": {labels.DO_NOT_DISRUPT: "true"}}, terminationGracePeriodSeconds=1)
    world = draining(
        held, pod("dns", "node-a", priorityClassName=CRITICAL, terminationGracePeriodSeconds=90), grace="60s"
    )
    assert forced(world.decide()) == [("dns", 60)]


def test_a_deadline_that_cannot_be_read_is_a_refusal_of_that_claim() -> None:
    world = draining()
    claim = world.claim()
    world.put(replace(claim, metadata=replace(claim.metadata, annotations={labels.TERMINATION_TIMESTAMP: "soon"})))
    plan = world.decide()
    assert [(r.subject, r.reason.code) for r in plan.refusals] == [("nodeclaim/a", "Malformed")]


# --- volumes ----------------------------------------------------------------------------------------------------
def attachment(name: str = "va", volume: str = "pv-1") -> VolumeAttachment:
    source = {"persistentVolumeName": volume}
    return decode(VolumeAttachment, {"metadata": {"name": name}, "spec": {"nodeName": "node-a", "source": source}})


def test_volumes_are_waited_for() -> None:
    world = draining()
    world.put(attachment())
    world.settle()
    world.pass_time(5)
    plan = world.settle()
    assert world.condition("VolumesDetached") == ("Unknown", "AwaitingVolumeDetachment")
    assert [(e.type, e.reason) for e in plan.events] == [("Normal", "AwaitingVolumeDetachment")]
    assert not world.done(TerminateInstance)
    world.objects.pop(kinds.ref(attachment()))
    world.settle()
    assert world.condition("VolumesDetached") == ("True", "VolumesDetached")
    assert len(world.done(TerminateInstance)) == 1


def test_after_the_deadline_volumes_are_not_waited_for() -> None:
    world = draining(grace="60s")
    world.put(attachment())
    world.settle()
    world.pass_time(5)
    assert world.settle().next_due == NOW + timedelta(seconds=15)
    world.pass_time(55)
    world.settle()
    assert world.condition("VolumesDetached") == ("False", "TerminationGracePeriodElapsed")
    assert len(world.done(TerminateInstance)) == 1


def test_volumes_of_pods_that_stay_are_not_waited_for() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "tmp", "ephemeral": {}}]
    world = draining(pod("log", "node-a", tolerations=TOLERANT, volumes=volumes))
    for name, volume in (("data", "pv-1"), ("log-tmp", "pv-2")):
        meta = {"name": name, "namespace": "default"}
        world.put(decode(PersistentVolumeClaim, {"metadata": meta, "spec": {"volumeName": volume}}))
        world.put(attachment(f"va-{name}", volume))
    world.settle()
    world.pass_time(5)
    world.settle()
    assert world.condition("VolumesDetached") == ("True", "VolumesDetached")


def test_the_volume_of_a_finished_pod_is_waited_for() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    world = draining(pod("job", "node-a", status={"phase": "Succeeded"}, volumes=volumes))
    meta = {"name": "data", "namespace": "default"}
    world.put(decode(PersistentVolumeClaim, {"metadata": meta, "spec": {"volumeName": "pv-1"}}))
    world.put(attachment())
    world.settle()
    world.pass_time(5)
    world.settle()
    assert world.condition("VolumesDetached") == ("Unknown", "AwaitingVolumeDetachment")


# --- other ends -------------------------------------------------------------------------------------------------
def test_an_instance_that_is_gone_with_its_kubelet_needs_no_drain() -> None:
    world = draining(pod("web", "node-a", meta={"annotations": {labels.DO_NOT_DISRUPT: "true"}}))
    world.instances.clear()
    world.pass_time(2)
    world.settle()
    assert world.get(kinds.NODE, "node-a") is not None
    world.set_ready("node-a", False)
    world.settle()
    assert world.get(kinds.NODE, "node-a") is None


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


def test_a_node_without_a_claim_whose_instance_is_gone_needs_no_drain() -> None:
    world = running(node_claim("a"))
    world.put(pod("held", "node-a", meta={"annotations": {labels.DO_NOT_DISRUPT: "true"}}))
    world.objects.pop(kinds.ref(world.claim()))
    world.delete(kinds.ref(world.node("node-a")))
    world.instances.clear()
    world.pass_time(10)
    world.settle()
    assert world.get(kinds.NODE, "node-a") is not None, "its kubelet is alive"
    world.set_ready("node-a", False)
    world.settle()
    assert world.get(kinds.NODE, "node-a") is None


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


def test_every_node_of_a_claim_goes_before_its_instance() -> None:
    world = running(node_claim("a"))
    first = world.node("node-a")
    world.put(replace(first, metadata=replace(first.metadata, name="node-b", uid="uid-node-b")))
    world.put(pod("web", "node-b"))
    world.delete(kinds.ref(first))
    world.delete(kinds.ref(world.claim()))
    assert evicted(world.decide()) == []
    world.settle()
    assert world.node("node-b").metadata.deleting
    world.pass_time(10)
    world.settle()
    assert not world.done(TerminateInstance)
    world.pass_time(20)
    for _ in range(3):
        world.settle()
        world.pass_time(21)
    assert world.get(kinds.NODE, "node-a") is None
    assert world.get(kinds.NODE, "node-b") is None
    assert world.get(kinds.NODE_CLAIM, "a") is None


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


def test_an_unregistered_node_is_left_alone() -> None:
    world = running(node_claim("b"))
    world.put(node_claim("a"))
    world.settle()
    world.join(world.claim("a"))
    world.delete(kinds.ref(world.claim("a")))
    world.settle()
    world.pass_time(21)
    world.settle()
    assert world.get(kinds.NODE_CLAIM, "a") is None
    assert not world.node("node-a").metadata.deleting


def test_conditions_follow_the_generation_of_a_claim_that_goes() -> None:
    world = draining(pod("web", "node-a"))
    world.settle()
    claim = world.claim()
    assert {c.observed_generation for c in claim.status.conditions} == {claim.metadata.generation}
    assert claim.is_true("Ready")


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
