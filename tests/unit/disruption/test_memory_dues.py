"""Outcomes whose time has come while no plan asks about them."""

from __future__ import annotations

from dataclasses import replace

from kerf.disruption.command import Failure
from kerf.disruption.disrupt import disrupt
from kerf.model.annotations import text_of
from kerf.model.memory import Memory
from kerf.model.plan import Plan
from kerf_api import labels
from tests.unit.disruption.worlds import HOUR, MINUTE, NOW, drifted, pairs, pod, refusals, rolling, snapshot, started


def test_they_do_not_have_each_plan_made_again() -> None:
    """A node backs off until a time, and is not asked about any more."""
    failed = {labels.COMMAND_FAILED: text_of(Failure(at=NOW, count=1))}
    objects = [rolling(), *drifted("a", annotations=failed), pod("web", "a"), *pairs("b", consolidatable=False)]
    first, memory = snapshot(objects), Memory()
    disrupt(first, turn=memory.turn(first))
    due = memory.outcomes["drifted nodes"].due()
    assert due is not None
    late = replace(first, now=due + MINUTE, fresh_at=dict.fromkeys(first.fresh_at, due + MINUTE))
    plan = Plan(next_due=late.now + HOUR)
    memory.turn(late).decided("all", plan)
    assert memory.turn(late).repeated("all") == plan
    assert memory.outcomes["drifted nodes"].open == {"a"}


def test_a_failure_of_a_clock_that_was_ahead_counts_from_its_own_time() -> None:
    """The node is a candidate until then, and backs off from then on, though nothing else has changed."""
    ahead = NOW + HOUR
    failed = {labels.COMMAND_FAILED: text_of(Failure(at=ahead, count=1))}
    objects = [rolling(), *drifted("a", annotations=failed), pod("web", "a"), *pairs("b", consolidatable=False)]
    first, memory = snapshot(objects), Memory()
    assert started(disrupt(first, turn=memory.turn(first))) == ["a"]
    late = replace(first, now=ahead, fresh_at=dict.fromkeys(first.fresh_at, ahead))
    assert refusals(disrupt(late, turn=memory.turn(late))) == {"node/node-a": "BackingOff"}
