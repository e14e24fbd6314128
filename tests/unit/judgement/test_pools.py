"""What is told of a NodePool, word for word, and its verdicts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kerf.cli.answering.pool_page import page
from kerf.disruption.view import view
from kerf.judgement.drifted import drifted
from kerf.judgement.pools import PoolJudgement, why
from kerf.model.annotations import text_of
from kerf.model.aws.cloud import FleetError
from kerf.model.backoff import PoolFailures
from kerf.model.failures import Failure, key
from kerf.model.memory import Memory
from kerf.model.snapshot import LaunchFailure
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool
from tests.unit.disruption.worlds import NOW, claim, condition, node, nowhere, pdb, pod, pool, snapshot, stamp

MINUTE = timedelta(minutes=1)
BROKEN = {**condition("NodeClassReady", NOW - 3 * MINUTE, "UnhealthyDependents", "False"), "message": "no role"}
CLASS = {**condition("InstanceProfileReady", NOW - 4 * MINUTE, "RoleNotFound", "False"), "message": "iam:GetRole"}

PLAIN = decode(EC2NodeClass, {"metadata": {"name": "default", "uid": "u"}, "spec": {}})


def changed(made: NodePool, **parts: Any) -> NodePool:
    manifest = msgspec.to_builtins(made)
    return decode(NodePool, {**manifest, **{name: {**manifest.get(name, {}), **part} for name, part in parts.items()}})


def asked(made: NodePool, *rest: Any, **facts: Any) -> PoolJudgement:
    return why(snapshot([made, *rest], **facts), made.name)


def test_a_pool_that_is_ready() -> None:
    one = claim("a")
    found = asked(pool(), PLAIN, one, node(one))
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


@pytest.mark.parametrize("deleted", [True, False])
def test_the_fix_of_a_pool_that_is_not_ready_is_that_of_its_class(*, deleted: bool) -> None:
    going = {"deletionTimestamp": stamp(NOW - MINUTE)} if deleted else {}
    meta = {"name": "default", "uid": "u", **going}
    node_class = decode(EC2NodeClass, {"metadata": meta, "spec": {}, "status": {"conditions": [CLASS]}})
    quota = {"g": LaunchFailure((FleetError("VcpuLimitExceeded", "limit of 1"),), NOW, pool="default")}
    found = asked(changed(pool(), status={"conditions": [BROKEN]}), node_class, launch_failures=quota)
    fix = "; let spec.template.spec.nodeClassRef of NodePool default name another EC2NodeClass" if deleted else ""
    assert found.text == f"is not Ready: NodeClassReady is False: UnhealthyDependents: no role{fix}"


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
    found = asked(made, PLAIN)
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


# --- drifted nodes ----------------------------------------------------------------------------------------------
def drifting(name: str, *pods_: Any) -> list[Any]:
    one = claim(name, drifted=NOW - MINUTE)
    return [one, node(one), *pods_]


def lines(*objects: Any, closed: bool = False, **facts: Any) -> list[str]:
    flat = [one for each in objects for one in each]
    return [fact.text for fact in asked(pool(budgets=[{"nodes": "0" if closed else "100%"}]), *flat, **facts).facts]


def test_drifted_nodes_are_counted_by_what_blocks_them() -> None:
    keep = pdb("keep", app="db")
    marked = {labels.DO_NOT_DISRUPT: "true"}
    found = lines(
        drifting("a", pod("db-a", "a", labels_={"app": "db"})),
        drifting("b", pod("db-b", "b", labels_={"app": "db"})),
        drifting("c", pod("job", "c", labels_={"app": "x"}, annotations=marked)),
        [keep],
    )
    assert found[0] == (
        "2 drifted nodes are blocked: PodDisruptionBudget shop/keep allows no disruption now (node-a, node-b)"
    )
    assert found[1].startswith("1 drifted node is blocked: ")
    assert (labels.DO_NOT_DISRUPT in found[1], found[1].endswith(" (node-c)"), len(found)) == (True, True, 2)


def test_the_list_of_blockers_has_an_end() -> None:
    names = [f"n{i:02}" for i in range(13)]
    blocked = [drifting(name, pod(name, name, labels_={"app": name})) for name in names]
    found = lines(*blocked, [pdb(name, app=name) for name in names])
    assert len(found) == 11
    assert found[-1] == "3 other drifted nodes are blocked by other causes"


def test_drifted_nodes_that_wait_for_a_budget_or_for_their_turn() -> None:
    (found,) = lines(drifting("a"), drifting("b"), closed=True)
    assert found.startswith("2 drifted nodes wait for a budget: no more nodes of NodePool default may be disrupted for")
    assert found.endswith(" (node-a, node-b)")
    assert lines(drifting("a")) == ["1 drifted node waits for a reconcile that replaces it (node-a)"]


def test_drifted_nodes_whose_pods_have_no_place() -> None:
    """Of the first three each is simulated."""
    every = [drifting(name, pod(f"p-{name}", name, labels_={"app": "x"})) for name in "abcd"]
    given = snapshot([pool(), *(one for each in every for one in each)])
    seen = view(given, Memory().turn(given))
    found = [fact.text for fact in drifted(seen, given.node_pools["default"], nowhere)]
    assert [text.partition(" have no place: ")[0] for text in found[:-1]] == [
        f"the pods of drifted node node-{name}" for name in "abc"
    ]
    assert found[-1] == "1 drifted node waits for a reconcile that replaces it (node-d)"


def test_nodes_that_are_up_to_date_or_already_replaced_are_not_listed() -> None:
    one = claim("a", drifted=NOW - MINUTE, annotations={labels.COMMAND: "{}"})
    fresh = claim("b")
    assert not list(lines([one, node(one), fresh, node(fresh)]))


def test_a_stalled_roll_out_does_not_repeat_the_blockers() -> None:
    words = {"message": "0 of 1 node is up to date, 1 blocked; node-a: PodDisruptionBudget shop/keep"}
    made = changed(pool(), status={"conditions": [{**condition("Stalled", NOW, "Blocked", "True"), **words}]})
    assert asked(made).facts[0].text == "the roll-out is stalled: Blocked: 0 of 1 node is up to date, 1 blocked; since"
