"""Many NodeClaims that somebody else deletes are not drained at once; few are, and so is all that Kerf ends itself."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.lifecycle.termination.deletion_guard import limit
from kerf.model import kinds
from kerf.model.ends import HELD
from kerf.model.gauges import PlanGauge
from kerf.model.instants import rfc3339
from kerf.model.kinds import Kind
from kerf_api import labels
from tests.unit.lifecycle.deletions import (
    ALLOW,
    WAIT,
    annotate,
    claims,
    delete,
    drained,
    fleet,
    held,
    live,
    settle,
    told,
)
from tests.unit.lifecycle.world import World, node_pool, pod


# --- how many are too many --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("nodes", "percent", "most"),
    [
        *((0, 10, 1), (1, 10, 1), (2, 10, 1), (3, 10, 1), (4, 10, 2), (6, 10, 3), (20, 10, 3), (39, 10, 3)),
        *((40, 10, 4), (200, 10, 20), (200, 0, 3), (8, 100, 8), (3, 50, 1), (40, 50, 20)),
    ],
)
def test_three_go_at_once_or_the_share_and_of_a_few_nodes_half(nodes: int, percent: int, most: int) -> None:
    assert limit(nodes, percent) == most


def test_a_few_that_somebody_deletes_go_at_once() -> None:
    world = fleet(8)
    delete(world, "c00", "c01", "c02")
    settle(world)
    assert drained(world) == {"node-c00", "node-c01", "node-c02"}
    assert held(world) == []


def test_more_are_held_and_nothing_of_them_is_touched() -> None:
    world = fleet(8)
    before = {f"node-c{place:02}": world.node(f"node-c{place:02}") for place in range(8)}
    delete(world, *(f"c{place:02}" for place in range(4)))
    settle(world)
    assert drained(world) == set()
    assert held(world) == ["c00", "c01", "c02", "c03"]
    assert all(world.node(name) == node for name, node in before.items())


def test_those_that_come_later_are_held_while_the_first_go_on() -> None:
    world = fleet(8)
    delete(world, "c00", "c01")
    settle(world)
    delete(world, "c02", "c03", "c04")
    settle(world)
    assert drained(world) == {"node-c00", "node-c01"}
    assert held(world) == ["c02", "c03", "c04"]


def test_nodes_that_somebody_deletes_count_like_claims() -> None:
    world = fleet(8)
    delete(world, "node-c00", "node-c01", kind=kinds.NODE)
    delete(world, "c02", "c03")
    settle(world)
    assert drained(world) == set()
    assert len(held(world)) == 4


def test_the_guard_can_be_switched_off_and_its_share_be_set() -> None:
    for own in ({"deletion_guard_wait": timedelta(0)}, {"deletion_guard_percent": 100}):
        world = fleet(4)
        world.settings = changed(world.settings, **own)
        delete(world)
        settle(world)
        assert len(drained(world)) == 4
        assert held(world) == []


# --- for how long -----------------------------------------------------------------------------------------------
def test_they_wait_ten_minutes_and_then_go_in_steps() -> None:
    world = fleet(8)
    delete(world)
    settle(world)
    due = settle(world).next_due
    assert due == world.now + WAIT
    live(world, 585)
    assert drained(world) == set()
    world.pass_time(15)
    settle(world)
    assert drained(world) == {"node-c00", "node-c01", "node-c02"}
    most = 0
    for _ in range(60):
        live(world, 15)
        going = [claim for claim in claims(world) if claim.metadata.deleting and not claim.is_true(HELD)]
        most = max(most, len(going))
    assert most <= 3
    assert claims(world) == []


def test_a_new_controller_knows_who_waits_and_since_when() -> None:
    """Every plan here is made with an empty memory."""
    world = fleet(8)
    delete(world)
    live(world, 300)
    assert held(world) == [f"c{place:02}" for place in range(8)]
    condition = told(world)
    assert condition is not None
    assert rfc3339(world.now + timedelta(minutes=5)) in condition.message


def test_a_step_waits_for_pods_that_have_no_node_yet_but_not_for_ever() -> None:
    world = fleet(8)
    delete(world)
    live(world, 585)
    lost = pod("web-new", "", status={"phase": "Pending", "conditions": [UNSCHEDULABLE]})
    world.put(replace(lost, metadata=replace(lost.metadata, creation_timestamp=world.now)))
    world.pass_time(15)
    due = settle(world).next_due
    assert drained(world) == set()
    assert due is not None
    live(world, 570)
    assert drained(world) == set()
    live(world, 30)
    assert len(drained(world)) == 3


def test_the_last_ones_wait_like_the_first_though_they_are_few() -> None:
    world = fleet(12)
    delete(world, *(f"c{place:02}" for place in range(6)))
    live(world, 600)
    assert len(drained(world)) == 3
    lost = pod("web-new", "", status={"phase": "Pending", "conditions": [UNSCHEDULABLE]})
    world.put(replace(lost, metadata=replace(lost.metadata, creation_timestamp=world.now)))
    live(world, 300)
    assert len(claims(world)) == 9
    assert len(drained(world)) == 3


def test_pods_that_have_waited_since_before_hold_nobody_up() -> None:
    world = fleet(8)
    lost = pod("web-old", "", status={"phase": "Pending", "conditions": [UNSCHEDULABLE]})
    world.put(replace(lost, metadata=replace(lost.metadata, creation_timestamp=world.now)))
    live(world, 15)
    delete(world)
    live(world, 600)
    assert len(drained(world)) == 3


def test_drains_that_get_no_further_do_not_hold_the_others_up_for_ever() -> None:
    world = fleet(8)
    for place in range(3):
        note = {"annotations": {labels.DO_NOT_DISRUPT: "true"}}
        world.put(pod(f"web-c{place:02}", f"node-c{place:02}", meta=note))
    delete(world)
    live(world, 615)
    assert drained(world) == set()
    live(world, 570)
    assert drained(world) == set()
    live(world, 60)
    assert drained(world) == {"node-c03", "node-c04", "node-c05"}


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


# --- a person's word --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("word", "goes"), [("8", True), ("100", True), ("all", True), ("7", False), ("yes", False)])
@pytest.mark.parametrize("on", [kinds.NODE_POOL, kinds.NODE_CLASS], ids=str)
def test_a_word_for_as_many_as_were_deleted_lets_them_go(on: Kind, word: str, goes: bool) -> None:
    world = fleet(8)
    delete(world)
    finalized = on is kinds.NODE_POOL
    if finalized:
        world.put(node_pool_again(world))
    settle(world)
    assert drained(world) == set()
    annotate(world, on, "default", **{ALLOW: word})
    settle(world)
    assert len(drained(world)) == (8 if goes else 0)


def node_pool_again(world: World) -> Any:
    """Somebody applies it again: another object of the same name."""
    again = node_pool()
    return replace(again, metadata=replace(again.metadata, uid="uid-pool-again"))


def test_the_word_on_a_claim_is_for_that_claim() -> None:
    world = fleet(8)
    delete(world)
    annotate(world, kinds.NODE_CLAIM, "c06", **{ALLOW: "1"})
    settle(world)
    assert drained(world) == {"node-c06"}


def test_a_pools_word_is_noted_on_its_claims_for_it_may_be_gone_when_it_counts() -> None:
    world = fleet(8)
    annotate(world, kinds.NODE_POOL, "default", **{ALLOW: "8"})
    settle(world)
    assert {claim.metadata.annotations.get(labels.DELETION_ALLOWED) for claim in claims(world)} == {"8"}
    delete(world)
    assert world.get(kinds.NODE_POOL, "default") is None
    settle(world)
    assert len(drained(world)) == 8


def test_a_word_that_was_taken_back_counts_no_more() -> None:
    world = fleet(8)
    annotate(world, kinds.NODE_POOL, "default", **{ALLOW: "8"})
    settle(world)
    pool = world.get(kinds.NODE_POOL, "default")
    kept = {key: text for key, text in pool.metadata.annotations.items() if key != ALLOW}
    world.put(replace(pool, metadata=replace(pool.metadata, annotations=kept)))
    settle(world)
    delete(world)
    settle(world)
    assert drained(world) == set()


# --- what is said -----------------------------------------------------------------------------------------------
def test_a_held_claim_says_until_when_and_what_to_do() -> None:
    world = fleet(8)
    delete(world)
    first = world.decide()
    plan = settle(world)
    condition, until = told(world), rfc3339(world.now + WAIT)
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "TooMany")
    assert condition.message == (
        f"it was deleted with many others, and not by Kerf: its node is not drained before {until}. "
        "To allow it now: kubectl annotate nodeclaim c00 kerf.sh/allow-deletion=1"
    )
    warned = {event.ref.name: event.message for event in first.events if event.ref.kind == "NodeClaim"}
    assert sorted(warned) == held(world)
    assert warned["c00"] == condition.message
    assert [event.ref.kind for event in plan.events] == ["EC2NodeClass"], "each is told once"
    assert plan.gauges == {(PlanGauge.DELETIONS_HELD, (("nodepool", "default"),)): 8.0}


def test_without_its_pool_the_class_says_how_many_and_with_it_the_pool() -> None:
    world = fleet(8)
    delete(world)
    plan = settle(world)
    condition = told(world, kinds.NODE_CLASS, "default")
    assert condition is not None
    assert condition.message.startswith(
        "8 of 8 nodes, whose NodeClaims another client has deleted (c00, c01, c02, c03, c04, …)"
    )
    assert condition.message.endswith("kubectl annotate ec2nodeclass default kerf.sh/allow-deletion=8")
    assert [r.subject for r in plan.refusals if r.reason.code == HELD] == ["ec2nodeclass/default"]
    world.put(node_pool_again(world))
    settle(world)
    of_class, of_pool = told(world, kinds.NODE_CLASS, "default"), told(world, kinds.NODE_POOL, "default")
    assert of_class is not None
    assert of_pool is not None
    assert (of_class.status, of_pool.status) == ("False", "True")
    assert of_pool.message.endswith("kubectl annotate nodepool default kerf.sh/allow-deletion=8")


def test_a_pool_that_is_being_deleted_in_the_foreground_says_it_itself() -> None:
    world = fleet(8)
    pool = world.get(kinds.NODE_POOL, "default")
    world.put(replace(pool, metadata=replace(pool.metadata, finalizers=("foregroundDeletion",))))
    delete(world)
    settle(world)
    condition = told(world, kinds.NODE_POOL, "default")
    assert condition is not None
    assert condition.status == "True"


def test_when_it_is_over_everybody_says_so() -> None:
    world = fleet(8)
    delete(world)
    settle(world)
    annotate(world, kinds.NODE_CLASS, "default", **{ALLOW: "8"})
    settle(world)
    for kind, name in ((kinds.NODE_CLASS, "default"), (kinds.NODE_CLAIM, "c00")):
        condition = told(world, kind, name)
        assert condition is not None
        assert condition.status == "False"
    assert settle(world).gauges == {}


def test_what_waits_for_its_turn_says_so() -> None:
    world = fleet(8)
    delete(world)
    live(world, 600)
    condition = told(world, name="c07")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "WaitsForItsTurn")
