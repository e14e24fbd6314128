"""Few orphans are ended, many are not: then garbage collection says so, and waits for a person's word."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from kerf.lifecycle.garbage import garbage_guard
from kerf.lifecycle.garbage.garbage import collect
from kerf.lifecycle.garbage.garbage_guard import HALTED, WINDOW
from kerf.model import kinds
from kerf.model.gauges import PlanGauge
from kerf.model.kinds import Kind, Ref
from kerf.model.memory import Memory
from kerf.model.plan import DeleteObject, Plan, TerminateInstance
from kerf.model.writes import with_annotations
from kerf_api import labels
from kerf_api.v1 import conditions
from kerf_api.v1.meta import Condition
from tests.unit.lifecycle.world import World, node_claim, node_class, node_pool, prepared, running


def orphaned(number: int, world: World | None = None, tags: Mapping[str, str] = {}) -> World:
    """A world with so many orphans more, all old enough; EC2 gives no ID twice."""
    world = world or prepared()
    first = len(world.instances) + len(world.done(TerminateInstance))
    for place in range(first, first + number):
        world.add_instance(f"i-{place:03}", tags, launched=world.now - timedelta(minutes=5))
    return world


def ended(world: World) -> int:
    world.settle()
    return len(world.done(TerminateInstance))


def told(world: World, kind: Kind = kinds.NODE_POOL, name: str = "default") -> Condition | None:
    return conditions.get(world.get(kind, name).status.conditions, HALTED)


def status(world: World, **where: Any) -> str:
    condition = told(world, **where)
    return condition.status if condition is not None else ""


def allow(world: World, word: str, kind: Kind = kinds.NODE_POOL, name: str = "default") -> None:
    world.put(with_annotations(world.get(kind, name), {labels.ALLOW_GARBAGE: word}))


def wanted_word(world: World, **where: Any) -> str:
    """As a person reads it in the condition's message."""
    condition = told(world, **where)
    assert condition is not None
    return condition.message.rpartition("=")[2]


# --- how many are too many --------------------------------------------------------------------------------------
def test_five_are_ended_six_are_not() -> None:
    assert ended(orphaned(5)) == 5
    assert ended(orphaned(6)) == 0


def test_of_a_large_fleet_a_twentieth_is_ended_and_one_more_is_not() -> None:
    for many, halted in ((10, False), (11, True)):
        world = prepared()
        for number in range(200):
            world.add_instance(f"i-{number:03}", {}, launched=world.now - timedelta(minutes=5))
        for number in range(many, 200):
            note = {labels.INSTANCE: f"i-{number:03}"}
            world.put(node_claim(f"c{number}", meta={"annotations": note}))
        plan = collect(Memory().turn(world.snapshot()))
        assert [refusal.reason.code for refusal in plan.refusals] == ([HALTED] if halted else [])
        assert plan.actions[0].key.startswith("HaltGarbage" if halted else "NoteGarbage")


def test_the_young_count_but_are_not_ended_and_nobody_is_alarmed_by_them_alone() -> None:
    world = prepared()
    for number in range(6):
        world.add_instance(f"i-{number}", {})
    world.pass_time(59)
    assert world.decide() == Plan(next_due=world.now + timedelta(seconds=1))
    orphaned(1, world)
    assert ended(world) == 0
    assert status(world) == "True"


def test_what_is_ended_stands_on_the_pool_before_it_is_ended() -> None:
    world = orphaned(2)
    first = world.decide()
    assert [type(action).__name__ for action in first.actions] == ["PatchObject"]
    world.obey(first)
    assert "i-001" in world.get(kinds.NODE_POOL, "default").metadata.annotations[labels.GARBAGE]
    assert ended(world) == 2


def test_a_few_now_and_a_few_soon_add_up_and_an_hour_later_they_count_no_more() -> None:
    world = orphaned(3)
    assert ended(world) == 3
    world.pass_time(60)
    assert ended(orphaned(2, world)) == 5
    world.pass_time(60)
    assert ended(orphaned(1, world)) == 5
    assert status(world) == "True"

    later = orphaned(5)
    assert ended(later) == 5
    plan = later.decide()
    assert plan.next_due is not None
    assert plan.next_due <= later.now + WINDOW
    later.pass_time(WINDOW.total_seconds() + 1)
    later.settle()
    assert labels.GARBAGE not in later.get(kinds.NODE_POOL, "default").metadata.annotations
    assert ended(orphaned(5, later)) == 10


