"""How a deadline bends the rules of a drain: terminationGracePeriod."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from kerf.model import kinds
from kerf_api import labels
from tests.unit.lifecycle.drains import draining, forced
from tests.unit.lifecycle.world import NOW, node_claim, pod, prepared, text

PROTECTED = {"annotations": {labels.DO_NOT_DISRUPT: "true"}}


def test_the_deadline_is_written_down_once() -> None:
    world = draining(grace="5m")
    key = labels.TERMINATION_TIMESTAMP
    assert world.claim().metadata.annotations[key] == text(NOW + timedelta(minutes=5))
    assert [(str(e.ref), e.type, e.reason) for e in world.decide().events] == [
        ("node/node-a", "Warning", "TerminationGracePeriodExpiring")
    ]
    claim = world.claim()
    early = {**claim.metadata.annotations, key: text(NOW + timedelta(minutes=1))}
    world.put(replace(claim, metadata=replace(claim.metadata, annotations=early)))
    world.settle()
    assert world.claim().metadata.annotations[key] == early[key]


def test_the_deadline_is_told_on_the_claim_when_it_is_written_down() -> None:
    world = prepared(node_claim("a", terminationGracePeriod="5m"))
    world.settle()
    world.delete(kinds.ref(world.claim()))
    plan = world.decide()
    (event,) = plan.events
    assert (str(event.ref), event.reason) == ("nodeclaim/a", "TerminationGracePeriodExpiring")
    assert text(NOW + timedelta(minutes=5)) in event.message
    world.obey(plan)
    assert world.decide().events == ()


def test_the_status_says_by_when_the_drain_is_over() -> None:
    world = draining(pod("web", "node-a", meta=PROTECTED), grace="5m")
    world.settle()
    condition = world.claim().condition("Drained")
    assert condition is not None
    assert (condition.status, condition.reason) == ("Unknown", "Draining")
    assert condition.message == f"drain is forced at {text(NOW + timedelta(minutes=5))}"


def test_past_the_deadline_a_pod_is_not_cut_again_and_again() -> None:
    world = draining(pod("stuck", "node-a", meta={"finalizers": ["x/y"]}), grace="10s")
    world.pass_time(60)
    world.obey(world.decide())
    world.pass_time(1)
    assert forced(world.decide()) == []
    world.pass_time(62)
    world.settle()
    assert world.condition("Drained") == ("True", "Drained")


def test_a_pod_that_is_stuck_is_given_up_at_the_instant_that_the_plan_names() -> None:
    """A plan that is kept in memory is the plan that would be made without memory, up to its due time."""
    world = draining(pod("stuck", "node-a", meta={"finalizers": ["x/y"], "deletionTimestamp": text(NOW)}))
    world.settle()
    world.pass_time(55)
    due = world.decide().next_due
    assert due == NOW + timedelta(seconds=60, microseconds=1)
    world.pass_time(5)
    assert [e.message for e in world.decide().events if e.reason == "FailedDraining"]
    world.pass_time(0.000001)
    world.settle()
    assert world.condition("Drained") == ("True", "Drained")


@pytest.mark.parametrize("known", ["soon", "", "2026-01-01T12:00:00", "0000-01-01T00:00:00Z"])
def test_a_deadline_that_cannot_be_read_is_replaced_where_the_claim_has_a_grace_period(known: str) -> None:
    world = draining(pod("web", "node-a", meta=PROTECTED), grace="5m")
    claim = world.claim()
    world.put(replace(claim, metadata=replace(claim.metadata, annotations={labels.TERMINATION_TIMESTAMP: known})))
    world.settle()
    assert world.claim().metadata.annotations[labels.TERMINATION_TIMESTAMP] == text(NOW + timedelta(minutes=5))
    assert forced(world.decide()) == []
    world.pass_time(280)
    assert len(forced(world.decide())) == 1


def test_a_deadline_that_cannot_be_read_is_a_refusal_of_a_claim_without_a_grace_period() -> None:
    world = draining()
    claim = world.claim()
    world.put(replace(claim, metadata=replace(claim.metadata, annotations={labels.TERMINATION_TIMESTAMP: "soon"})))
    plan = world.decide()
    assert [(r.subject, r.reason.code) for r in plan.refusals] == [("nodeclaim/a", "Malformed")]
