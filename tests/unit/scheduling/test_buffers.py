"""CapacityBuffers: whose pods and how many, where they would go, and what real pods notice of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from kerf.decide import decide
from kerf.model import kinds
from kerf.model.cluster import Cluster
from kerf.model.memory import Memory
from kerf.model.plan import CreateNodeClaim, PatchObject, Plan
from kerf.model.settings import FeatureGates, Settings
from kerf.model.snapshot import Batch, Snapshot
from kerf.pods.buffer_pods import MOST_PODS, Resolution, resolutions, settled_pods, size, virtual_pods
from kerf.provisioning.provision import provision
from kerf_api import labels
from kerf_api.resources import Resources
from kerf_api.v1.capacitybuffer import CapacityBuffer
from kerf_api.v1.meta import decode
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

ON = FeatureGates(capacity_buffer=True)
ROOMY = (c.machine("roomy", 64, 256, pods=100),)
CLOSED = Batch(w.NOW - timedelta(seconds=2), w.NOW - timedelta(seconds=2))


def template(cpu: str = "1", name: str = "t", **spec: Any) -> Any:
    own = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec}
    return c.made("PodTemplate", name, "default", template={"metadata": {"labels": {"app": "web"}}, "spec": own})


def buffer(name: str = "b", *, namespace: str = "default", **spec: Any) -> Any:
    ref = {} if "scalableRef" in spec else {"podTemplateRef": {"name": "t"}}
    meta = {"generation": 3, "resourceVersion": "7"}
    return c.made("CapacityBuffer", name, namespace, metadata=meta, spec={**ref, **spec})


def world(*objects: Any, **facts: Any) -> Snapshot:
    return w.world(*objects, **{"gates": ON, "catalogue": ROOMY, "batch": CLOSED, **facts})


def look(*objects: Any, **facts: Any) -> Plan:
    return provision(world(*objects, **facts))


def resolved(*objects: Any, **facts: Any) -> Resolution:
    snapshot = world(*objects, **facts)
    return resolutions(Memory().turn(snapshot))["default/b"]


def created(plan: Plan) -> list[Any]:
    return [action.claim for action in plan.actions if isinstance(action, CreateNodeClaim)]


def statuses(plan: Plan) -> list[PatchObject]:
    return [a for a in plan.actions if isinstance(a, PatchObject) and a.ref.kind == "CapacityBuffer"]


# --- whose pods ---------------------------------------------------------------------------------------------------
def test_keys_of_labels_are_part_of_the_selectors_as_the_api_server_writes_them() -> None:
    """`kubectl explain` of these fields: key in (value), and key notin (value); a key that the pod lacks is ignored."""
    term = {
        "topologyKey": labels.HOSTNAME,
        "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
    }
    keys = {"matchLabelKeys": ["app", "absent"], "mismatchLabelKeys": ["app"]}
    preferred = {"weight": 1, "podAffinityTerm": {**term, "matchLabelKeys": ["app"]}}
    affinity = {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**term, **keys}, term]},
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]},
    }
    (pod,) = resolved(template(affinity=affinity), buffer(replicas=1)).pods
    assert pod.spec.affinity is not None
    near, apart = pod.spec.affinity.pod_affinity, pod.spec.affinity.pod_anti_affinity
    assert near is not None
    assert apart is not None
    found = [*near.required, *(row.pod_affinity_term for row in apart.preferred)]
    selectors = [one.label_selector for one in found if one.label_selector is not None]
    assert [[(row.operator, row.values) for row in one.match_expressions] for one in selectors] == [
        [("Exists", ()), ("In", ("web",)), ("NotIn", ("web",))],
        [("Exists", ())],
        [("Exists", ()), ("In", ("web",))],
    ]


# --- how many -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("spec", "replicas", "expected"),
    [
        ({}, None, 0),
        ({}, 5, 0),
        ({"replicas": 0, "limits": {"cpu": "9"}}, None, 0),
        ({"percentage": 50}, None, 0),
        ({"percentage": 0}, 10, 0),
        ({"percentage": 1}, 1000, 10),
        ({"percentage": 1}, 1001, 11),
        ({"percentage": 250}, 2, 5),
        ({"percentage": 50, "limits": {"cpu": "9"}}, 0, 0),
        ({"limits": {"cpu": "2999m", "memory": "10Gi"}}, None, 2),
        ({"limits": {"cpu": "9", "memory": "1Gi"}}, None, 4),
        ({"limits": {"pods": "3"}}, None, 3),
        ({"limits": {"cpu": "0"}}, None, 0),
        ({"limits": {"cpu": "-1"}, "replicas": 4}, None, 0),
        ({"limits": {"example.com/other": "1"}}, None, 0),
    ],
)
def test_sizes(spec: dict[str, Any], replicas: int | None, expected: int) -> None:
    requests = Resources({"cpu": 1000, "memory": 256 << 20, "pods": 1})
    found = decode(CapacityBuffer, {"metadata": {"name": "b"}, "spec": spec})
    assert size(found, requests, replicas) == expected


@pytest.mark.parametrize(
    ("spec", "reason", "words"),
    [
        ({"replicas": 2, "limits": {"cpu": "lots"}}, "ResolutionFailed", "lots"),
        ({"replicas": MOST_PODS + 1}, "ResolutionFailed", f"{MOST_PODS} at most"),
        ({"scalableRef": {"kind": "CronJob", "name": "d"}}, "ResolutionFailed", "CronJob"),
        (
            {"scalableRef": {"kind": "Deployment", "name": "d", "apiGroup": "x.io"}},
            "ResolutionFailed",
            "Deployment.x.io",
        ),
        ({"scalableRef": {"kind": "StatefulSet", "name": "d"}}, "ScalableRefNotFound", "StatefulSet default/d"),
        ({"podTemplateRef": {"name": "other"}, "replicas": 1}, "PodTemplateNotFound", "PodTemplate default/other"),
    ],
)
def test_a_buffer_that_cannot_be_resolved_says_why(spec: dict[str, Any], reason: str, words: str) -> None:
    found = resolved(template(), buffer(**spec))
    assert (found.ready, found.reason, found.pods) == (False, reason, ())
    assert words in found.message


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_each_kind_of_workload_will_do(kind: str) -> None:
    pod = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c"}]}}
    workload = c.made(kind, "d", "default", spec={"replicas": 4, "template": pod})
    ref = {"kind": kind, "name": "d"}
    assert len(resolved(workload, buffer(percentage=50, scalableRef=ref)).pods) == 2
    elsewhere = c.made(kind, "d", "other", spec={"replicas": 4, "template": pod})
    assert resolved(elsewhere, buffer(percentage=50, scalableRef=ref)).reason == "ScalableRefNotFound"


def test_a_template_that_can_be_read_only_in_part_makes_no_pods() -> None:
    torn = template()
    torn = msgspec.structs.replace(torn, metadata=msgspec.structs.replace(torn.metadata, unreadable="nonsense"))
    assert resolved(torn, buffer(replicas=1)).reason == "ResolutionFailed"
    odd = buffer(replicas=1)
    odd = msgspec.structs.replace(odd, metadata=msgspec.structs.replace(odd.metadata, unreadable="nonsense"))
    plan = look(w.pool(), template(), odd)
    assert plan.actions == ()
    assert [(r.subject, r.reason.code) for r in plan.refusals] == [("capacitybuffer/default/b", "Malformed")]


def test_without_the_gate_there_are_no_buffers() -> None:
    plan = decide(world(template(), buffer(replicas=3), gates=FeatureGates()))
    assert (plan.actions, dict(plan.buffer_pods)) == ((), {})
    assert [refusal.subject for refusal in plan.refusals if "buffer" in refusal.subject] == []


# --- its pods -----------------------------------------------------------------------------------------------------
def test_a_virtual_pod_is_like_those_of_the_template_and_nowhere() -> None:
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "x"}},
        {"name": "b", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "s"}}}},
        {"name": "c"},
    ]
    given = template(
        volumes=volumes, nodeName="n", priority=7, nodeSelector={"k": "v"}, schedulingGates=[{"name": "g"}]
    )
    one, two = resolved(given, buffer(replicas=2)).pods
    assert [pod.metadata.name for pod in (one, two)] == ["capacity-buffer-b-1", "capacity-buffer-b-2"]
    assert one.metadata.labels == {"app": "web"}
    assert one.metadata.annotations == {
        labels.BUFFER_FAKE_POD: "true",
        labels.BUFFER_NAME: "b",
        labels.BUFFER_NAMESPACE: "default",
    }
    assert (one.spec.node_name, one.spec.priority, one.spec.scheduling_gates) == ("", -(2**31), ())
    assert one.spec.node_selector == {"k": "v"}
    assert [volume.name for volume in one.spec.volumes] == ["c"]
    assert one.status.phase == "Pending"


def test_a_real_pod_of_that_name_stands_in_its_place() -> None:
    snapshot = world(w.pool(), template(), buffer(replicas=2), w.pod("capacity-buffer-b-1"))
    assert [pod.key for pod in virtual_pods(Memory().turn(snapshot))] == ["default/capacity-buffer-b-2"]


def test_what_is_remembered_follows_buffers_and_what_they_refer_to() -> None:
    cluster, memory = Cluster(), Memory()

    def found() -> dict[str, tuple[str, int]]:
        snapshot = cluster.snapshot(now=w.NOW, settings=Settings("test", gates=ON))
        return {key: (r.reason, len(r.pods)) for key, r in resolutions(memory.turn(snapshot)).items()}

    cluster.apply(kinds.CAPACITY_BUFFER, buffer(replicas=2))
    assert found() == {"default/b": ("PodTemplateNotFound", 0)}
    cluster.apply(kinds.POD_TEMPLATE, template())
    assert found() == {"default/b": ("Resolved", 2)}
    cluster.apply(kinds.CAPACITY_BUFFER, buffer(replicas=3))
    assert found() == {"default/b": ("Resolved", 3)}
    cluster.remove(kinds.POD_TEMPLATE, "default", "t")
    assert found() == {"default/b": ("PodTemplateNotFound", 0)}
    cluster.remove(kinds.CAPACITY_BUFFER, "default", "b")
    assert found() == {}


# --- a pass -------------------------------------------------------------------------------------------------------
def test_nobody_hears_of_virtual_pods_and_their_node_is_not_bought_twice() -> None:
    plan = look(w.pool(), template(), buffer(replicas=3))
    (claim,) = created(plan)
    assert claim.spec.resources.requests["pods"] == "3"
    assert (plan.nominations, plan.events, plan.refusals) == ((), (), ())
    assert plan.actions[0].reason.text == "for expected pods and reserves capacity for 3 pods of CapacityBuffers"
    again = look(w.pool(), template(), buffer(replicas=3), claim)
    assert created(again) == []
    assert dict(again.buffer_pods) == {claim.name: 3}
    more = look(w.pool(), template(), buffer(replicas=70), claim)
    assert [made.spec.resources.requests["pods"] for made in created(more)] == ["7"]


def test_real_pods_take_what_room_there_is_and_virtual_ones_make_way() -> None:
    """The node holds two of them; the real pod is the smaller one, and would come after the others by size."""
    node = w.node("n", cpu="2", memory="64Gi")
    before = look(w.pool(), template(), buffer(replicas=2), node)
    assert (created(before), dict(before.buffer_pods)) == ([], {"node/n": 2})
    after = look(w.pool(), template(), buffer(replicas=2), node, w.pod("p", "500m"))
    assert [n.target for n in after.nominations] == ["node/n"]
    (made,) = created(after)
    assert dict(after.buffer_pods) == {"node/n": 1, made.name: 1}
    assert made.spec.resources.requests["pods"] == "1"


def test_what_a_pool_may_still_make_is_for_real_pods_first() -> None:
    pool = w.pool(limits={"nodes": "1"})
    large = w.pod("large", "60")
    plan = look(pool, template("10"), buffer(replicas=3), large)
    assert [claim.spec.resources.requests["pods"] for claim in created(plan)] == ["1"]
    assert {n.pod_uid for n in plan.nominations} == {large.metadata.uid}
    assert [(r.subject, r.reason.code) for r in plan.refusals] == [("capacitybuffer/default/b", "Incompatible")]
    crowd = w.replicas(2, "apart", "60", labels={"app": "x"})
    crowded = look(pool, template("60"), buffer(replicas=3), crowd)
    assert sum(key.startswith("uid-default-apart") for key in (n.pod_uid for n in crowded.nominations)) == 1


def test_a_pod_without_a_place_does_not_take_the_room_of_virtual_ones() -> None:
    plan = look(w.pool(), template(), buffer(replicas=3), w.pod("huge", "1000"))
    assert [claim.spec.resources.requests["pods"] for claim in created(plan)] == ["3"]


# --- the status ---------------------------------------------------------------------------------------------------
def stored(plan: Plan, before: Any) -> Any:
    """The buffer as the API server has it after the plan."""
    (action,) = statuses(plan)
    assert (action.subresource, action.resource_version) == ("status", before.metadata.resource_version)
    status = {key: value for key, value in action.patch["status"].items() if value is not None}
    return decode(CapacityBuffer, {**msgspec.to_builtins(before), "status": status})


def test_the_status_says_what_was_found_and_is_written_once() -> None:
    given = buffer(replicas=2)
    objects = [w.pool(), c.made("PodTemplate", "t", "default", metadata={"generation": 5}), w.node("n", cpu="64")]
    after = stored(look(*objects, given), given)
    assert (after.status.replicas, after.status.pod_template_generation) == (2, 5)
    assert after.status.pod_template_ref == given.spec.pod_template_ref
    assert after.status.provisioning_strategy == "buffer.x-k8s.io/active-capacity"
    assert {(x.type, x.status, x.reason, x.observed_generation) for x in after.status.conditions} == {
        ("ReadyForProvisioning", "True", "Resolved", 3),
        ("Provisioning", "True", "FitsExistingCapacity", 3),
    }
    later = w.NOW + timedelta(minutes=5)
    assert statuses(look(*objects, after, now=later)) == []
    assert statuses(look(*objects, after, batch=None)) == []
    lost = stored(look(after, batch=None, now=later), after)
    assert (lost.status.replicas, lost.status.pod_template_ref) == (0, None)
    assert [(x.type, x.reason) for x in lost.status.conditions] == [
        ("ReadyForProvisioning", "PodTemplateNotFound"),
        ("Provisioning", "NotReadyForProvisioning"),
    ]


def test_room_on_a_machine_that_is_not_up_is_none_yet() -> None:
    given = buffer(replicas=2)
    (claim,) = created(look(w.pool(), template(), given))
    (action,) = statuses(look(w.pool(), template(), given, claim))
    assert {x["reason"] for x in action.patch["status"]["conditions"]} == {"Resolved", "RequiresNewCapacity"}


def test_whose_pods_had_room() -> None:
    given = buffer(replicas=2)
    after = stored(look(template(), given, w.node("n", cpu="64")), given)
    other = c.made("CapacityBuffer", "c", "default", spec={"podTemplateRef": {"name": "t"}, "replicas": 1})
    snapshot = world(template(), after, other)
    assert settled_pods(Memory().turn(snapshot)) == {"default/capacity-buffer-b-1", "default/capacity-buffer-b-2"}