def test_what_could_not_be_ended_for_an_hour_still_may_be() -> None:
    world = orphaned(3)
    world.obey(world.decide())
    world.pass_time(WINDOW.total_seconds() + 1)
    assert ended(world) == 3


def test_what_cannot_be_ended_for_an_hour_is_no_reason_to_look_without_rest() -> None:
    world = orphaned(1)
    world.obey(world.decide())
    world.pass_time(WINDOW.total_seconds() + 1)
    asked = world.decide()
    assert [type(action).__name__ for action in asked.actions] == ["TerminateInstance"]
    assert asked.next_due is None or asked.next_due > world.now


# --- what is said -----------------------------------------------------------------------------------------------
def test_a_halt_is_a_refusal_an_event_a_condition_and_a_metric() -> None:
    world = orphaned(7)
    plan = world.decide()
    assert [(r.subject, r.reason.code) for r in plan.refusals] == [("nodepool/default", HALTED)]
    assert [(e.type, e.reason, e.ref.name) for e in plan.events] == [("Warning", HALTED, "default")]
    assert plan.gauges == {(PlanGauge.GARBAGE_COLLECTION_HELD, (("object", "nodepool/default"),)): 7.0}
    world.obey(plan)
    condition = told(world)
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "TooMany")
    assert "i-000" in condition.message
    assert labels.ALLOW_GARBAGE in condition.message


def test_while_it_halts_nothing_is_written_again() -> None:
    world = orphaned(7)
    world.settle()
    world.deeds.clear()
    for _ in range(20):
        world.pass_time(60)
        world.settle()
    assert world.deeds == []


def test_the_pool_is_as_ready_as_before() -> None:
    world = orphaned(7)
    world.settle()
    ready = conditions.get(world.get(kinds.NODE_POOL, "default").status.conditions, "Ready")
    assert ready is not None
    assert ready.status == "True"


# --- a person's word --------------------------------------------------------------------------------------------
def test_with_the_word_exactly_these_are_ended_and_the_word_is_used_up() -> None:
    world = orphaned(7)
    world.settle()
    allow(world, wanted_word(world))
    assert ended(world) == 7
    assert labels.ALLOW_GARBAGE not in world.get(kinds.NODE_POOL, "default").metadata.annotations
    assert status(world) == "False"
    assert ended(orphaned(5, world)) == 12


@pytest.mark.parametrize("word", ["true", "7", ""])
def test_another_word_allows_nothing(word: str) -> None:
    world = orphaned(7)
    world.settle()
    allow(world, word)
    assert ended(world) == 0


def test_the_word_for_these_is_not_the_word_for_one_more() -> None:
    world = orphaned(7)
    world.settle()
    word = wanted_word(world)
    allow(orphaned(1, world), word)
    assert ended(world) == 0
    assert wanted_word(world) != word


def test_the_word_makes_no_instance_old_enough() -> None:
    world = orphaned(7)
    world.add_instance("i-young", {})
    world.settle()
    allow(world, wanted_word(world))
    assert ended(world) == 7
    world.pass_time(60)
    assert ended(world) == 8


def test_halted_stays_halted_when_few_are_left() -> None:
    world = orphaned(7)
    world.settle()
    for name in ("i-000", "i-001", "i-002"):
        del world.instances[name]
    assert ended(world) == 0
    assert status(world) == "True"


def test_when_the_claims_are_back_it_goes_on_by_itself() -> None:
    world = orphaned(7)
    world.settle()
    world.instances.clear()
    world.settle()
    assert status(world) == "False"
    assert ended(orphaned(1, world)) == 1


# --- who is asked -----------------------------------------------------------------------------------------------
def test_each_pool_is_asked_about_its_own() -> None:
    world = prepared()
    world.put(node_pool("other"))
    world.settle()
    orphaned(4, world, {labels.TAG_NODEPOOL: "default"})
    orphaned(3, world, {labels.TAG_NODEPOOL: "other"})
    world.settle()
    assert (status(world), status(world, name="other")) == ("True", "True")
    allow(world, wanted_word(world, name="other"), name="other")
    assert ended(world) == 3
    assert (status(world), status(world, name="other")) == ("True", "False")


