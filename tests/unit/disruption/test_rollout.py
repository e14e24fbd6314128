"""The conditions by which a roll-out can be waited for, and that of budgets."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace

from kerf.disruption.command import Failure as CommandFailure
from kerf.disruption.command import command_of
from kerf.disruption.drift import rollout
from kerf.disruption.view import view
from kerf.model.annotations import text_of
from kerf.model.failures import Failure
from kerf.model.instants import SKEW
from kerf_api import labels
from kerf_api.v1 import hashes
from kerf_api.v1.meta import Condition
from kerf_api.v1.nodepool import NodePool
from tests.unit.disruption.worlds import (
    HOUR,
    NOW,
    World,
    claim,
    never,
    node,
    on_new_nodes,
    pdb,
    pod,
    pool,
    snapshot,
)

KIND = "nodepool/default"


def hashed(**disruption: Any) -> NodePool:
    """A pool with the hash of its template."""
    bare = pool(**disruption)
    own = {labels.NODEPOOL_HASH: hashes.nodepool_hash(bare), labels.NODEPOOL_HASH_VERSION: "v3"}
    return replace(bare, metadata=replace(bare.metadata, annotations=own))


def drifted(name: str = "a", **more: Any) -> list[Any]:
    own = claim(name, drifted=NOW - HOUR, consolidatable=False, **more)
    return [own, node(own)]


def fresh(*names: str) -> list[Any]:
    return [v for name in names for own in [claim(name, consolidatable=False)] for v in (own, node(own))]


def said(world: World, type_: str) -> Condition | None:
    return next((c for c in world.objects[KIND].status.conditions if c.type == type_), None)


def words(world: World) -> str:
    condition = said(world, "UpToDate")
    assert condition is not None
    return condition.message


def states(world: World) -> dict[str, tuple[str, str]]:
    types = ("UpToDate", "Reconciling", "Stalled")
    return {c.type: (c.status, c.reason) for c in world.objects[KIND].status.conditions if c.type in types}


# --- a roll-out -------------------------------------------------------------------------------------------------
def test_a_pool_without_drifted_nodes_is_up_to_date() -> None:
    world = World.of(hashed(), *fresh("a", "b"))
    world.settle()
    assert states(world) == {"UpToDate": ("True", "UpToDate")}
    condition = said(world, "UpToDate")
    assert condition is not None
    assert condition.observed_generation == world.objects[KIND].metadata.generation
    assert world.tick().actions == ()


def test_it_goes_on_until_the_last_drifted_node_has_gone() -> None:
    world = World.of(hashed(), *drifted(), *fresh("b", "c"), pod("p", "a"), ask=on_new_nodes("m5.large"))
    world.settle()
    assert states(world) == {"UpToDate": ("False", "RollingOut"), "Reconciling": ("True", "RollingOut")}
    assert words(world) == "2 of 3 nodes are up to date, 1 being replaced"
    (successor,) = [name.removeprefix("nodeclaim/") for name in world.objects if name.startswith("nodeclaim/default-")]
    world.join(successor)
    world.settle()
    assert world.objects["nodeclaim/a"].metadata.deleting
    assert words(world) == "3 of 4 nodes are up to date, 1 being replaced"
    del world.objects["nodeclaim/a"], world.objects["node/node-a"]
    world.settle()
    assert states(world) == {"UpToDate": ("True", "UpToDate")}


def test_nodes_that_wait_for_a_budget_are_behind_and_not_stalled() -> None:
    world = World.of(hashed(budgets=[{"nodes": "0"}]), *drifted(), *fresh("b"), pod("p", "a"))
    world.settle()
    world.now += HOUR
    world.settle()
    assert states(world) == {"UpToDate": ("False", "WaitingForBudget"), "Reconciling": ("True", "WaitingForBudget")}
    assert words(world) == "1 of 2 nodes are up to date, 1 waiting for their turn"


@pytest.mark.parametrize(
    ("others", "text"),
    [
        ([pod("p", "a"), pdb("held")], "PodDisruptionBudget shop/held does not allow the eviction of pod shop/p"),
        ([pod("p", "a", annotations={labels.DO_NOT_DISRUPT: "true"})], "pod shop/p is annotated"),
    ],
    ids=["a budget of its pods", "do-not-disrupt"],
)
def test_what_holds_the_last_nodes_is_named_and_after_a_while_the_roll_out_is_stalled(
    others: list[Any], text: str
) -> None:
    world = World.of(hashed(), *drifted(), *fresh("b"), *others)
    world.settle()
    blocked = {"UpToDate": ("False", "Blocked"), "Reconciling": ("True", "Blocked")}
    assert states(world) == {**blocked, "Stalled": ("Unknown", "Blocked")}
    assert words(world).startswith("1 of 2 nodes are up to date, 1 blocked; node-a: ")
    assert text in words(world)
    plan = world.plan()
    assert plan.next_due is not None
    assert plan.next_due <= NOW + timedelta(minutes=5)
    world.now = NOW + timedelta(minutes=5)
    world.settle()
    assert states(world) == {**blocked, "Stalled": ("True", "Blocked")}
    assert world.tick().actions == ()


def test_it_is_not_stalled_any_more_when_what_held_it_lets_go() -> None:
    world = World.of(hashed(), *drifted(), *fresh("b"), pod("p", "a"), pdb("held"), ask=on_new_nodes("m5.large"))
    world.settle()
    world.now += HOUR
    world.settle()
    assert states(world)["Stalled"] == ("True", "Blocked")
    name = next(key for key, value in world.objects.items() if value.metadata.name == "held")
    world.objects[name] = pdb("held", allowed=1)
    world.settle()
    assert states(world) == {"UpToDate": ("False", "RollingOut"), "Reconciling": ("True", "RollingOut")}


def test_one_that_moves_is_not_stalled_by_another_that_is_held() -> None:
    objects = [*drifted(), *drifted("b"), pod("p", "a"), pod("q", "b", labels_={"app": "free"}), pdb("held")]
    world = World.of(hashed(), *objects, ask=on_new_nodes("m5.large"))
    world.settle()
    world.now += timedelta(minutes=6)
    world.settle()
    assert states(world)["UpToDate"] == ("False", "RollingOut")
    assert "1 being replaced, 1 blocked; node-a: " in words(world)
    assert said(world, "Stalled") is None


def failure(verb: str, subject: str, outcome: str = "forbidden") -> Failure:
    return Failure(verb, subject, outcome, "no permission", NOW - HOUR, NOW, 9)


@pytest.mark.parametrize(
    ("verb", "subject"),
    [
        ("EvictPod", "pod/shop/p"),
        ("DeleteObject", "nodeclaim/a"),
        ("TerminateInstance", "instance/i-a"),
        ("Taint", "node/node-a"),
        ("CreateNodeClaim", "nodeclaim/{successor}"),
        ("LaunchInstances", "nodepool/default"),
    ],
)
def test_a_node_on_which_an_action_fails_is_not_said_to_be_replaced(verb: str, subject: str) -> None:
    world = World.of(hashed(), *drifted(), *fresh("b"), pod("p", "a"), ask=on_new_nodes("m5.large"))
    world.settle()
    (successor,) = [key.removeprefix("nodeclaim/") for key in world.objects if key.startswith("nodeclaim/default-")]
    world.edit(f"nodeclaim/{successor}", {"metadata": {"annotations": {labels.LAUNCH_GROUP: "g"}}})
    one = failure(verb, subject.format(successor=successor))
    world.facts["failures"] = {f"{one.verb} {one.object}": one}
    world.settle()
    fails = {"UpToDate": ("False", "ActionFails"), "Reconciling": ("True", "ActionFails")}
    assert states(world) == {**fails, "Stalled": ("Unknown", "ActionFails")}
    assert words(world) == (
        "1 of 2 nodes are up to date, 1 not replaced because an action fails; "
        f"node-a: {verb} is forbidden: no permission"
    )
    world.now += timedelta(minutes=5)
    world.settle()
    assert states(world)["Stalled"] == ("True", "ActionFails")
    world.facts["failures"] = {}
    world.settle()
    assert states(world) == {"UpToDate": ("False", "RollingOut"), "Reconciling": ("True", "RollingOut")}


def test_a_roll_out_that_goes_on_names_the_node_on_which_an_action_fails() -> None:
    """An attempt that will be made again, or a failure on another node, is not one."""
    objects = [*drifted(), *drifted("b"), *fresh("c"), pod("p", "a"), pod("q", "b"), pod("r", "c")]
    world = World.of(hashed(budgets=[{"nodes": "2"}]), *objects, ask=on_new_nodes("m5.large"))
    world.settle()
    some = (failure("EvictPod", "pod/shop/p"), failure("EvictPod", "pod/shop/r"))
    late = failure("EvictPod", "pod/shop/q", "conflict")
    world.facts["failures"] = {f"{one.verb} {one.object}": one for one in (*some, late)}
    world.settle()
    assert states(world)["UpToDate"] == ("False", "RollingOut")
    assert words(world).startswith("1 of 3 nodes are up to date, 1 being replaced, 1 not replaced because")
    assert said(world, "Stalled") is None


def test_an_action_that_fails_on_a_shared_replacement_is_named_for_each_node() -> None:
    """Nodes that are disrupted together share their replacements."""
    objects = [*drifted(), *drifted("b"), *fresh("c"), pod("p", "a"), pod("q", "b")]
    world = World.of(hashed(budgets=[{"nodes": "2"}]), *objects, ask=on_new_nodes("m5.large"))
    world.settle()
    commands = {name: command_of(world.objects[f"nodeclaim/{name}"].metadata.annotations) for name in "ab"}
    assert commands["a"] is not None
    assert commands["b"] is not None
    shared = structs.replace(commands["b"], replacements=commands["a"].replacements)
    world.edit("nodeclaim/b", {"metadata": {"annotations": {labels.COMMAND: text_of(shared)}}})
    one = failure("CreateNodeClaim", f"nodeclaim/{commands['a'].replacements[0]}")
    world.facts["failures"] = {f"{one.verb} {one.object}": one}
    world.tick()
    assert "2 not replaced because an action fails; node-a: " in words(world)
    assert "; node-b: CreateNodeClaim is forbidden: no permission" in words(world)


@pytest.mark.parametrize(
    ("ahead", "due"),
    [
        (timedelta(hours=1), timedelta(hours=1) - SKEW),
        (timedelta(0), timedelta(seconds=60)),
        (-timedelta(hours=9), None),
    ],
)
def test_what_holds_a_node_comes_due_when_its_failure_counts_in_another_way(
    ahead: timedelta, due: timedelta | None
) -> None:
    """A failure that was stamped ahead of now counts once the clock is there."""
    at = text_of(CommandFailure(at=NOW + ahead, count=1))
    found = snapshot([hashed(), *drifted(annotations={labels.COMMAND_FAILED: at})])
    _, until = rollout._held(view(found), "a")
    assert until == (None if due is None else NOW + due)


def test_the_next_try_is_written_as_every_other_instant() -> None:
    at = text_of(CommandFailure(at=NOW, count=1))
    world = World.of(hashed(), *drifted(annotations={labels.COMMAND_FAILED: at}))
    world.settle()
    assert re.search(r"; next try at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", words(world)), words(world)


def test_only_the_first_few_that_are_held_are_named() -> None:
    objects = [v for name in "abcde" for v in (*drifted(name), pod(f"p{name}", name))]
    world = World.of(hashed(), *objects, pdb("held"))
    world.settle()
    assert words(world).startswith("0 of 5 nodes are up to date, 5 blocked; node-a: ")
    assert words(world).endswith("; and 2 more")


# --- when it is too early to say ----------------------------------------------------------------------------------
def test_nothing_is_said_of_a_template_that_has_not_been_hashed_yet() -> None:
    """Its nodes are still judged by the one before; to call them up to date would end every wait at once."""
    changed = replace(hashed(), metadata=replace(hashed().metadata, annotations={labels.NODEPOOL_HASH: "another"}))
    world = World.of(changed, *fresh("a"))
    world.tick()
    assert states(world) == {}


def test_a_claim_whose_drift_is_not_written_yet_is_behind() -> None:
    own = claim("a", annotations={labels.NODEPOOL_HASH: "old", labels.NODEPOOL_HASH_VERSION: "v3"})
    world = World.of(hashed(budgets=[{"nodes": "0"}]), own, node(own), ask=never)
    world.tick()
    assert states(world)["UpToDate"][0] == "False"


# --- budgets ----------------------------------------------------------------------------------------------------
def test_a_budget_that_cannot_be_read_is_a_condition_and_an_event() -> None:
    world = World.of(hashed(budgets=[{"nodes": "10%"}, {"nodes": "1", "schedule": "daily"}]), *fresh("a"))
    plan = world.tick()
    condition = said(world, "BudgetsValid")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "InvalidBudget")
    assert "budgets[1]: schedule and duration must be given together" in condition.message
    events = [(e.type, e.ref.kind, e.message) for e in plan.events if e.reason == "InvalidBudget"]
    assert events == [("Warning", "NodePool", condition.message)]
    world.objects[KIND] = hashed()
    world.settle()
    condition = said(world, "BudgetsValid")
    assert condition is not None
    assert condition.status == "True"
