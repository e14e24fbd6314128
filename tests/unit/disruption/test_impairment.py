"""Impairment: what EC2's status checks say ends a node, and how fast its drain is over."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from kerf.disruption.disrupt import forced_ends
from kerf.disruption.forced.impairment import BORNE, impaired
from kerf.model.aws.cloud import INSTANCE_CHECK, SCHEDULED, SYSTEM_CHECK, Impairment
from kerf.model.aws.interruptions import Interruption, InterruptionKind, Message
from kerf.model.memory import Memory
from kerf.model.plan import DeleteObject, PatchObject, Plan
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.disruption.worlds import NOW, claim, node, pod, snapshot, torn

SECOND = timedelta(seconds=1)


def ailing(*found: Impairment) -> dict[str, tuple[Impairment, ...]]:
    return {"i-a": found}


def check(category: str = SYSTEM_CHECK, ago: timedelta = BORNE) -> Impairment:
    return Impairment("i-a", category, NOW - ago, "reachability failed")


EVENT = Impairment("i-a", SCHEDULED, NOW + timedelta(days=1), "instance-retirement: old hardware")


def going(one: NodeClaim) -> NodeClaim:
    return replace(one, metadata=replace(one.metadata, deletion_timestamp=NOW, finalizers=("x/y",)))


def decided(one: NodeClaim, *found: Impairment) -> Plan:
    return impaired(snapshot([one, node(one), pod("p", "a")], impairments=ailing(*found), examined_at=NOW))


@pytest.mark.parametrize("category", [SYSTEM_CHECK, INSTANCE_CHECK])
def test_210_a_check_that_has_failed_for_two_minutes_ends_the_node(category: str) -> None:
    plan = decided(claim("a"), check(category))
    (deletion,) = plan.actions
    assert isinstance(deletion, DeleteObject)
    assert (deletion.ref.name, deletion.reason.code, deletion.moved) == ("a", "InstanceStatusFailed", ("shop/p",))
    assert {(event.ref.kind, event.reason) for event in plan.events} == {
        (kind, reason)
        for kind in ("Node", "NodeClaim")
        for reason in ("InstanceUnhealthy", "TerminatingOnInterruption")
    }


def test_210_before_that_it_is_tolerated() -> None:
    assert decided(claim("a"), check(ago=BORNE - SECOND)) == Plan()


def test_what_was_seen_before_the_two_minutes_were_over_need_not_be_so_any_more() -> None:
    one = claim("a")
    seen = snapshot([one, node(one)], impairments=ailing(check()), examined_at=NOW - SECOND)
    assert impaired(seen) == Plan()


def test_210_its_drain_has_no_time_once_it_is_being_deleted_and_that_is_written_once() -> None:
    one = going(claim("a"))
    (patch,) = decided(one, check()).actions
    assert isinstance(patch, PatchObject)
    stamp = patch.patch["metadata"]["annotations"][labels.TERMINATION_TIMESTAMP]
    assert stamp == "2026-03-04T12:00:00Z"
    notes = {**one.metadata.annotations, labels.TERMINATION_TIMESTAMP: stamp}
    told = replace(one, metadata=replace(one.metadata, annotations=notes))
    assert decided(told, check()).actions == ()


def test_210_for_a_scheduled_event_the_drain_is_an_ordinary_one() -> None:
    (deletion,) = decided(claim("a"), EVENT).actions
    assert isinstance(deletion, DeleteObject)
    assert (deletion.reason.code, deletion.reason.text) == ("ScheduledChange", EVENT.text)
    assert decided(going(claim("a")), EVENT).actions == ()


def test_210_both_together_are_a_failing_check() -> None:
    (deletion,) = decided(claim("a"), EVENT, check()).actions
    assert isinstance(deletion, DeleteObject)
    assert deletion.reason.code == "InstanceStatusFailed"


def test_a_check_of_which_nobody_knows_since_when_is_not_believed() -> None:
    assert decided(claim("a"), Impairment("i-a", SYSTEM_CHECK)) == Plan()


def test_instances_of_nobody_and_claims_that_cannot_be_read_are_left_alone() -> None:
    assert impaired(snapshot([claim("b")], impairments=ailing(check()), examined_at=NOW)).actions == ()
    assert impaired(snapshot([torn(claim("a"))], impairments=ailing(check()), examined_at=NOW)).actions == ()


def test_a_claim_that_a_message_ends_is_ended_once() -> None:
    told = Interruption(InterruptionKind.SPOT_INTERRUPTED, ("i-a",), Message("m", "receipt", "{}"))
    seen = snapshot([claim("a")], impairments=ailing(check()), examined_at=NOW, interruptions=(told,))
    assert [a.key for a in forced_ends(seen, Memory().turn(seen)).actions] == ["DeleteObject nodeclaim/a"]
