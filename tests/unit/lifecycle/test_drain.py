"""Who leaves a node when, and which volumes are waited for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from api import labels
from api.v1.meta import Taint, decode
from reconciler.model import kinds
from reconciler.model.plan import EvictPod, TerminateInstance
from reconciler.model.storage import PersistentVolumeClaim, VolumeAttachment
from tests.unit.lifecycle.drains import CRITICAL, DAEMON, MIRROR, TOLERANT, draining, evicted
from tests.unit.lifecycle.world import NOW, node_claim, pod, running, text


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
