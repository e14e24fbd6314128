"""A drain beside what the disruption catalogue says of it (155 to 167): why nodes go, their taint, their volumes."""

from __future__ import annotations

from dataclasses import replace as replace_fields
from datetime import timedelta

from msgspec.structs import replace

from kerf.model import kinds
from kerf.model.failures import Failure, key
from kerf.model.kubernetes.storage import PersistentVolumeClaim
from kerf.model.plan import EvictPod, PatchObject, Plan, TerminateInstance
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


# --- evictions that fail ----------------------------------------------------------------------------------------
def test_a_drain_whose_evictions_fail_says_so_and_goes_on_when_they_come_off() -> None:
    world = draining(pod("web", "node-a"))
    world.facts = {"failures": {key("EvictPod", "pod/default/web"): REFUSED}}
    world.obey(patches(world.decide()))
    told = world.claim().condition("Drained")
    assert told is not None
    assert (told.status, told.reason) == ("Unknown", "EvictionFailed")
    assert told.message == "pod/default/web: EvictPod is forbidden: no permission"
    assert evicted(world.decide()) == ["web"]
    world.facts = {}
    world.obey(patches(world.decide()))
    assert world.condition("Drained") == ("Unknown", "Draining")


def test_an_instance_whose_termination_fails_is_not_terminating() -> None:
    world = draining()
    instance = world.claim().assigned_instance
    refused = replace_fields(REFUSED, verb="TerminateInstance", object=f"instance/{instance}")
    world.facts = {"failures": {key("TerminateInstance", refused.object): refused}}
    for _ in range(8):
        world.pass_time(5)
        plan = world.decide()
        world.obey(patches(plan))
    told = world.claim().condition("InstanceTerminating")
    assert told is not None
    assert (told.status, told.reason) == ("Unknown", "TerminationFailed")
    assert told.message == "TerminateInstance is forbidden: no permission"
    assert any(isinstance(action, TerminateInstance) for action in plan.actions)
    world.facts = {}
    world.settle()
    assert world.condition("InstanceTerminating") == ("True", "InstanceTerminating")


REFUSED = Failure("EvictPod", "pod/default/web", "forbidden", "no permission", NOW, NOW)


def patches(plan: Plan) -> Plan:
    """Without what is refused."""
    return replace_fields(plan, actions=tuple(a for a in plan.actions if isinstance(a, PatchObject)))
