"""What is never held, however many are deleted: what Kerf ends itself, and what has nothing to lose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace as changed

import pytest
from msgspec.structs import replace

from kerf.model import ends, kinds
from kerf.model.instants import rfc3339
from kerf.model.plan import Plan, Reason
from kerf_api import labels
from tests.unit.lifecycle.deletions import (
    annotate,
    claims,
    delete,
    drained,
    fleet,
    held,
    live,
    settle,
)
from tests.unit.lifecycle.world import node_claim, running


@pytest.mark.parametrize(
    "notes",
    [
        {labels.COMMAND: "{}"},
        {labels.ENDS: f"{rfc3339(running().now)} Expired"},
    ],
    ids=["command", "note"],
)
def test_what_kerf_ends_itself_neither_counts_nor_waits(notes: Mapping[str, str]) -> None:
    world = fleet(8)
    for place in range(5):
        annotate(world, kinds.NODE_CLAIM, f"c{place:02}", **notes)
    delete(world, *(f"c{place:02}" for place in range(8)))
    settle(world)
    assert len(drained(world)) == 8, "five of ours, and three are not too many"


def test_a_note_of_long_ago_says_nothing_of_a_deletion_now() -> None:
    world = fleet(8)
    for claim in claims(world):
        annotate(world, kinds.NODE_CLAIM, claim.name, **{labels.ENDS: f"{rfc3339(world.now)} Expired"})
    world.pass_time(600)
    delete(world)
    settle(world)
    assert drained(world) == set()


@pytest.mark.parametrize("note", ["", "Expired", "2026-01-01T12:00:00 Expired", "now"])
def test_a_note_that_makes_no_sense_is_none(note: str) -> None:
    claim = node_claim(meta={"annotations": {labels.ENDS: note}, "deletionTimestamp": "2026-01-01T12:00:00Z"})
    assert not ends.by_us(claim)


def test_an_interruption_that_is_noted_meanwhile_lets_it_go() -> None:
    world = fleet(8)
    delete(world)
    settle(world)
    note = ends.note(world.claim("c03"), Reason("SpotInterrupted"), world.now)
    world.obey(Plan(actions=(note,)))
    settle(world)
    assert drained(world) == {"node-c03"}


def test_what_never_registered_and_what_has_lost_its_instance_is_not_held() -> None:
    world = fleet(8)
    world.pass_time(60)  # until then EC2 may not list an instance that runs
    world.put(node_claim("young"))
    settle(world)
    delete(world)
    for name, state in (("c00", "shutting-down"), ("c01", "")):
        id_ = world.claim(name).instance_id
        if state:
            world.instances[id_] = changed(world.instances[id_], state=state)
        else:
            del world.instances[id_]
            world.set_ready(f"node-{name}", False)
    settle(world)
    live(world, 60)
    assert held(world) == [f"c{place:02}" for place in range(2, 8)]
    assert world.get(kinds.NODE_CLAIM, "young") is None
    assert world.get(kinds.NODE_CLAIM, "c01") is None


def test_an_instance_that_is_not_listed_while_its_node_is_ready_is_no_reason_to_hurry() -> None:
    world = fleet(8)
    delete(world)
    world.instances.clear()
    settle(world)
    assert drained(world) == set()


def test_half_of_a_termination_grace_period_is_left_for_the_drain() -> None:
    world = fleet(8, terminationGracePeriod="4m")
    delete(world)
    live(world, 105)
    assert drained(world) == set()
    live(world, 15)
    assert len(drained(world)) == 8


def test_a_repair_that_sets_the_deadline_to_now_lets_it_go() -> None:
    world = fleet(8)
    delete(world)
    world.pass_time(60)
    settle(world)
    annotate(world, kinds.NODE_CLAIM, "c05", **{labels.TERMINATION_TIMESTAMP: rfc3339(world.now)})
    world.settle(rounds=40)
    assert "c05" not in held(world)
    assert len(held(world)) == 7


def test_a_duration_that_makes_no_sense_is_refused_by_itself() -> None:
    world = fleet(8)
    torn = world.claim("c00")
    world.put(replace(torn, spec=replace(torn.spec, termination_grace_period="soon")))
    delete(world)
    plan = settle(world)
    assert [r.subject for r in plan.refusals if r.reason.code == "Malformed"] == ["nodeclaim/c00"]
    assert len(held(world)) == 7
