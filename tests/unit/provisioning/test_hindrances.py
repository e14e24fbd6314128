"""What keeps a NodePool from nodes although its fields are right, in `kerf why` for pods and for the NodePool."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kerf.judgement import pools
from kerf.model.annotations import text_of
from kerf.model.aws.cloud import FleetError
from kerf.model.backoff import PoolFailures
from kerf.model.failures import Failure, key
from kerf.model.snapshot import LaunchFailure, Snapshot
from kerf.provisioning import hindrances
from kerf.provisioning.missing import cause_of_pool, patches_of_pool
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool
from tests.unit.disruption.worlds import NOW, claim, condition, pool, snapshot

MINUTE = timedelta(minutes=1)
IAM = "give Kerf's IAM role the permission; kerf preflight lists the missing ones"
RULES = "give Kerf's account the rules of the chart's ClusterRole; kerf preflight lists the missing ones"


def failing(verb: str, subject: str, outcome: str = "forbidden") -> dict[str, Any]:
    one = Failure(verb, subject, outcome, "no permission", NOW - 9 * MINUTE, NOW, 9)
    return {"failures": {key(verb, subject): one}}


def refusing(code: str) -> dict[str, Any]:
    return {"launch_failures": {"g": LaunchFailure((FleetError(code, "no room"),), NOW - MINUTE, pool="default")}}


def late(name: str) -> NodeClaim:
    conditions = [
        condition("Launched", NOW - 20 * MINUTE),
        condition("Registered", NOW - 19 * MINUTE),
        {**condition("Initialized", NOW - 19 * MINUTE, "StartupTaintsExist", "Unknown"), "message": "agent=y"},
    ]
    return decode(NodeClaim, {**msgspec.to_builtins(claim(name)), "status": {"conditions": conditions}})


def going() -> EC2NodeClass:
    meta = {"name": "default", "uid": "u", "deletionTimestamp": NOW - MINUTE}
    return decode(EC2NodeClass, {"metadata": meta, "spec": {}})


def unanswered() -> EC2NodeClass:
    asked = condition("ValidationSucceeded", NOW - MINUTE, "UnauthorizedOperation", "Unknown")
    known = {**asked, "message": "ec2:RunInstances"}
    meta = {"name": "default", "uid": "u"}
    return decode(EC2NodeClass, {"metadata": meta, "spec": {}, "status": {"conditions": [known]}})


def answer(given: Snapshot) -> tuple[str, str, str]:
    """The first line of the NodePool, the cause and the edit of a pod that it refuses."""
    own = given.node_pools["default"]
    (patch,) = patches_of_pool(given, own, "left alone until 00:10:00 UTC after failures")
    return pools.why(given, "default").text, cause_of_pool(given, own, "left alone").text, patch.text


@pytest.mark.parametrize(
    ("objects", "facts", "words", "fix"),
    [
        ([], failing("CreateNodeClaim", "nodepool/default"), "CreateNodeClaim is forbidden: no permission", RULES),
        ([], failing("LaunchInstances", "nodepool/default"), "LaunchInstances is forbidden: no permission", IAM),
        ([], failing("Read", "aws/class/default"), "Read is forbidden: no permission", IAM),
        ([], failing("Read", "aws/region"), "Read is forbidden: no permission", IAM),
        ([], failing("ValidateClass", "ec2nodeclass/default"), "ValidateClass is forbidden: no permission", IAM),
        ([], refusing("VcpuLimitExceeded"), "The account's vCPU quota is used up", "request a higher quota"),
        ([], refusing("InsufficientFreeAddressesInSubnet"), "EC2 refuses launches: ", "free addresses"),
        ([going()], {}, "EC2NodeClass default is being deleted", "name another EC2NodeClass"),
        ([unanswered()], {}, "UnauthorizedOperation: ec2:RunInstances", "kerf preflight checks the account"),
        ([late("a"), late("b")], {}, "StartupTaintsExist: agent=y", "kerf why nodeclaim a shows the cause"),
    ],
)
def test_it_is_named_with_what_helps(objects: list[Any], facts: dict[str, Any], words: str, fix: str) -> None:
    given = snapshot([pool(), *objects], **facts)
    line, cause, edit = answer(given)
    assert line.startswith("gets no nodes now: ")
    assert words in line
    assert fix in line
    assert words in cause
    assert fix in edit
    assert "spec.template.spec.requirements" not in edit


@pytest.mark.parametrize(
    "facts",
    [
        {},
        failing("LaunchInstances", "nodepool/other"),
        failing("LaunchInstances", "nodepool/default", "throttled"),
        failing("UpdatePool", "nodepool/default"),
        failing("Read", "aws/class/other"),
        failing("Read", "aws/prices"),
        refusing("InsufficientInstanceCapacity"),
    ],
)
def test_what_concerns_others_or_comes_off_by_itself_is_none(facts: dict[str, Any]) -> None:
    given = snapshot([pool(), decode(EC2NodeClass, {"metadata": {"name": "default"}, "spec": {}})], **facts)
    assert not list(hindrances.of(given, given.node_pools["default"]))
    assert pools.why(given, "default").code == "Ready"


def answered(status: str, generation: int = 1) -> EC2NodeClass:
    """A class of generation 1."""
    ready = {**condition("Ready", NOW - MINUTE, "Ready", status), "observedGeneration": generation}
    meta = {"name": "default", "uid": "u", "generation": 1}
    return decode(EC2NodeClass, {"metadata": meta, "spec": {}, "status": {"conditions": [ready]}})


@pytest.mark.parametrize(
    ("node_class", "count"), [(answered("True"), 0), (answered("False"), 1), (answered("True", 2), 1)]
)
def test_a_read_that_fails_hinders_no_launch_of_a_class_that_is_ready(node_class: EC2NodeClass, count: int) -> None:
    """Launches use the earlier answers of AWS."""
    given = snapshot([pool(), node_class], **failing("Read", "aws/class/default"))
    assert len(list(hindrances.of(given, given.node_pools["default"]))) == count


@pytest.mark.parametrize(("after", "count"), [(timedelta(seconds=3), 0), (-MINUTE, 1)])
def test_a_refused_launch_is_none_once_a_node_has_been_launched(after: timedelta, count: int) -> None:
    """Without a quota of spot vCPUs, say, Kerf gets on-demand instances."""
    one = late("a")
    rows = [condition("Launched", NOW - MINUTE + after), condition("Registered", NOW), condition("Initialized", NOW)]
    one = decode(NodeClaim, {**msgspec.to_builtins(one), "status": {"conditions": rows}})
    given = snapshot([pool(), one], **refusing("MaxSpotInstanceCountExceeded"))
    assert len(list(hindrances.of(given, given.node_pools["default"]))) == count


def test_every_quota_that_is_used_up_is_named() -> None:
    errors = (FleetError("VcpuLimitExceeded", "4 of 4"), FleetError("MaxSpotInstanceCountExceeded", "0 of 0"))
    given = snapshot([pool()], launch_failures={"g": LaunchFailure(errors, NOW - MINUTE, pool="default")})
    (found,) = hindrances.of(given, given.node_pools["default"])
    assert ("0 of 0" in found.text, "4 of 4" in found.text, found.fix.count("request a higher quota")) == (
        True,
        True,
        1,
    )


def test_a_static_nodepool_without_the_gate_and_one_whose_nodes_never_register_are_not_ready() -> None:
    static = replace(pool(), spec=replace(pool().spec, replicas=3))
    assert pools.why(snapshot([static]), "default").text == "gets no nodes: the feature gate StaticCapacity is off"
    health = {**condition("NodeRegistrationHealthy", NOW, "RegistrationFailed", "False"), "message": "none has joined"}
    manifest = {**msgspec.to_builtins(pool()), "status": {"conditions": [health]}}
    found = pools.why(snapshot([decode(NodePool, manifest)]), "default")
    assert found.text == "is unhealthy: NodeRegistrationHealthy is False: RegistrationFailed: none has joined"
    denied = failing("LaunchInstances", "nodepool/default")
    found = pools.why(snapshot([decode(NodePool, manifest)], **denied), "default")
    assert found.text == f"gets no nodes now: LaunchInstances is forbidden: no permission; {IAM}"


def test_a_nodepool_that_is_not_ready_has_the_fix_of_its_cause() -> None:
    broken = {**condition("NodeClassReady", NOW, "NodeClassReadinessUnknown", "False"), "message": "not yet"}
    manifest = {**msgspec.to_builtins(pool()), "status": {"conditions": [broken]}}
    found = pools.why(snapshot([decode(NodePool, manifest)], **failing("Read", "aws/region")), "default")
    assert (found.code, found.text) == (
        "NotReady",
        f"is not Ready: NodeClassReady is False: NodeClassReadinessUnknown: not yet; {IAM}",
    )


def test_an_instance_profile_that_may_not_be_created_needs_a_permission_and_no_other_role() -> None:
    denied = {**condition("InstanceProfileReady", NOW - MINUTE, "InstanceProfileAccessDenied", "False")}
    body = {"metadata": {"name": "default", "uid": "u"}, "spec": {}}
    rows = {"conditions": [{**denied, "message": "iam:CreateInstanceProfile: AccessDenied"}]}
    _, cause, edit = answer(snapshot([pool(), decode(EC2NodeClass, {**body, "status": rows})]))
    assert "iam:CreateInstanceProfile: AccessDenied" in cause
    assert IAM in edit
    assert "spec.role" not in edit


def test_an_unauthorized_launch_is_known_by_its_nodeclaim_alone() -> None:
    """As in a snapshot that was taken without the controller, whose events do not name every failure."""
    denied = {**condition("Launched", NOW - MINUTE, "Unauthorized", "Unknown"), "message": "ec2:CreateFleet: denied"}
    waiting = decode(NodeClaim, {**msgspec.to_builtins(claim("a")), "status": {"conditions": [denied]}})
    given = snapshot([pool(), waiting])
    (found,) = hindrances.of(given, given.node_pools["default"])
    assert str(found) == f"launches fail: Launched is Unknown: Unauthorized: ec2:CreateFleet: denied; {IAM}"
    again = snapshot([pool(), waiting], **failing("LaunchInstances", "nodepool/default"))
    assert len(list(hindrances.of(again, again.node_pools["default"]))) == 1


def test_a_stalled_roll_out_is_a_fact_and_a_back_off_that_is_over_has_no_end() -> None:
    stalled = {**condition("Stalled", NOW - MINUTE, "ActionFails"), "message": "EvictPod is forbidden"}
    manifest = msgspec.to_builtins(
        pool(annotations={labels.BACK_OFF: text_of(PoolFailures(count=1, at=NOW - 9 * MINUTE))})
    )
    found = pools.why(snapshot([decode(NodePool, {**manifest, "status": {"conditions": [stalled]}})]), "default")
    assert [fact.text for fact in found.facts] == [
        "the roll-out is stalled: ActionFails: EvictPod is forbidden; since",
        "failed launches in a row: 1",
    ]
