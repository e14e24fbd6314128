"""Claims that are about to expire: announced, their successors made ready, and ended in time or as budgets allow."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.command import Command, Failure, command_of
from kerf.disruption.forced.expiration import end_of
from kerf.model.annotations import text_of
from kerf.model.plan import DeleteObject, Plan
from kerf.model.settings import FeatureGates, Settings
from kerf_api import labels
from kerf_api.v1.meta import Condition
from tests.unit.disruption.worlds import (
    HOUR,
    NOW,
    World,
    claim,
    elsewhere,
    never,
    node,
    nowhere,
    on_new_nodes,
    pdb,
    pod,
    pool,
    unjoined,
)

MINUTE = timedelta(minutes=1)
WITHIN = {"settings": Settings("test", expire_within_budgets=True)}
#: Of a life of 40 minutes the last two are for the successor.
LIFE: dict[str, Any] = {"expireAfter": "40m", "consolidatable": False}


def aged(minutes: float, name: str = "a", **more: Any) -> list[Any]:
    own = claim(name, since=NOW - minutes * MINUTE, **{**LIFE, **more})
    return [own, node(own)]


def announced(world: World, name: str = "a") -> Condition | None:
    found: Condition | None = world.objects[f"nodeclaim/{name}"].condition("Expiring")
    return found


def under_command(world: World, name: str = "a") -> Command | None:
    return command_of(world.objects[f"nodeclaim/{name}"].metadata.annotations)


def deleted(world: World, name: str = "a") -> bool:
    return bool(world.objects[f"nodeclaim/{name}"].metadata.deleting)


def told(plan: Plan) -> list[tuple[str, str, str]]:
    return [(event.ref.kind, event.type, event.message) for event in plan.events if event.reason == "Expiring"]


# --- the announcement -------------------------------------------------------------------------------------------
def test_nothing_is_said_before_the_time_of_the_successor() -> None:
    world = World.of(pool(), *aged(37.9), pod("p", "a"))
    plan = world.tick()
    assert announced(world) is None
    assert plan.next_due == NOW + 0.1 * MINUTE


def test_a_claim_says_when_it_goes_before_anything_is_tainted() -> None:
    world = World.of(pool(), *aged(38), pod("p", "a"), ask=never)
    plan = world.tick()
    condition = announced(world)
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "Expiring")
    assert "is removed at 2026-03-04T12:02:00Z or as soon as its successor is ready" in condition.message
    assert "its drain has no time limit (no terminationGracePeriod)" in condition.message
    assert {(kind, type_) for kind, type_, _ in told(plan)} == {("Node", "Normal"), ("NodeClaim", "Normal")}
    assert not world.objects["node/node-a"].spec.taints


def test_it_says_how_long_its_drain_may_take() -> None:
    world = World.of(pool(), *aged(38, terminationGracePeriod="1h"), pod("p", "a"))
    world.tick()
    condition = announced(world)
    assert condition is not None
    assert "its drain is forced at 2026-03-04T13:02:00Z (terminationGracePeriod of 1h)" in condition.message


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ([pod("p", "a", annotations={labels.DO_NOT_DISRUPT: "true"})], "pod shop/p is annotated"),
        ([pod("p", "a"), pdb("held")], "PodDisruptionBudget shop/held does not allow the eviction of pod shop/p"),
    ],
    ids=["do-not-disrupt", "a budget of its pods"],
)
def test_what_will_hold_its_drain_is_named_with_the_pod(others: list[Any], words: str) -> None:
    world = World.of(pool(), *aged(38), *others)
    plan = world.tick()
    condition = announced(world)
    assert condition is not None
    assert words in condition.message
    assert all(type_ == "Warning" and words in message for _, type_, message in told(plan))


def test_it_is_announced_once() -> None:
    world = World.of(pool(), *aged(38), pod("p", "a"), ask=elsewhere("b"))
    assert told(world.tick()) != []
    world.settle()
    plan = world.tick()
    assert (plan.actions, plan.events) == ((), ())


# --- the successor ----------------------------------------------------------------------------------------------
def test_pods_that_need_a_new_node_have_it_before_the_old_one_goes() -> None:
    world = World.of(pool(), *aged(38), pod("p", "a"), ask=on_new_nodes("m5.large"))
    world.settle()
    command = under_command(world)
    assert command is not None
    assert command.reason == "Expired"
    assert not deleted(world)
    (successor,) = command.replacements
    world.join(successor)
    world.settle()
    assert deleted(world)
    assert world.now < NOW + 2 * MINUTE


def test_protected_pods_do_not_hold_the_end_of_one_whose_successor_is_ready() -> None:
    objects = [*aged(38), pod("p", "a"), pdb("held"), pod("q", "a", annotations={labels.DO_NOT_DISRUPT: "true"})]
    world = World.of(pool(budgets=[{"nodes": "0"}]), *objects, ask=on_new_nodes("m5.large"))
    held = claim("b", expireAfter="Never")
    world.objects |= {"nodeclaim/b": held, "node/node-b": node(held)}
    world.edit("node/node-a", {"metadata": {"annotations": {labels.DO_NOT_DISRUPT: "true"}}})
    world.objects["pdb/shop/held"] = pdb("held", allowed=1)
    world.settle()
    command = under_command(world)
    assert command is not None
    world.objects["pod/shop/late"] = pod("late", "a")
    world.join(command.replacements[0])
    world.settle()
    assert deleted(world)
    assert not deleted(world, "b")


def test_a_successor_that_never_comes_delays_nothing() -> None:
    world = World.of(pool(), *aged(38), pod("p", "a"), ask=on_new_nodes("m5.large"))
    world.settle()
    assert not deleted(world)
    world.now = NOW + 2 * MINUTE
    plan = world.tick()
    assert [a.reason.code for a in plan.actions if isinstance(a, DeleteObject)] == ["Expired"]


def test_a_successor_that_fails_is_tried_again_after_a_while() -> None:
    world = World.of(pool(), *aged(0, expireAfter="720h"), pod("p", "a"), ask=on_new_nodes("m5.large"))
    own = world.objects["nodeclaim/a"]
    end = end_of(world.snapshot(), own, NOW + 720 * HOUR)
    assert end is not None
    world.now = end.prepared_from
    world.settle()
    first = under_command(world)
    assert first is not None
    del world.objects[f"nodeclaim/{first.replacements[0]}"]
    world.settle()
    assert under_command(world) is None
    assert not world.objects["node/node-a"].spec.taints
    assert not deleted(world)
    world.now += timedelta(seconds=61)
    world.settle()
    second = under_command(world)
    assert second is not None
    assert second.replacements != first.replacements


@pytest.mark.parametrize(
    ("pods", "ask", "reason", "words"),
    [
        ([pod("p", "a")], elsewhere("b"), "SuccessorNotNeeded", "its pods fit on other nodes"),
        ([], never, "SuccessorNotNeeded", "no pod of it needs another node"),
        ([pod("p", "a", owner="DaemonSet")], never, "SuccessorNotNeeded", "no pod of it needs another node"),
        ([pod("p", "a")], nowhere, "NoPlaceForPods", "pod shop/p: no room"),
    ],
    ids=["elsewhere", "empty", "daemons", "nowhere"],
)
def test_where_nothing_is_to_be_bought_the_end_is_thought_through_once(
    pods: list[Any], ask: Any, reason: str, words: str
) -> None:
    other = claim("b", expireAfter="Never", consolidatable=False)
    world = World.of(pool(), *aged(38), other, node(other), *pods, ask=ask)
    world.settle()
    condition = announced(world)
    assert condition is not None
    assert condition.reason == reason
    assert condition.message.startswith("is removed at 2026-03-04T12:02:00Z")
    assert words in condition.message
    assert not world.objects["node/node-a"].spec.taints
    world.ask = never
    world.settle()
    assert not deleted(world)
    world.now = NOW + 2 * MINUTE
    world.settle()
    assert deleted(world)


def test_successors_are_made_ready_one_command_after_the_other() -> None:
    """A simulation reckons only with what can be seen of the ones before."""
    world = World.of(pool(), *aged(38), *aged(38.5, "b"), pod("p", "a"), pod("q", "b"), ask=on_new_nodes("m5.large"))
    world.tick()
    world.tick()
    assert [name for name in "ab" if under_command(world, name)] == ["b"]
    world.settle()
    assert under_command(world, "a") is not None


def test_a_member_of_a_static_pool_gets_a_successor_from_the_template_if_limits_allow() -> None:
    gate = {"settings": Settings("test", gates=FeatureGates(static_capacity=True))}
    world = World.of(pool(replicas=1), *aged(38), pod("p", "a"), facts=gate, ask=never)
    world.settle()
    command = under_command(world)
    assert command is not None
    assert len(command.replacements) == 1


def beside_one_that_has_yet_to_join(minutes: float, *, replicas: int = 2, **more: Any) -> World:
    """Member `a` of a static NodePool whose latest two nodes have not joined, and `b` of another NodePool; both are so
    old, and have pods that need new nodes."""
    static = unjoined(pool("static", replicas=replicas), 2)
    coming = claim("new", pool_name="static")
    coming = replace(coming, status=replace(coming.status, conditions=coming.status.conditions[:1]))
    settings = Settings("test", gates=FeatureGates(static_capacity=True), **more)
    members = [*aged(minutes, pool_name="static"), coming, pod("p", "a")]
    others = [pool(), *aged(minutes, "b"), pod("q", "b")]
    return World.of(static, *members, *others, facts={"settings": settings}, ask=on_new_nodes("m5.large"))


def keep_failing(world: World) -> None:
    """Two more nodes of the static NodePool have not joined."""
    failed = unjoined(pool("static"), 2, at=world.now - MINUTE).metadata.annotations[labels.REGISTRATIONS]
    world.edit("nodepool/static", {"metadata": {"annotations": {labels.REGISTRATIONS: failed}}})


def test_a_member_waits_for_its_successor_while_another_one_has_yet_to_join() -> None:
    """Whether it gets one is not decided before; others do not wait for that."""
    world = beside_one_that_has_yet_to_join(38)
    world.settle()
    found = announced(world)
    assert found is not None
    assert found.reason == "Expiring"
    assert [name for name in "ab" if under_command(world, name)] == ["b"]
    assert world.plan().next_due is not None


def test_a_member_waits_too_while_the_one_that_has_yet_to_join_is_one_too_many() -> None:
    """As the successor of another member is, until that has gone."""
    world = beside_one_that_has_yet_to_join(38, replicas=1)
    world.settle()
    found = announced(world)
    assert found is not None
    assert found.reason == "Expiring"


def test_within_budgets_a_member_waits_for_a_day_until_a_node_joins() -> None:
    world = beside_one_that_has_yet_to_join(45, expire_within_budgets=True)
    for hours in (0, 12, 23):
        world.now = NOW + hours * HOUR
        keep_failing(world)
        world.settle()
        assert not deleted(world)
    world.now = NOW + 24 * HOUR
    keep_failing(world)
    world.tick()
    found = announced(world)
    assert found is not None
    assert found.reason == "NodesNotRegistered"
    world.settle()
    assert deleted(world)


# --- within budgets ---------------------------------------------------------------------------------------------
def within(nodes: str, *objects: Any, now: datetime = NOW, **more: Any) -> World:
    return World.of(pool(budgets=[{"nodes": nodes}]), *objects, facts=WITHIN, now=now, **more)


def test_what_has_expired_waits_for_a_budget_if_it_is_to() -> None:
    world = within("0", *aged(41), pod("p", "a"), ask=nowhere)
    world.settle()
    plan = world.tick()
    assert not deleted(world)
    assert ("node/node-a", "Budget") in [(r.subject, r.reason.code) for r in plan.refusals]
    condition = announced(world)
    assert condition is not None
    assert "on, as its NodePool's budgets allow" in condition.message
    world.objects["nodepool/default"] = pool(budgets=[{"nodes": "1"}])
    world.settle()
    assert deleted(world)


def test_what_a_budget_held_beyond_its_end_has_its_successor_first() -> None:
    world = within("1", *aged(90), pod("p", "a"), *aged(90, "b"), pod("q", "b"), ask=on_new_nodes("m5.large"))
    world.settle()
    command = under_command(world)
    assert command is not None
    assert (command.reason, len(command.replacements)) == ("Expired", 1)
    assert not any(deleted(world, name) for name in "ab")


def test_a_successor_that_cannot_be_had_is_not_waited_for_beyond_the_end() -> None:
    failed = {labels.COMMAND_FAILED: text_of(Failure(at=NOW - MINUTE))}
    world = within("1", *aged(90, annotations=failed), pod("p", "a"), ask=never)
    world.settle()
    assert deleted(world)


def test_no_more_go_than_a_budget_lets() -> None:
    world = within("2", *[value for name in "abcd" for value in aged(41, name)])
    world.settle()
    assert [name for name in "abcd" if deleted(world, name)] == ["a", "b"]


def test_what_was_over_when_kerf_took_over_waits_for_a_budget_and_says_until_when() -> None:
    old = aged(500, taken_over=True)
    facts = {"leading_since": NOW - MINUTE}
    world = World.of(pool(budgets=[{"nodes": "0"}]), *old, pod("p", "a"), facts=facts, ask=never)
    world.settle()
    assert not deleted(world)
    condition = announced(world)
    assert condition is not None
    assert "as its NodePool's budgets allow, at the latest at 2026-03-05T11:59:00Z" in condition.message
    world = World.of(pool(budgets=[{"nodes": "1"}]), *old, pod("p", "a"), facts=facts, ask=on_new_nodes("m5.large"))
    world.settle()
    assert under_command(world) is not None


def test_a_budget_that_names_reasons_does_not_hold_for_expiration() -> None:
    world = World.of(pool(budgets=[{"nodes": "0", "reasons": ["Drifted"]}]), *aged(41), facts=WITHIN)
    world.settle()
    assert deleted(world)


def test_a_successor_needs_a_budget_too() -> None:
    world = within("0", *aged(38), pod("p", "a"), ask=never)
    world.settle()
    assert under_command(world) is None
    assert announced(world) is not None
