"""Which nodes wait for the approval of a change, when they wait no longer, and the words about it."""

from __future__ import annotations

from dataclasses import replace as replace_
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.cli.answering.pool_page import page
from kerf.disruption.candidates import approval as rules
from kerf.disruption.candidates.approval import Gate, Seen, gate_of, is_earlier
from kerf.disruption.drift.rollout import rollout
from kerf.disruption.view import view
from kerf.judgement import troubles
from kerf.judgement.ends import ends_of
from kerf.judgement.pools import why
from kerf.model.annotations import text_of
from kerf.model.gauges import PlanGauge
from kerf.model.plan import PatchObject, Source
from kerf.model.settings import Settings
from kerf_api import approval, labels
from kerf_api.v1 import hashes
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import Condition, decode
from kerf_api.v1.nodepool import NodePool
from kerf_api.v1.plan_digest import Parts
from tests.unit.disruption.worlds import HOUR, NOW, World, claim, never, node, pool, snapshot

ON = {labels.PLAN_FIRST: "true"}
OTHER = Parts(node_pool="a" * 20, node_class="b" * 20, images="c" * 20)
GAUGE = PlanGauge.CHANGES_AWAITING_APPROVAL, (("nodepool", "default"),)


def node_class(*images: str, **notes: str) -> EC2NodeClass:
    amis = [{"id": id_, "requirements": []} for id_ in images or ("ami-1",)]
    return decode(
        EC2NodeClass,
        {"metadata": {"name": "default", "uid": "class", "annotations": notes}, "status": {"amis": amis}},
    )


def waiting(**notes: str) -> NodePool:
    """A NodePool whose changes wait, with the hash of its template."""
    bare = pool(consolidateAfter="Never")
    own = {labels.NODEPOOL_HASH: hashes.nodepool_hash(bare), labels.NODEPOOL_HASH_VERSION: "v3"}
    named = {labels.PLAN_FIRST: "true", **{f"kerf.sh/{key.replace('_', '-')}": text for key, text in notes.items()}}
    return replace(bare, metadata=replace(bare.metadata, annotations={**own, **named}))


def parts() -> Parts:
    found = rules.parts_of(waiting(), node_class())
    assert found is not None
    return found


PARTS = parts()


def seen(ago: timedelta = HOUR, settled: Parts | None = OTHER) -> str:
    return text_of(Seen(parts=PARTS, since=NOW - ago, settled=settled))


def gate(made: NodePool, *rest: Any, settings: Settings | None = None) -> Gate:
    found = view(snapshot([made, *(rest or [node_class()])], settings=settings))
    return gate_of(found, made)


# --- the gate -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("notes", "reason"),
    [
        ({}, ""),
        ({"approved_plan": PARTS.digest}, "Approved"),
        ({"approved_plan": OTHER.digest}, ""),
        ({"approved_plan": PARTS.digest.upper()}, ""),
        ({"approved_plan": "true"}, ""),
        ({"plan_first": "30m", "seen_plan": seen()}, "DelayPassed"),
        ({"plan_first": "2h", "seen_plan": seen()}, ""),
        ({"plan_first": "30m"}, ""),
        ({"plan_first": "30m", "seen_plan": "{"}, ""),
        ({"plan_first": "30m", "seen_plan": seen(-HOUR)}, ""),
        ({"plan_first": "30m", "seen_plan": text_of(Seen(parts=OTHER, since=NOW - HOUR))}, ""),
        ({"plan_first": "30 m", "seen_plan": seen()}, ""),
    ],
)
def test_only_the_digest_of_now_or_its_own_delay_opens_the_gate(notes: dict[str, str], reason: str) -> None:
    found = gate(waiting(**notes))
    assert (found.reason, found.closed) == (reason, not reason)


def test_without_annotation_and_setting_nothing_waits() -> None:
    assert gate(pool()) == Gate()
    assert gate(pool(), settings=Settings("test", plan_first=approval.ON)).closed
    assert gate(pool(), node_class(**ON)).closed
    assert not gate(pool(annotations={labels.PLAN_FIRST: "false"}), node_class(**ON)).closed


def test_what_is_not_known_is_not_approved() -> None:
    for rest in ([decode(EC2NodeClass, {"metadata": {"name": "default"}})], [node_class("ami-2")]):
        assert gate(waiting(approved_plan=PARTS.digest), *rest).closed


