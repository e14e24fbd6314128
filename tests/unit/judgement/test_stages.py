"""Where a node stands, one test per stage, and what is told of it there."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.command import Command
from kerf.disruption.forced.expiration import end_of
from kerf.judgement.judge import why
from kerf.judgement.values import Judgement
from kerf.model.annotations import text_of
from kerf.model.aws.cloud import FleetError
from kerf.model.failures import Failure, key
from kerf.model.kubernetes.objects import Node
from kerf.model.kubernetes.storage import VolumeAttachment
from kerf.model.snapshot import LaunchFailure
from kerf_api import labels
from kerf_api.v1.meta import Condition, decode
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.disruption.worlds import (
    HOUR,
    NOW,
    claim,
    condition,
    elsewhere,
    never,
    node,
    pdb,
    pod,
    pool,
    snapshot,
    stamp,
)

MINUTE = timedelta(minutes=1)
HELD = (labels.TERMINATION_FINALIZER,)


def judged(*objects: Any, name: str = "a", **facts: Any) -> Judgement:
    return why(snapshot(objects, **facts), name, never)


def told(found: Judgement) -> list[str]:
    assert found.stage is not None
    return [fact.text for fact in found.stage.facts]


def at(found: Judgement, words: str) -> Any:
    """The instant of the fact with these words."""
    assert found.stage is not None
    (one,) = [fact.at for fact in found.stage.facts if words in fact.text]
    return one


def with_conditions(one: NodeClaim, *rows: dict[str, Any]) -> NodeClaim:
    status = replace(one.status, conditions=decode(NodeClaim, _claim_of(rows)).status.conditions)
    return replace(one, status=status)


def _claim_of(rows: Any) -> dict[str, Any]:
    ref = {"group": "g", "kind": "k", "name": "n"}
    return {"metadata": {"name": "x"}, "spec": {"nodeClassRef": ref}, "status": {"conditions": list(rows)}}


def young(*rows: dict[str, Any], provider: str = "aws:///us-west-2a/i-a", **more: Any) -> NodeClaim:
    one = with_conditions(claim("a", since=NOW - MINUTE, **more), *rows)
    return replace(one, status=replace(one.status, provider_id=provider))


LAUNCHED, REGISTERED = condition("Launched", NOW - MINUTE), condition("Registered", NOW - MINUTE)


# --- before it is usable ----------------------------------------------------------------------------------------
def test_a_claim_that_waits_for_its_instance_says_why_and_when_it_is_given_up() -> None:
    row = condition("Launched", NOW - MINUTE, "LaunchFailed", "Unknown") | {"message": "no subnet has room"}
    found = judged(pool(), young(row, provider=""))
    assert (found.code, found.stage and found.stage.code) == ("Coming", "Launching")
    assert found.text == "waits for its instance to be launched"
    assert "LaunchFailed: no subnet has room" in told(found)
    assert at(found, "its NodeClaim is deleted, and created again") == NOW + 4 * MINUTE


def test_a_claim_whose_instance_has_not_joined_is_given_up_after_a_quarter_of_an_hour() -> None:
    row = condition("Registered", NOW - MINUTE, "NodeNotFound", "Unknown")
    found = judged(pool(), young(LAUNCHED, row))
    assert (found.code, found.text) == ("Coming", "waits for its instance to join the cluster as a node")
    assert "NodeNotFound" in told(found)
    assert at(found, "its NodeClaim is deleted, and created again") == NOW + 14 * MINUTE


def test_a_node_that_is_not_usable_yet_says_what_is_missing_and_that_there_is_no_limit() -> None:
    row = condition("Initialized", NOW - MINUTE, "StartupTaintsExist", "Unknown") | {"message": "taint x is there"}
    one = young(LAUNCHED, REGISTERED, row)
    found = judged(pool(), one, node(one), name="node-a")
    assert found.stage is not None
    assert (found.code, found.stage.code) == ("Coming", "Initializing")
    assert told(found)[0] == "StartupTaintsExist: taint x is there"
    assert any(text.startswith("no time limit") for text in told(found))


def test_a_replacement_names_whom_it_is_for() -> None:
    found = judged(pool(), young(LAUNCHED, annotations={labels.REPLACES: "old"}))
    assert "it replaces NodeClaim old" in told(found)


# --- a command --------------------------------------------------------------------------------------------------
def commanded(**more: Any) -> NodeClaim:
    command = Command(id="c0ffee", reason="Drifted", started=NOW - MINUTE, **more)
    return claim("a", drifted=NOW - HOUR, annotations={labels.COMMAND: text_of(command)})


TAINT = {"key": labels.DISRUPTED_TAINT, "effect": "NoSchedule"}


def test_a_command_tells_its_reason_id_start_step_and_when_it_is_rolled_back() -> None:
    a = commanded(created=True)
    found = judged(pool(), a, node(a), name="node-a")
    assert (found.code, found.at) == ("Going", NOW - MINUTE)
    assert found.text == "is about to be disrupted (Drifted; command c0ffee): it is being tainted"
    assert at(found, "rolled back") == NOW + 9 * MINUTE


def test_a_command_names_its_replacements_and_what_each_waits_for() -> None:
    a = commanded(created=True, replacements=("new", "other"))
    new = replace(young(LAUNCHED), metadata=replace(young().metadata, name="new"))
    found = judged(pool(), a, node(a, taints=[TAINT]), new, name="node-a")
    assert found.text.endswith("waits for new")
    assert (
        "replacement new (m5.large on-demand us-west-2a) waits for its instance to join the cluster as a node"
        in " ".join(told(found))
    )
    assert "replacement other is gone" in told(found)


def test_a_replacement_whose_launch_ec2_refused_has_the_error() -> None:
    a = commanded(created=True, replacements=("other",))
    error = FleetError("InsufficientFreeAddressesInSubnet", "subnet-1 has none", "m5.large", "a", capacity=True)
    known = {"nodeclaim/other": LaunchFailure((error,), NOW - MINUTE, pool="default")}
    found = judged(pool(), a, node(a, taints=[TAINT]), name="node-a", launch_failures=known)
    (line,) = [line for line in told(found) if line.startswith("replacement other is gone")]
    assert line.endswith("InsufficientFreeAddressesInSubnet: subnet-1 has none")


def test_replacements_that_are_not_created_yet() -> None:
    a = commanded(replacements=("new",))
    found = judged(pool(), a, node(a, taints=[TAINT]))
    assert found.text.endswith("its replacements are being created")
    assert "replacement new is still to be created" in told(found)


def test_the_last_step_of_a_command() -> None:
    a = commanded(created=True, replacements=("b",))
    b = claim("b", annotations={labels.REPLACES: "a"})
    found = judged(pool(), a, node(a, taints=[TAINT]), b, node(b))
    assert found.text.endswith("its NodeClaim is about to be deleted")
    assert "replacement b (m5.large on-demand us-west-2a) is ready" in told(found)


def test_a_successor_of_a_node_that_expires_says_when_it_goes_without_it() -> None:
    command = Command(id="c0ffee", reason="Expired", started=NOW - MINUTE, created=True, replacements=("new",))
    a = claim("a", since=NOW - HOUR, annotations={labels.COMMAND: text_of(command)}, expireAfter="65m")
    found = judged(pool(), a, node(a, taints=[TAINT]))
    ahead = end_of(snapshot([]), a, NOW)
    assert ahead is not None
    assert at(found, "by force if its successor is not ready") == ahead.at


# --- on its way out ---------------------------------------------------------------------------------------------
def ending(**annotations: str) -> tuple[NodeClaim, Node]:
    one = claim("a", annotations=annotations)
    meta = replace(one.metadata, deletion_timestamp=NOW - MINUTE, finalizers=HELD)
    its = node(one)
    return replace(one, metadata=meta), replace(
        its, metadata=replace(its.metadata, deletion_timestamp=NOW - MINUTE, finalizers=HELD)
    )


def test_a_drain_names_every_pod_that_is_left_and_what_holds_it() -> None:
    found = judged(
        pool(),
        *ending(),
        pod("db", "a", labels_={"app": "db"}),
        pod("job", "a", labels_={"app": "job"}, annotations={labels.DO_NOT_DISRUPT: "90m"}),
        pod("stops", "a", labels_={"app": "x"}, deletion=NOW + MINUTE),
        pod("web", "a", labels_={"app": "x"}),
        pod("agent", "a", owner="DaemonSet", labels_={"app": "x"}),
        pdb("keep", app="db"),
        name="node-a",
    )
    assert (found.code, found.text, found.at) == ("Going", "is being drained: 5 pods left", NOW - MINUTE)
    assert told(found) == [
        "pod shop/agent waits until the plain pods are gone",
        "pod shop/db is blocked by PodDisruptionBudget shop/keep",
        f"pod shop/job is annotated {labels.DO_NOT_DISRUPT}, until",
        "pod shop/stops is terminating until",
        "pod shop/web is being evicted",
        "it has no terminationGracePeriod, so its drain has no time limit",
    ]
    assert at(found, "shop/job") == NOW + 30 * MINUTE
    assert at(found, "shop/stops") == NOW + MINUTE


def test_a_drain_with_a_deadline_says_when_it_ends_and_which_pods_go_by_force_before() -> None:
    deadline = {labels.TERMINATION_TIMESTAMP: stamp(NOW + HOUR)}
    held = pod("db", "a", terminationGracePeriodSeconds=600)
    found = judged(pool(), *ending(**deadline), held, pdb("keep"))
    assert at(found, "forces the drain") == NOW + HOUR
    assert at(found, "deleted by force") == NOW + 50 * MINUTE


def test_a_pod_with_two_budgets_is_said_to_be_stuck() -> None:
    found = judged(pool(), *ending(), pod("db", "a"), pdb("one", 1), pdb("two", 1))
    assert "several PodDisruptionBudgets, which eviction does not support: shop/one, shop/two" in told(found)[0]


def test_a_deletion_that_is_held_up_says_what_the_claim_says() -> None:
    own, its_node = ending()
    held = with_conditions(own, condition("DeletionHeld", NOW, "TooMany") | {"message": "not before noon"})
    found = judged(held, its_node, pod("web", "a"))
    assert found.stage is not None
    assert found.stage.code == "Held"
    assert told(found) == ["not before noon"]
    assert found.text == "is being terminated, but its drain is blocked"


def test_a_deletion_that_is_held_up_names_the_blockers_of_its_pods_first() -> None:
    """They block the drain after the guard has released it, and an operator can fix them meanwhile."""
    own, its_node = ending()
    held = with_conditions(own, condition("DeletionHeld", NOW, "TooMany") | {"message": "not before noon"})
    db, plain = pod("db", "a", labels_={"app": "db"}), pod("plain", "a", labels_={"app": "x"})
    job = pod("job", "a", labels_={"app": "x"}, annotations={labels.DO_NOT_DISRUPT: "true"})
    found = judged(held, its_node, db, plain, job, pdb("keep", app="db"))
    assert found.text == (
        "is being terminated, but its drain is blocked by PodDisruptionBudget shop/keep, "
        f"the annotation {labels.DO_NOT_DISRUPT}, and by the deletion guard"
    )
    assert told(found) == [
        "pod shop/db is blocked by PodDisruptionBudget shop/keep",
        f"pod shop/job is annotated {labels.DO_NOT_DISRUPT}",
        "not before noon",
        "it has no terminationGracePeriod, so its drain has no time limit",
    ]


def test_volumes_that_are_still_attached_are_named() -> None:
    meta, source = {"name": "v", "resourceVersion": "1"}, {"persistentVolumeName": "pv-1"}
    volume = decode(VolumeAttachment, {"metadata": meta, "spec": {"nodeName": "node-a", "source": source}})
    found = judged(pool(), *ending(), volume)
    assert found.stage is not None
    assert (found.stage.code, found.text) == ("Detaching", "is drained; 1 volume still to be detached")
    assert "volume pv-1" in told(found)


def test_an_instance_that_is_being_terminated_and_who_else_holds_the_claim() -> None:
    one, _ = ending()
    row = condition("InstanceTerminating", NOW - MINUTE)
    foreign = replace(one.metadata, finalizers=(*HELD, "example.com/hold"))
    found = judged(pool(), replace(with_conditions(one, row), metadata=foreign))
    assert (found.text, found.at) == ("instance i-a is being terminated", NOW - MINUTE)
    assert told(found) == [
        "the deletion of NodeClaim a is blocked by finalizers of other controllers: example.com/hold"
    ]


@pytest.mark.parametrize("kind", ["NodeClaim a", "Node node-a"])
def test_an_object_that_others_hold_after_the_end_of_its_instance(kind: str) -> None:
    one, its_node = ending()
    claim_, node_ = with_conditions(one, condition("InstanceTerminating", NOW)), its_node
    others = ("example.com/hold",)
    if kind == "NodeClaim a":
        claim_ = replace(claim_, metadata=replace(claim_.metadata, finalizers=others))
    else:
        node_ = replace(node_, metadata=replace(node_.metadata, finalizers=others))
    found = judged(pool(), claim_, node_)
    assert (found.text, found.at) == (
        f"instance i-a is terminated, but the deletion of {kind} is blocked by finalizers of other controllers: "
        "example.com/hold",
        NOW - MINUTE,
    )
    assert told(found) == []


def test_an_interruption_limits_the_drain() -> None:
    ends = {labels.ENDS: f"{stamp(NOW - MINUTE)} SpotInterrupted"}
    found = judged(pool(), *ending(**ends), pod("db", "a"))
    assert told(found) == [
        "pod shop/db is being evicted",
        "EC2 ends its instance (SpotInterrupted): pods that are left then are stopped",
    ]


# --- not ours ---------------------------------------------------------------------------------------------------
def test_a_node_without_a_claim_is_said_to_be_none_of_ours() -> None:
    found = judged(pool(), node(claim("a")), name="node-a")
    assert found.code == "NotOurs"
    assert found.text.startswith(
        "is not managed by Kerf: no NodeClaim has its instance; it is labelled with NodePool d"
    )


def test_a_claim_of_another_controller_is_said_to_be_its() -> None:
    one = claim("a")
    ref = replace(one.spec.node_class_ref, group="other.io", kind="Thing")
    other = replace(one, spec=replace(one.spec, node_class_ref=ref))
    found = judged(pool(), other, node(one), name="node-a")
    assert (found.code, found.text) == (
        "NotOurs",
        "is managed by another controller: its nodeClassRef is Thing.other.io default",
    )


def test_two_nodes_with_one_instance() -> None:
    one = claim("a")
    twin = node(one)
    other = replace(twin, metadata=replace(twin.metadata, name="node-z", uid="z"))
    assert "several nodes with the instance of NodeClaim a" in judged(pool(), one, twin, other, name="node-z").text


# --- who is meant -----------------------------------------------------------------------------------------------
def test_a_node_goes_by_its_name_its_claims_and_its_instances() -> None:
    a = claim("a")
    seen = snapshot([pool(), a, node(a), pod("web", "a")])
    assert {why(seen, name, elsewhere("b")).name for name in ("node-a", "a", "i-a")} == {"node-a"}


def test_an_unknown_name_gets_those_that_are_alike() -> None:
    a = claim("a")
    found = judged(pool(), a, node(a), name="node-b")
    assert (found.code, found.similar) == ("NotFound", ("node-a",))
    assert judged(pool(), name="x").similar == ()


def test_what_cannot_be_understood_is_said_and_raises_nothing() -> None:
    one, its = ending(**{labels.TERMINATION_TIMESTAMP: "tomorrow"})
    found = judged(pool(), one, its, name="node-a")
    assert found.text.startswith("cannot be read: Malformed: ")


def test_what_is_in_use_but_not_ready_says_that_it_uses_up_budget() -> None:
    a = claim("a")
    found = judged(pool(), a, node(a, ready=False))
    assert told(found) == ["its Node is not Ready, and counts against the budgets of its NodePool"]


# --- actions that fail ------------------------------------------------------------------------------------------
def refused(verb: str, about: str, times: int) -> dict[str, Failure]:
    return {key(verb, about): Failure(verb, about, "forbidden", "no permission", NOW - MINUTE, NOW, times)}


def test_an_eviction_that_is_refused_is_not_under_way() -> None:
    known = refused("EvictPod", "pod/shop/web", 14)
    found = judged(pool(), *ending(), pod("web", "a", labels_={}), name="node-a", failures=known)
    words = f"EvictPod is forbidden: no permission (14 attempts, since {stamp(NOW - MINUTE)}, 1m0s ago)"
    assert told(found)[0] == f"pod shop/web cannot be evicted: {words}"
    assert found.text.startswith("is being drained: 1 pod left, but EvictPod is forbidden: no permission; give Kerf's ")


def test_a_termination_that_is_refused_is_told() -> None:
    going, its = ending()
    known = refused("TerminateInstance", f"instance/{going.assigned_instance}", 3)
    found = judged(pool(), going, its, failures=known)
    fix = "give Kerf's IAM role the permission; kerf preflight lists the missing ones"
    assert found.text == f"is drained, but TerminateInstance is forbidden: no permission; {fix}"
    assert told(found)[0].startswith("TerminateInstance is forbidden: no permission (3 attempts, since ")
    begun = with_conditions(going, condition("InstanceTerminating", NOW - MINUTE))
    text = judged(pool(), begun, failures=known).text
    assert text == f"instance i-a is to be terminated, but TerminateInstance is forbidden: no permission; {fix}"


def test_without_the_failures_the_conditions_of_the_claim_are_told() -> None:
    words = "pod/shop/web: EvictPod is forbidden: no permission"
    going, its = ending()
    failed = Condition(type="Drained", status="Unknown", reason="EvictionFailed", message=words)
    going = replace(going, status=replace(going.status, conditions=(*going.status.conditions, failed)))
    found = judged(pool(), going, its, pod("web", "a", labels_={}), name="node-a")
    assert told(found)[0] == f"Drained is Unknown: EvictionFailed: {words}, since"
    assert found.text.startswith(f"is being drained: 1 pod left, but {words}; kerf preflight ")


def test_a_launch_that_is_refused_is_told_beside_what_the_claim_waits_for() -> None:
    coming = replace(claim("a"), status=type(claim("a").status)())
    found = judged(pool(), coming, failures=refused("UpdateClaim", "nodeclaim/a", 2))
    fix = "give Kerf's account the rules of the chart's ClusterRole; kerf preflight lists the missing ones"
    assert found.text == f"waits for its instance to be launched, but UpdateClaim is forbidden: no permission; {fix}"
    assert told(found)[0].startswith("UpdateClaim is forbidden: no permission (2 attempts, since ")


def test_an_unauthorized_launch_is_told_by_the_condition_alone() -> None:
    row = condition("Launched", NOW - MINUTE, "Unauthorized", "Unknown") | {"message": "ec2:CreateFleet: denied"}
    fix = "give Kerf's IAM role the permission; kerf preflight lists the missing ones"
    assert judged(pool(), young(row, provider="")).text == (
        f"waits for its instance to be launched, but ec2:CreateFleet: denied; {fix}"
    )
