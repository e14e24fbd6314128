"""A drain beside what the disruption catalogue says of it (155 to 167): why nodes go, their taint, their volumes."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from kerf.model import kinds
from kerf.model.kubernetes.storage import PersistentVolumeClaim
from kerf.model.plan import EvictPod
from kerf_api import labels
from kerf_api.v1.meta import Taint, decode
from tests.unit.lifecycle.drains import TOLERANT, attachment, draining, evicted
from tests.unit.lifecycle.world import NOW, node_claim, pod, running


# --- waves ------------------------------------------------------------------------------------------------------
def test_a_protected_pod_is_not_evicted_and_is_waited_for() -> None:
    world = draining(pod("job", "node-a", meta={"annotations": {labels.DO_NOT_DISRUPT: "2m"}}))
    plan = world.decide()
    assert evicted(plan) == []
    world.pass_time(119)
    assert evicted(world.decide()) == []
    assert world.decide().next_due == NOW + timedelta(minutes=2)
    world.pass_time(1)
    assert evicted(world.decide()) == ["job"]


def test_why_the_node_goes_is_the_reason_of_the_eviction() -> None:
    world = draining(pod("web", "node-a"))
    actions = [a for a in world.decide().actions if isinstance(a, EvictPod)]
    assert [(a.reason.code, a.uid) for a in actions] == [("Forceful Termination", "uid-web")]


def test_a_taint_of_the_same_key_with_another_effect_is_replaced() -> None:
    world = running(node_claim("a"))
    node = world.node("node-a")
    wrong = Taint(key=labels.DISRUPTED_TAINT, effect="NoExecute")
    world.put(replace(node, spec=replace(node.spec, taints=(wrong,))))
    world.delete(kinds.ref(world.claim()))
    world.settle()
    assert [str(t) for t in world.node("node-a").spec.taints] == ["karpenter.sh/disrupted:NoSchedule"]


# --- volumes ----------------------------------------------------------------------------------------------------
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
