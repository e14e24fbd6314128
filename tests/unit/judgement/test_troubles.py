"""Each kind of trouble: when it is one, how it is worded, and what is none."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from kerf.judgement import supply, troubles
from kerf.judgement.troubles import Trouble, Unplaced
from kerf.model.aws.cloud import FleetError
from kerf.model.failures import Failure, key
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import Reason, Refusal
from kerf.model.snapshot import LaunchFailure
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode, encode
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool
from tests.unit.disruption.worlds import NOW, stamp

MINUTE = timedelta(minutes=1)
FORBIDDEN = 'pods "a" is forbidden: cannot create resource "pods/eviction"'


def failure(name: str, outcome: str = "forbidden", verb: str = "EvictPod", ago: float = 0, times: int = 1) -> Failure:
    return Failure(verb, name, outcome, FORBIDDEN, NOW - ago * MINUTE, NOW, times)


def test_the_error_is_that_of_the_object_that_is_named() -> None:
    rows = [
        Failure("EvictPod", f"pod/d/{name}", "forbidden", f'pods "{name}" is forbidden', since, NOW + latest, 1)
        for name, since, latest in (("a", NOW - 2 * MINUTE, -MINUTE), ("b", NOW - MINUTE, 0 * MINUTE))
    ]
    (found,) = troubles.failing(rows, NOW)
    assert (found.object, found.times) == ("pod/d/a", 2)
    assert found.text == 'EvictPod is forbidden: pods "a" is forbidden (2 objects: pod/d/a, pod/d/b)'


def condition(type_: str, status: str, reason: str = "", message: str = "", ago: float = 60) -> dict[str, Any]:
    since = stamp(NOW - ago * MINUTE)
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


def node_class(*conditions: Mapping[str, Any], **meta: Any) -> EC2NodeClass:
    manifest = {"metadata": {"name": "c", "uid": "u", **meta}, "spec": {}, "status": {"conditions": conditions}}
    return decode(EC2NodeClass, manifest)


def node_pool(*conditions: Mapping[str, Any], kind: str = "EC2NodeClass") -> NodePool:
    ref = {"group": labels.AWS_GROUP, "kind": kind, "name": "c"}
    spec = {"template": {"spec": {"nodeClassRef": ref, "requirements": []}}}
    return decode(NodePool, {"metadata": {"name": "p", "uid": "u"}, "spec": spec, "status": {"conditions": conditions}})


def node_claim(*conditions: Mapping[str, Any], **meta: Any) -> NodeClaim:
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "c"}
    spec = {"nodeClassRef": ref, "requirements": []}
    header = {"name": "n", "uid": "u", **meta}
    return decode(NodeClaim, {"metadata": header, "spec": spec, "status": {"conditions": conditions}})


# --- actions ----------------------------------------------------------------------------------------------------
def test_a_forbidden_action_is_one_trouble_for_all_its_objects_at_once() -> None:
    rows = [failure("pod/d/b", times=6, ago=1), failure("pod/d/a", times=8, ago=2)]
    (found,) = troubles.failing(rows, NOW)
    assert (found.code, found.object, found.times, found.since) == ("ActionFails", "pod/d/a", 14, NOW - 2 * MINUTE)
    assert found.text == f"EvictPod is forbidden: {FORBIDDEN} (2 objects: pod/d/a, pod/d/b)"
    assert "ClusterRole" in found.fix


def test_what_aws_forbids_is_a_matter_of_the_iam_role() -> None:
    (found,) = troubles.failing([failure("instance/i-1", verb="TerminateInstance")], NOW)
    assert "IAM role" in found.fix


@pytest.mark.parametrize(("ago", "count"), [(1, 0), (2, 1)])
def test_an_action_that_may_come_off_by_itself_is_a_trouble_after_two_minutes(ago: float, count: int) -> None:
    rows = [failure("nodepool/p", "throttled", "LaunchInstances", ago)]
    assert len(list(troubles.failing(rows, NOW))) == count


def test_an_action_whose_failure_a_condition_of_the_class_reports_is_no_second_trouble() -> None:
    failed = failure("ec2nodeclass/c", "failed", "EnsureInstanceProfile")
    broken = node_class(condition("InstanceProfileReady", "False", "RoleNotFound", "no role"))
    assert not list(troubles.failing([failed], NOW, [broken]))
    assert len(list(troubles.failing([failed], NOW, [node_class(condition("InstanceProfileReady", "Unknown"))]))) == 1


# --- launches ---------------------------------------------------------------------------------------------------
def refusal(code: str, ago: float = 1, message: str = "no more", pool: str = "") -> LaunchFailure:
    return LaunchFailure((FleetError(code, message),), NOW - ago * MINUTE, pool=pool)


def test_launches_that_the_account_has_no_quota_for_are_one_trouble() -> None:
    rows = [refusal("VcpuLimitExceeded", ago, f"limit of {ago}") for ago in (3, 1)]
    (found,) = troubles.refused(rows, (), 2, NOW)
    assert (found.code, found.object, found.since, found.times) == ("LaunchRefused", "aws/ec2", NOW - 3 * MINUTE, 2)
    assert found.text == "refuses launches: The account's vCPU quota is used up: VcpuLimitExceeded: limit of 1"
    assert "Service Quotas" in found.fix


@pytest.mark.parametrize(
    ("code", "ago", "waiting"),
    [("InsufficientInstanceCapacity", 1, 2), ("VcpuLimitExceeded", 5, 2), ("VcpuLimitExceeded", 1, 0)],
    ids=["another moment helps", "long ago", "no pod waits"],
)
def test_a_launch_that_needs_no_person_is_no_trouble(code: str, ago: float, waiting: int) -> None:
    assert not list(troubles.refused([refusal(code, ago)], (), waiting, NOW))


@pytest.mark.parametrize(("launched", "named"), [(2, ["p", "q"]), (1, ["q"]), (0, ["q"])])
def test_a_node_that_was_launched_since_shows_another_way(launched: float, named: list[str]) -> None:
    rows = [refusal("VcpuLimitExceeded", 1, pool, pool) for pool in ("p", "q")]
    there = node_claim(condition("Launched", "True", ago=launched), labels={labels.NODEPOOL: "p"})
    (found,) = troubles.refused(rows, [there], 2, NOW)
    assert found.times == len(named)
    assert found.text.endswith(f": {named[0]}")


SOLD_OUT = "InsufficientInstanceCapacity"


@pytest.mark.parametrize(
    ("minutes", "launches", "coming", "words"),
    [
        (
            1,
            [refusal(SOLD_OUT)],
            False,
            "aws/ec2: has no capacity for 1 pod (d/a): InsufficientInstanceCapacity: no more",
        ),
        (0.9, [refusal(SOLD_OUT)], False, ""),
        (1, [refusal(SOLD_OUT)], True, ""),
        (1, [refusal(SOLD_OUT, 5)], False, ""),
        (1, [refusal("VcpuLimitExceeded")], False, ""),
        (9.9, [], False, ""),
        (10, [], True, "pod/d/a: has no node yet, though a NodePool accepts it"),
        (10, [refusal(SOLD_OUT)], True, "pod/d/a: has no node yet, though a NodePool accepts it"),
    ],
    ids=["sold out", "young", "a node comes", "long ago", "a quota", "not yet late", "late", "late, and sold out"],
)
def test_a_pod_that_waits_without_a_refusal(
    minutes: float, launches: list[LaunchFailure], coming: bool, words: str
) -> None:
    found = list(supply.unserved({"d/a": NOW - minutes * MINUTE}, launches, NOW, coming=coming))
    assert [f"{one.object}: {one.text}" for one in found] == ([words] if words else [])


def test_pods_that_are_late_are_named_the_oldest_first() -> None:
    waiting = {f"d/p-{n}": NOW - (20 - n) * MINUTE for n in range(6)} | {"d/young": NOW}
    (found,) = supply.unserved(waiting, [], NOW, coming=True)
    assert (found.object, found.times, found.since) == ("pod/d/p-0", 6, NOW - 20 * MINUTE)
    assert found.text.endswith("accepts it (and 5 more: d/p-1, d/p-2, d/p-3 and 2 more)")


def test_a_static_pool_lacks_nodes_while_there_is_no_capacity() -> None:
    (found,) = supply.incomplete({"p": 2}, [refusal(SOLD_OUT)], NOW)
    words = f"lacks 2 nodes of its replicas: EC2 has no capacity: {SOLD_OUT}: no more"
    assert (found.code, found.object, found.text) == ("LaunchRefused", "nodepool/p", words)
    assert not list(supply.incomplete({"p": 2}, [refusal(SOLD_OUT, 5)], NOW))
    assert not list(supply.incomplete({}, [refusal(SOLD_OUT)], NOW))


def test_a_static_pool_without_its_feature_gate_is_a_trouble() -> None:
    static = decode(NodePool, {**encode(node_pool()), "spec": {**encode(node_pool())["spec"], "replicas": 2}})
    (found,) = supply.without_gate([node_pool(), static])
    assert (found.object, "StaticCapacity" in found.text) == ("nodepool/p", True)


# --- objects ----------------------------------------------------------------------------------------------------
def test_an_object_that_is_left_out_is_a_trouble_once() -> None:
    rows = [
        Refusal("node/b", Reason("Malformed", "cpu: x is no quantity")),
        Refusal("node/b", Reason("Malformed", "cpu: x is no quantity")),
        Refusal("node/a", Reason("InternalError", "KeyError: 1")),
        Refusal("node/c", Reason("StaleSource", "old")),
    ]
    bug, object_ = troubles.refused_objects(rows)
    assert (bug.object, bug.text) == ("node/a", "is ignored: InternalError: KeyError: 1")
    assert (object_.code, object_.text) == ("ObjectRefused", "is ignored: Malformed: cpu: x is no quantity")
    assert "bug in Kerf" in bug.fix


# --- pods -------------------------------------------------------------------------------------------------------
def test_pods_without_a_place_are_told_by_cause_the_cause_of_most_first() -> None:
    rows = [
        Unplaced("d/x", NOW - 3 * MINUTE, Reason("NoPool", "no NodePool tolerates it")),
        *(Unplaced(f"d/p-{n}", NOW - 2 * MINUTE, Reason("TooLarge", "no type is so large")) for n in range(5)),
    ]
    first, second = troubles.unschedulable(rows, NOW)
    assert (first.object, first.times) == ("pod/d/p-0", 5)
    assert first.text == "has no place (and 4 more: d/p-1, d/p-2, d/p-3 and 1 more): no type is so large"
    assert "kerf why pod d/p-0" in first.fix
    assert (second.object, second.text) == ("pod/d/x", "has no place: no NodePool tolerates it")


@pytest.mark.parametrize(
    "row",
    [
        Unplaced("d/young", NOW - 59 * timedelta(seconds=1), Reason("TooLarge", "no type is so large")),
        Unplaced("d/out", NOW - 9 * MINUTE, Reason("OptedOut", "")),
        Unplaced("d/later", NOW - 9 * MINUTE, Reason("WorkBudget", "the work of this pass is used up")),
    ],
)
def test_pods_that_are_young_or_put_off_or_out_are_no_trouble(row: Unplaced) -> None:
    assert not list(troubles.unschedulable([row], NOW))


# --- schedulers ---------------------------------------------------------------------------------------------------
def unjudged(name: str, ago: float, scheduler: str = "default-scheduler", **more: Any) -> Pod:
    meta = {"name": name, "namespace": "d", "uid": name, "creationTimestamp": stamp(NOW - ago * MINUTE)}
    spec = {"schedulerName": scheduler, **more.pop("spec", {})}
    return decode(Pod, {"metadata": {**meta, **more.pop("meta", {})}, "spec": spec, "status": more})


def test_pods_that_no_scheduler_answers_are_one_trouble_for_each_scheduler() -> None:
    rows = [unjudged("b", 3), unjudged("a", 5), unjudged("c", 9, "mine")]
    default, mine = troubles.unscheduled(rows, NOW)
    assert (default.code, default.object, default.times) == ("NotScheduled", "scheduler/default-scheduler", 2)
    assert (default.since, default.fix) == (NOW - 5 * MINUTE, "see that the scheduler runs")
    assert default.text == "has neither bound nor refused 2 pods (d/a, d/b)"
    assert (mine.object, mine.text) == ("scheduler/mine", "has neither bound nor refused 1 pod (d/c)")


@pytest.mark.parametrize(
    "pod",
    [
        unjudged("young", 1.9),
        unjudged("bound", 9, spec={"nodeName": "n"}),
        unjudged("gated", 9, spec={"schedulingGates": [{"name": "g"}]}),
        unjudged("refused", 9, conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]),
        unjudged("expected", 9, nominatedNodeName="n"),
        unjudged("done", 9, phase="Succeeded"),
        unjudged("going", 9, meta={"deletionTimestamp": stamp(NOW)}),
    ],
    ids=lambda pod: str(pod.metadata.name),
)
def test_other_pods_wait_for_no_scheduler(pod: Pod) -> None:
    assert not list(troubles.unscheduled([pod], NOW))


def test_a_queue_that_is_gone_has_a_fix_of_its_own() -> None:
    rows = [
        Failure("Read", "aws/queue", "unavailable", "NonExistentQueue", NOW - 3 * MINUTE, NOW, 9),
        Failure("Read", "aws/spot-prices", "unavailable", "timed out", NOW - 1 * MINUTE, NOW, 2),
        Failure("Read", "aws/instances", "forbidden", "AccessDenied", NOW, NOW, 1),
    ]
    queue, instances = troubles.failing(rows, NOW)
    assert (queue.object, queue.text) == ("aws/queue", "Read fails: NonExistentQueue")
    assert queue.fix.startswith("create the queue, or correct settings.interruptionQueue")
    assert instances.text == "Read is forbidden: AccessDenied"
    assert "IAM role" in instances.fix


# --- conditions -------------------------------------------------------------------------------------------------
def test_a_class_that_is_not_ready_is_told_with_the_first_condition_that_is_false() -> None:
    broken = node_class(
        condition("SubnetsReady", "Unknown", "AwaitingReconciliation"),
        condition("InstanceProfileReady", "False", "RoleNotFound", "iam:GetRole: NoSuchEntity"),
    )
    (found,) = troubles.not_ready([], [broken], NOW)
    assert found.object == "ec2nodeclass/c"
    assert found.text == "is not Ready: InstanceProfileReady is False: RoleNotFound: iam:GetRole: NoSuchEntity"
    assert (found.fix, found.since) == ("create the role in IAM, or correct spec.role", NOW - 60 * MINUTE)


@pytest.mark.parametrize(("ago", "count"), [(1, 0), (2, 1)])
def test_a_condition_that_is_not_known_is_a_trouble_after_two_minutes(ago: float, count: int) -> None:
    found = list(troubles.not_ready([], [node_class(condition("SubnetsReady", "Unknown", ago=ago))], NOW))
    assert len(found) == count
    unknown = condition("NodeClassReady", "False", "NodeClassReadinessUnknown", "not ready yet", ago)
    assert len(list(troubles.not_ready([node_pool(unknown)], [], NOW))) == count


def test_a_pool_is_told_with_its_class_or_its_registrations() -> None:
    pools = [
        node_pool(condition("NodeClassReady", "False", "NodeClassNotFound", "the node class does not exist")),
        node_pool(condition("NodeRegistrationHealthy", "False", "RegistrationFailed", "no node has joined")),
    ]
    first, second = troubles.not_ready(pools, [], NOW)
    assert first.text == "is not Ready: NodeClassReady is False: NodeClassNotFound: the node class does not exist"
    assert "NodeRegistrationHealthy is False" in second.text


def test_what_is_ready_foreign_or_going_is_no_trouble() -> None:
    bad = condition("SubnetsReady", "False")
    pools = [
        node_pool(condition("NodeClassReady", "True")),
        node_pool(condition("NodeClassReady", "False"), kind="Other"),
    ]
    classes = [node_class(condition("SubnetsReady", "True")), node_class(bad, deletionTimestamp=stamp(NOW))]
    assert not list(troubles.not_ready(pools, classes, NOW))
    fresh = node_pool(condition("NodeRegistrationHealthy", "Unknown"))
    assert not list(troubles.not_ready([fresh], [], NOW))


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        (
            [condition("Launched", "Unknown", "LaunchFailed", "no policy", 2)],
            "Launched is Unknown: LaunchFailed: no policy",
        ),
        ([condition("Launched", "Unknown", "LaunchFailed", "no policy", 0.5)], ""),
        ([condition("Launched", "Unknown", "AwaitingReconciliation", "", 1.5)], ""),
        ([condition("Registered", "Unknown", "NodeNotFound", "", 6)], "Registered is Unknown: NodeNotFound"),
        ([condition("Registered", "Unknown", "NodeNotFound", "", 4)], ""),
        ([condition("Launched", "True"), condition("Registered", "True")], ""),
        ([condition("Initialized", "Unknown", "NodeNotReady", "", 10)], "Initialized is Unknown: NodeNotReady"),
        ([condition("Initialized", "Unknown", "NodeNotReady", "", 9)], ""),
    ],
)
def test_a_claim_whose_launch_or_registration_fails(conditions: list[dict[str, Any]], words: str) -> None:
    found = list(troubles.stuck_claims([node_claim(*conditions)], {}, NOW))
    assert [one.text for one in found] == ([words] if words else [])


def test_a_claim_whose_launch_is_a_trouble_already_is_no_second_one() -> None:
    claims = [
        node_claim(condition("Launched", "Unknown", "LaunchFailed", "no policy", 2), labels={labels.NODEPOOL: pool})
        for pool in ("p", "q")
    ]
    fails = failure("nodepool/p", verb="LaunchInstances")
    (found,) = troubles.stuck_claims(claims, {key(fails.verb, fails.object): fails}, NOW)
    assert found.object == f"nodeclaim/{claims[1].name}"
    joins = node_claim(condition("Registered", "Unknown", "NodeNotFound", "", 6), labels={labels.NODEPOOL: "p"})
    assert list(troubles.stuck_claims([joins], {key(fails.verb, fails.object): fails}, NOW))


def test_a_drain_that_fails_is_told_by_a_replica_that_does_not_know_the_failures() -> None:
    claim = node_claim(condition("Drained", "Unknown", "EvictionFailed", "pod/d/a: no"), deletionTimestamp=stamp(NOW))
    (found,) = troubles.stuck_claims([claim], {}, NOW)
    assert found.text == "Drained is Unknown: EvictionFailed: pod/d/a: no"
    assert not list(troubles.stuck_claims([claim], {key("EvictPod", "pod/d/a"): failure("pod/d/a")}, NOW))
    for other in (failure("aws/queue", verb="Read"), failure("node/x", verb="UpdateNode")):
        assert list(troubles.stuck_claims([claim], {key(other.verb, other.object): other}, NOW)) == [found]


def test_a_guard_that_holds_something_is_a_trouble() -> None:
    held = node_pool(condition("GarbageCollectionHalted", "True", "TooMany", "7 instances"))
    (found,) = troubles.guarded([("nodepool/p", held.status.conditions)])
    assert (found.code, found.object, found.text) == (
        "GuardTripped",
        "nodepool/p",
        "GarbageCollectionHalted: 7 instances",
    )


def test_a_trouble_in_one_line_has_object_problem_and_fix() -> None:
    assert str(Trouble("X", "pod/d/a", "does not run", "start it")) == "pod/d/a: does not run; start it"


def test_a_profile_that_may_not_be_created_and_unhealthy_registrations_are_named_for_what_they_are() -> None:
    denied = node_class(condition("InstanceProfileReady", "False", "InstanceProfileAccessDenied", "iam: AccessDenied"))
    (found,) = troubles.not_ready([], [denied], NOW)
    assert found.fix == "give Kerf's IAM role the permission; kerf preflight lists the missing ones"
    sick = node_pool(condition("NodeRegistrationHealthy", "False", "RegistrationFailed", "none has joined"))
    (found,) = troubles.not_ready([sick], [], NOW)
    assert found.text.startswith("is unhealthy: NodeRegistrationHealthy is False: RegistrationFailed")