def test_without_its_pool_the_class_is_asked_and_without_any_nobody_can_be() -> None:
    world = World(node_class())
    world.settle()
    tags = {labels.TAG_NODEPOOL: "gone", labels.TAG_NODECLASS: "default"}
    orphaned(7, world, tags)
    world.settle()
    where: dict[str, Any] = {"kind": kinds.NODE_CLASS}
    assert status(world, **where) == "True"
    allow(world, wanted_word(world, **where), **where)
    assert ended(world) == 7

    nobody = orphaned(1, World(), tags)
    assert ended(nobody) == 0
    plan = nobody.decide()
    assert [(r.subject, r.reason.code) for r in plan.refusals] == [("garbage", HALTED)]
    assert sum(plan.gauges.values()) == 1


#: The second one has a time without a zone.
@pytest.mark.parametrize("text", ["{", '[{"at":"2026-01-01T11:59:00","instances":["i-9"]}]'])
def test_a_list_that_cannot_be_read_halts_until_a_person_says_otherwise(text: str) -> None:
    world = orphaned(1)
    world.put(with_annotations(world.get(kinds.NODE_POOL, "default"), {labels.GARBAGE: text}))
    assert ended(world) == 0
    condition = told(world)
    assert condition is not None
    assert condition.reason == "Unreadable"
    allow(world, wanted_word(world))
    assert ended(world) == 1


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59Z", "2026-01-01T13:00:00Z"])
def test_a_list_from_the_future_does_not_count_against_the_instances_of_today(at: str) -> None:
    world = orphaned(1)
    many = ",".join(f'"i-{number}"' for number in range(90, 99))
    text = f'[{{"at":"{at}","instances":[{many}]}}]'
    world.put(with_annotations(world.get(kinds.NODE_POOL, "default"), {labels.GARBAGE: text}))
    assert ended(world) == 1


def test_a_bug_in_garbage_collection_keeps_nothing_else_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(*given: object) -> None:
        raise OverflowError("date value out of range")

    monkeypatch.setattr(garbage_guard, "judge", judge)
    world = prepared(node_claim("a"))
    plan = world.settle()
    assert [(r.subject, r.reason.code) for r in plan.refusals] == [("garbage", "InternalError")]
    assert world.claim().is_true("Launched")


# --- claims without an instance, nodes without a claim ----------------------------------------------------------
def test_claims_that_lose_their_instances_all_at_once_are_held_too() -> None:
    world = running(*(node_claim(f"c{number}") for number in range(8)))
    world.pass_time(60)
    world.instances.clear()
    for number in range(8):
        world.set_ready(f"node-c{number}", False)
    world.pass_time(5)
    world.settle()
    assert world.done(DeleteObject) == []
    assert status(world) == "True"
    allow(world, wanted_word(world))
    world.settle()
    assert len(world.done(DeleteObject)) >= 8


def test_claims_without_an_instance_and_a_node_need_no_permission() -> None:
    """EC2 has reclaimed spot instances without a queue of its messages, and their Nodes are deleted, say."""
    world = running(*(node_claim(f"c{number}") for number in range(9)))
    world.pass_time(60)
    world.instances.clear()
    for number in range(8):
        world.objects.pop(kinds.ref(world.node(f"node-c{number}")))
    world.set_ready("node-c8", False)
    world.pass_time(5)
    world.settle()
    claims = {f"c{number}" for number in range(9)}
    assert claims <= {action.ref.name for action in world.done(DeleteObject)}
    assert status(world) == ""


def test_an_empty_list_of_instances_takes_no_claim_whose_node_is_ready() -> None:
    world = running(*(node_claim(f"c{number}") for number in range(3)))
    world.instances.clear()
    world.pass_time(5)
    world.settle()
    assert world.deeds == []


def test_no_claim_at_all_proves_nothing_against_a_node_that_is_ready() -> None:
    world = running(node_claim("a"))
    world.objects.pop(Ref("NodeClaim", "", "a"))
    world.add_instance("i-lost", {})
    world.pass_time(60)
    assert ended(world) == 0
    condition = told(world)
    assert condition is not None
    assert condition.reason == "Doubtful"
    assert "node-a" in condition.message
    world.set_ready("node-a", False)
    assert ended(world) == 2
    assert status(world) == "False"


def test_a_claim_that_cannot_be_read_may_stand_for_any_instance() -> None:
    world = orphaned(1)
    claim = world.put(node_claim("torn", meta={"unreadable": "Expected `str`, got `int` - at `$.status.providerID`"}))
    assert ended(world) == 0
    condition = told(world)
    assert condition is not None
    assert (condition.reason, "nodeclaim/torn" in condition.message) == ("Doubtful", True)
    world.objects.pop(kinds.ref(claim))
    assert ended(world) == 1
