"""What is told of a NodePool, word for word, and its verdicts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kerf.cli.answering.pool_page import page
from kerf.judgement.pools import PoolJudgement, why
from kerf.model.annotations import text_of
from kerf.model.aws.cloud import FleetError
from kerf.model.backoff import PoolFailures
from kerf.model.failures import Failure, key
from kerf.model.snapshot import LaunchFailure
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool
from tests.unit.disruption.worlds import NOW, claim, condition, node, pool, snapshot

MINUTE = timedelta(minutes=1)
BROKEN = {**condition("NodeClassReady", NOW - 3 * MINUTE, "UnhealthyDependents", "False"), "message": "no role"}
CLASS = {**condition("InstanceProfileReady", NOW - 4 * MINUTE, "RoleNotFound", "False"), "message": "iam:GetRole"}


def changed(made: NodePool, **parts: Any) -> NodePool:
    manifest = msgspec.to_builtins(made)
    return decode(NodePool, {**manifest, **{name: {**manifest.get(name, {}), **part} for name, part in parts.items()}})


def asked(made: NodePool, *rest: Any, **facts: Any) -> PoolJudgement:
    return why(snapshot([made, *rest], **facts), made.name)


def test_a_pool_that_is_ready() -> None:
    one = claim("a")
    found = asked(pool(), one, node(one))
    assert page(found, NOW) == (
        "NodePool default is ready: Kerf can launch nodes from it\n"
        "  EC2NodeClass default, 1 NodeClaim\n"
        "\n"
        "Budgets of NodePool default: 1 node\n"
        "  Underutilized, Empty, Drifted: 1 of 1 may be disrupted, 1 left (budgets[0]: nodes 100%)\n"
    )


def test_a_pool_whose_class_is_not_ready_has_the_words_of_the_class() -> None:
    node_class = decode(
        EC2NodeClass, {"metadata": {"name": "default", "uid": "u"}, "spec": {}, "status": {"conditions": [CLASS]}}
    )
    failed = Failure("EnsureInstanceProfile", "ec2nodeclass/default", "forbidden", "no", NOW - MINUTE, NOW, 4)
    known = {key(failed.verb, failed.object): failed}
    found = asked(changed(pool(), status={"conditions": [BROKEN]}), node_class, failures=known)
    assert (found.code, found.since) == ("NotReady", NOW - 3 * MINUTE)
    assert found.text == "is not Ready: NodeClassReady is False: UnhealthyDependents: no role"
    assert [fact.text for fact in found.facts] == [
        "NodeClassReady is False: UnhealthyDependents: no role, since",
        "EC2NodeClass default: InstanceProfileReady is False: RoleNotFound: iam:GetRole, since",
        failed.standing(NOW),
    ]


@pytest.mark.parametrize(
    ("made", "code", "words"),
    [
        (
            changed(pool(), spec={"limits": {"cpu": "8"}}, status={"resources": {"cpu": "8"}}),
            "LimitsReached",
            "limits: cpu 8 of 8",
        ),
        (
            changed(pool(), spec={"limits": {"cpu": "8"}}, status={"resources": {"cpu": "7"}}),
            "Ready",
            "limits: cpu 7 of 8",
        ),
        (
            pool(annotations={labels.BACK_OFF: text_of(PoolFailures(count=3, at=NOW))}),
            "BacksOff",
            "failed launches in a row: 3; no node is launched from it until",
        ),
    ],
)
def test_what_keeps_a_pool_from_nodes(made: NodePool, code: str, words: str) -> None:
    found = asked(made)
    assert (found.code, [fact.text for fact in found.facts]) == (code, [words])


def test_a_pool_that_is_going_and_one_that_is_not_there() -> None:
    going = pool()
    going = replace(going, metadata=replace(going.metadata, deletion_timestamp=NOW - MINUTE))
    assert asked(going).text == "is being deleted"
    found = why(snapshot([pool()]), "defualt")
    assert page(found, NOW) == "NodePool defualt does not exist\n  did you mean default?\n"


def test_errors_of_launches_that_kerf_repeats_are_named_once_each() -> None:
    """Such as a denied CreateFleet, whose NodeClaims stay."""
    denied = {**condition("Launched", NOW - MINUTE, "Unauthorized", "Unknown"), "message": "ec2:CreateFleet: denied"}
    claims = [
        decode(NodeClaim, {**msgspec.to_builtins(claim(name)), "status": {"conditions": [denied]}}) for name in "abc"
    ]
    texts = [fact.text for fact in asked(pool(), *claims).facts]
    assert texts == ["NodeClaim a: Launched is Unknown: Unauthorized: ec2:CreateFleet: denied, since"]


def test_a_saved_snapshot_has_the_refused_launches_of_the_controller() -> None:
    error = FleetError("VcpuLimitExceeded", "your limit is 32", "m5.large", "a", capacity=True)
    known = {"group": LaunchFailure((error,), NOW - MINUTE, pool="default", since=NOW - 9 * MINUTE)}
    (fact,) = asked(pool(), launch_failures=known).facts
    assert "VcpuLimitExceeded: your limit is 32 (1 launch, since " in fact.text
    assert ", 9m ago)" in fact.text
    assert not asked(pool("other"), launch_failures=known).facts
