"""Nodes that end: who leaves them, and when (155 to 162 and 166 of the disruption catalogue)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model import kinds
from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.storage import PersistentVolumeClaim
from kerf.model.plan import EvictPod, Plan, TerminateInstance
from kerf.telemetry.telemetry import Telemetry
from kerf_api import labels
from kerf_api.v1.meta import decode
from tests.unit.lifecycle.drains import CRITICAL, DAEMON, MIRROR, TOLERANT, attachment, draining, evicted
from tests.unit.lifecycle.world import NOW, World, node_claim, pod, running, text
from tests.unit.runtime.test_executor import WHY, Setting
from tests.unit.telemetry.test_telemetry import Written

UNSCHEDULABLE = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
EQUAL = [{"key": labels.DISRUPTED_TAINT, "operator": "Equal"}]
PROTECTED = {"annotations": {labels.DO_NOT_DISRUPT: "true"}}


def goes(world: World) -> None:
    for _ in range(12):
        world.settle()
        world.pass_time(11)


def waits(*pods: Pod) -> tuple[list[str], bool]:
    """Who is evicted of these, and whether the node waits for them."""
    plan = draining(*pods).decide()
    return evicted(plan), any(event.reason == "FailedDraining" for event in plan.events)


def node_of(world: World) -> Any:
    return world.get(kinds.NODE, "node-a")


# --- 155 and 156 ------------------------------------------------------------------------------------------------
def test_155_a_node_that_a_user_deletes_is_removed_with_its_claim() -> None:
    world = running(*map(node_claim, "abcd"))
    world.put(pod("web", "node-a"))
    for name in ("node-a", "node-b"):
        world.delete(kinds.ref(world.node(name)))
    world.settle()
    assert [world.claim(name).metadata.deleting for name in "ab"] == [True, True]
    assert [action.ref.name for action in world.done(EvictPod)] == ["web"]
    goes(world)
    left = sorted(ref.name for ref in world.objects if ref.kind in ("Node", "NodeClaim"))
    assert left == ["c", "d", "node-c", "node-d"]
    assert len(world.instances) == 2


@pytest.mark.parametrize("claims", [0, 2])
def test_155_one_without_a_claim_or_with_two_is_drained_and_goes_too(claims: int) -> None:
    """Its instance is left to others: to the collector, or to the two."""
    world = running(node_claim("a"))
    known = world.claim()
    world.put(pod("web", "node-a"))
    if claims:
        world.put(replace(known, metadata=replace(known.metadata, name="twin", uid="uid-twin")))
    else:
        world.objects.pop(kinds.ref(known))
    world.add_instance(known.instance_id, {}, launched=world.now + timedelta(hours=1))
    world.delete(kinds.ref(world.node("node-a")))
    goes(world)
    assert node_of(world) is None
    assert [action.ref.name for action in world.done(EvictPod)] == ["web"]
    assert not world.done(TerminateInstance)
    assert [world.get(kinds.NODE_CLAIM, name) is not None for name in ("a", "twin")] == [claims > 0] * 2


def test_155_an_unmanaged_node_is_left_alone() -> None:
    world = running(node_claim("a"))
    node = world.node("node-a")
    meta = replace(node.metadata, name="other", uid="u", labels={}, finalizers=("x/y",), owner_references=())
    world.put(replace(node, metadata=meta, spec=replace(node.spec, provider_id="aws:///z/i-9")))
    world.delete(kinds.ref(world.node("other")))
    assert world.decide() == Plan()


def test_156_a_node_that_is_removed_leaves_its_load_balancers() -> None:
    world = draining(pod("web", "node-a"))
    assert world.node("node-a").metadata.labels.get(labels.EXCLUDE_BALANCERS) == "karpenter"
    assert [str(taint) for taint in world.node("node-a").spec.taints] == ["karpenter.sh/disrupted:NoSchedule"]


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [(TOLERANT, ([], False)), (EQUAL, ([], False)), (UNSCHEDULABLE, (["web"], True)), ([], (["web"], True))],
    ids=["Exists", "Equal", "unschedulable", "none"],
)
def test_156_who_tolerates_the_taint_is_not_evicted(tolerations: Any, expected: tuple[list[str], bool]) -> None:
    assert waits(pod("web", "node-a", tolerations=tolerations)) == expected


# --- 157 to 161 -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, (["web"], True)),
        ({"meta": DAEMON}, (["web"], True)),
        ({"status": {"phase": "Succeeded"}}, ([], False)),
        ({"status": {"phase": "Failed"}}, ([], False)),
        ({"meta": MIRROR}, ([], False)),
    ],
    ids=["of nobody", "daemon", "succeeded", "failed", "static"],
)
def test_157_who_is_evicted_and_who_is_not_waited_for(fields: Any, expected: tuple[list[str], bool]) -> None:
    assert waits(pod("web", "node-a", **fields)) == expected


def test_158_a_pod_that_a_budget_keeps_is_asked_again_and_the_node_waits() -> None:
    world = draining(pod("web", "node-a"), pod("api", "node-a"))
    until = world.now + timedelta(seconds=3)
    world.facts["not_before"] = {"eviction/default/web": until}
    plan = world.decide()
    assert (evicted(plan), plan.next_due) == (["api"], until)
    world.pass_time(3)
    assert evicted(world.decide()) == ["api", "web"]
    world.facts.clear()
    for name in ("web", "api"):
        world.objects.pop(kinds.ref(pod(name, "node-a")))
    goes(world)
    assert node_of(world) is None


def test_159_a_wave_begins_when_the_one_before_is_gone() -> None:
    """Not when it is merely on its way."""
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


@pytest.mark.parametrize("claimed", [True, False])
def test_160_a_node_without_a_machine_is_not_drained_unless_its_kubelet_lives(claimed: bool) -> None:
    world = running(node_claim("a"))
    world.put(pod("held", "node-a", meta=PROTECTED))
    world.pass_time(60)  # until then EC2 may not list an instance that runs
    if not claimed:
        world.objects.pop(kinds.ref(world.claim()))
    world.delete(kinds.ref(world.node("node-a")))
    world.settle()
    world.instances.clear()
    world.pass_time(10)
    world.settle()
    assert node_of(world) is not None, "its kubelet is alive"
    world.set_ready("node-a", False)
    world.settle()
    assert node_of(world) is None


@pytest.mark.parametrize(("seconds", "expected"), [(59, True), (60, True), (61, False)])
def test_161_a_pod_that_has_been_ending_for_too_long_is_not_waited_for(seconds: int, expected: bool) -> None:
    ending = text(NOW - timedelta(seconds=seconds))
    assert waits(pod("stuck", "node-a", meta={"deletionTimestamp": ending})) == ([], expected)


# --- 162 --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("there", "outcome"), [(True, "conflict"), (False, "gone")])
def test_162_a_pod_that_came_back_under_its_name_is_not_evicted_for_the_old_one(there: bool, outcome: str) -> None:
    """And nobody hears of it."""
    setting, written = Setting(), Written()
    if there:
        setting.pod("web", "n")
    action = EvictPod(ref=kinds.Ref("Pod", "default", "web"), uid="the old one", node_name="n", reason=WHY)
    (done,) = setting.do(action)
    assert done.outcome == outcome
    telemetry = Telemetry.quiet(written, setting.world.clock)  # type: ignore[arg-type]
    telemetry.done(action, done.outcome, done.value, done.error, None)
    assert written.events == []
    left = setting.world.kube.list(kinds.POD).items
    assert [one.metadata.deleting for one in left] == [False] * there


# --- 166 --------------------------------------------------------------------------------------------------------
def test_166_an_empty_node_settles_for_five_seconds() -> None:
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


def test_166_volumes_are_waited_for() -> None:
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


@pytest.mark.parametrize(("tolerations", "expected"), [(TOLERANT, "VolumesDetached"), ([], "AwaitingVolumeDetachment")])
def test_166_those_of_pods_that_stay_are_not(tolerations: Any, expected: str) -> None:
    """Whoever tolerates the taint keeps its volumes; of a finished pod they are waited for."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    over = {} if tolerations else {"status": {"phase": "Succeeded"}}
    world = draining(pod("log", "node-a", tolerations=tolerations, volumes=volumes, **over))
    meta = {"name": "data", "namespace": "default"}
    world.put(decode(PersistentVolumeClaim, {"metadata": meta, "spec": {"volumeName": "pv-1"}}))
    world.put(attachment("va", "pv-1"))
    world.settle()
    world.pass_time(5)
    world.settle()
    found = world.claim().condition("VolumesDetached")
    assert found is not None
    assert found.reason == expected


def test_166_after_the_deadline_nothing_is_waited_for() -> None:
    world = draining(grace="60s")
    world.put(attachment())
    world.settle()
    world.pass_time(5)
    assert world.settle().next_due == NOW + timedelta(seconds=15)
    world.pass_time(55)
    world.settle()
    assert world.condition("VolumesDetached") == ("False", "TerminationGracePeriodElapsed")
    assert len(world.done(TerminateInstance)) == 1