@pytest.mark.parametrize(
    ("found", "created", "drifted", "earlier"),
    [
        (Gate(approval.ON, PARTS, Seen(parts=PARTS, since=NOW, settled=OTHER)), NOW - HOUR, False, True),
        (Gate(approval.ON, PARTS, Seen(parts=PARTS, since=NOW, settled=OTHER)), NOW, False, True),
        (Gate(approval.ON, PARTS, Seen(parts=PARTS, since=NOW - HOUR, settled=OTHER)), NOW, False, False),
        (Gate(approval.ON, PARTS, Seen(parts=PARTS, since=NOW, settled=PARTS)), NOW - HOUR, False, False),
        (Gate(approval.ON, PARTS, Seen(parts=PARTS, since=NOW, settled=PARTS)), NOW - HOUR, True, True),
        (Gate(approval.ON, PARTS, Seen(parts=OTHER, since=NOW - HOUR, settled=OTHER)), NOW, False, True),
        (Gate(approval.ON, PARTS), NOW, False, True),
    ],
)
def test_a_node_is_earlier_when_it_drifted_or_was_there_before_the_change(
    found: Gate, created: Any, drifted: bool, earlier: bool
) -> None:
    one = claim("a", drifted=NOW if drifted else None)
    one = replace(one, metadata=replace(one.metadata, creation_timestamp=created))
    assert is_earlier(found, one) is earlier


# --- words ----------------------------------------------------------------------------------------------------------
def test_the_step_that_lets_the_node_go_is_named_everywhere() -> None:
    one = claim("a", drifted=NOW - HOUR, consolidatable=False)
    world = World.of(waiting(seen_plan=seen()), node_class(), one, node(one), ask=never)
    plan = world.plan()
    assert plan.gauges[GAUGE] == 1
    (event,) = [event for event in plan.events if event.reason == "ChangeAwaitsApproval"]
    step = f"to approve, set kerf.sh/approved-plan: {PARTS.digest} on it"
    assert step in event.message
    world.settle()
    told = next(c for c in world.objects["nodepool/default"].status.conditions if c.type == "ChangeApproved")
    assert (told.status, told.reason, told.message) == ("False", "AwaitingApproval", event.message)
    assert not [event for event in world.plan().events if event.reason == "ChangeAwaitsApproval"]
    now = world.snapshot()
    assert step in page(why(now, "default"), NOW)
    (trouble,) = troubles.unapproved(now.node_pools.values())
    assert (trouble.object, trouble.code) == ("nodepool/default", "AwaitingApproval")
    assert step in trouble.text
    drifted = next(end for end in ends_of(view(now), "a", never) if end.code == "Drifted")
    assert [hold.code for hold in drifted.holds] == ["AwaitingApproval"]
    assert step in drifted.holds[0].text


def test_faults_are_part_of_the_condition_and_an_event() -> None:
    one = claim("a", drifted=NOW - HOUR, consolidatable=False)
    world = World.of(waiting(seen_plan=seen(), approved_plan="now"), node_class(), one, node(one), ask=never)
    fault = "annotation kerf.sh/approved-plan of NodePool default must be the digest of a plan"
    assert any(fault in event.message for event in world.plan().events if event.reason == "InvalidAnnotation")
    world.settle()
    told = next(c for c in world.objects["nodepool/default"].status.conditions if c.type == "ChangeApproved")
    assert fault in told.message


def test_a_class_without_images_is_named() -> None:
    bare = decode(EC2NodeClass, {"metadata": {"name": "default"}})
    one = claim("a", drifted=NOW)
    found = view(snapshot([waiting(), bare, one, node(one)]))
    blocker = rules.drift_blocker(found, found.snapshot.state_nodes["a"])
    assert blocker is not None
    assert blocker.text.endswith("the plan is not known: EC2NodeClass default is missing or has no images")


# --- the note is lost ---------------------------------------------------------------------------------------------
def told(status: str, reason: str, digest: str) -> dict[str, str]:
    """The condition ChangeApproved, which a replacement of the manifest leaves as it is."""
    return {"type": "ChangeApproved", "status": status, "reason": reason, "message": f"plan {digest} waits"}


@pytest.mark.parametrize(
    ("before", "earlier"),
    [
        (None, False),
        (("True", "NothingToApprove", PARTS.digest), False),
        (("True", "NothingToApprove", OTHER.digest), True),
        (("False", "AwaitingApproval", PARTS.digest), True),
        (("True", "Approved", OTHER.digest), True),
    ],
)
def test_a_change_still_waits_when_kubectl_replace_has_removed_the_note(
    before: tuple[str, str, str] | None, earlier: bool
) -> None:
    made, one = waiting(), claim("a", consolidatable=False)
    rows = tuple(decode(Condition, told(*one)) for one in [before] if one)
    made = replace(made, status=replace(made.status, conditions=(*made.status.conditions, *rows)))
    world = World.of(made, node_class(), one, node(one), ask=never)
    world.settle()
    pool_ = world.objects["nodepool/default"]
    assert is_earlier(gate_of(view(world.snapshot()), pool_), one) is earlier


def test_nothing_is_settled_while_the_nodes_are_not_known() -> None:
    found = snapshot([waiting(seen_plan=seen()), node_class()])
    known: dict[Source, Any] = {one: at for one, at in found.fresh_at.items() if one is not Source.NODE_CLAIMS}
    plan = rollout(view(replace_(found, fresh_at=known)))
    assert [one for one in plan.actions if isinstance(one, PatchObject) and one.verb == "NotePlan"] == []
