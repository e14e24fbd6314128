"""Whether claims become nodes, and what pools say of it (133 and 136 to 140 of the disruption catalogue)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed

import pytest
from msgspec.structs import replace

from kerf.model import kinds
from kerf.model.plan import DeleteObject, Plan
from kerf_api import labels
from kerf_api.v1.nodepool import NodePool
from tests.unit.lifecycle.test_registration_health import born, fails, health, owned, succeeds
from tests.unit.lifecycle.world import FACTS, World, node_claim, node_class, prepared, running

MINUTES = 60


def launched() -> World:
    world = prepared(node_claim("a"))
    world.settle()
    return world


def deletions(plan: Plan) -> list[str]:
    """Their reasons."""
    return [action.reason.code for action in plan.actions if isinstance(action, DeleteObject)]


def pool(world: World, name: str = "default") -> NodePool:
    found: NodePool = world.get(kinds.NODE_POOL, name)
    return found


# --- 133 --------------------------------------------------------------------------------------------------------
def measured(memory: str, *, ready: bool = True) -> World:
    """A node with this much memory, whose claim asks for some of it and was promised 8Gi."""
    world = prepared(node_claim("a", resources={"requests": {"memory": "1Gi", "ephemeral-storage": "1Gi"}}))
    world.settle()
    node = world.join(world.claim(), ready=ready)
    capacity = {**node.status.capacity, "memory": memory, "cpu": "1"}
    world.put(replace(node, status=replace(node.status, capacity=capacity)))
    return world


@pytest.mark.parametrize(
    ("memory", "found"),
    [
        ("8Gi", ("True", "ConsistentStateFound")),
        ("7373Mi", ("True", "ConsistentStateFound")),
        ("7372Mi", ("False", "ConsistencyCheckFailed")),
    ],
)
def test_133_a_node_that_is_far_smaller_than_promised_is_reported_once(memory: str, found: tuple[str, str]) -> None:
    """By more than a tenth, of something that its claim asks for."""
    world = measured(memory)
    plans = [world.decide()]
    while plans[-1].actions:
        world.obey(plans[-1])
        plans.append(world.decide())
    assert world.condition("ConsistentStateFound") == found
    assert world.condition("Ready") == ("True", "Ready")
    told = [e.message for plan in plans for e in plan.events if e.reason == "FailedConsistencyCheck"]
    assert [("memory" in words, "cpu" in words) for words in told] == [(True, False)] * (found[0] == "False")


def test_133_before_a_node_is_usable_nothing_is_reported() -> None:
    """Nor of what is not ours."""
    world = measured("1Gi", ready=False)
    world.settle()
    assert world.condition("ConsistentStateFound") is None
    ref = {"group": "other.io", "kind": "Thing", "name": "x"}
    foreign = prepared(node_claim("a", nodeClassRef=ref))
    assert foreign.decide().actions == ()


# --- 136 --------------------------------------------------------------------------------------------------------
def unlaunched() -> World:
    """A claim of which EC2 has given nothing, and no reason."""
    world = prepared(node_claim("a"))
    world.given = 0
    world.settle()
    return world


@pytest.mark.parametrize(
    ("start", "minutes", "reason"), [(unlaunched, 5, "LaunchTimeout"), (launched, 15, "RegistrationTimeout")]
)
def test_136_a_claim_that_gets_nowhere_is_given_up(start: Callable[[], World], minutes: int, reason: str) -> None:
    world = start()
    world.pass_time(minutes * MINUTES - 1)
    assert deletions(world.decide()) == []
    world.pass_time(1)
    assert deletions(world.decide()) == [reason]


def test_136_a_claim_that_has_registered_is_kept() -> None:
    world = launched()
    world.join(world.claim(), ready=False)
    world.settle()
    world.pass_time(100_000)
    assert deletions(world.decide()) == []


@pytest.mark.parametrize(("type_", "minutes"), [("Launched", 5), ("Registered", 15)])
def test_136_the_clock_starts_when_the_condition_changed(type_: str, minutes: int) -> None:
    """Not with the claim, which is older."""
    world = launched() if type_ == "Registered" else unlaunched()
    world.pass_time(4 * MINUTES)
    known = world.claim()
    rows = tuple(replace(c, last_transition_time=world.now) if c.type == type_ else c for c in known.status.conditions)
    world.put(replace(known, status=replace(known.status, conditions=rows)))
    world.pass_time(minutes * MINUTES - 1)
    assert deletions(world.decide()) == []
    world.pass_time(1)
    assert len(deletions(world.decide())) == 1


# --- 137 and 138 ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("before", ["Unknown", "True"])
def test_137_two_failures_of_four_make_a_pool_unhealthy(before: str) -> None:
    """One alone says nothing, and one success after two failures changes nothing."""
    world = prepared()
    if before == "True":
        succeeds(world, "first")
    assert health(world)[0] == before
    fails(world, owned("a"))
    assert health(world)[0] == before
    fails(world, owned("b"))
    assert health(world) == ("False", "RegistrationFailed")
    world.pass_time(5)
    succeeds(world, "c")
    assert health(world) == ("False", "RegistrationFailed")


def test_137_launches_that_fail_count_and_say_why() -> None:
    world = prepared()
    world.given = 0
    for name in ("a", "b"):
        born(world, owned(name))
    world.pass_time(6 * MINUTES)
    world.settle()
    status, reason = health(world)
    assert status == "False"
    assert reason not in ("", "RegistrationFailed")


def test_137_claims_of_a_former_pool_do_not_count() -> None:
    world = prepared()
    fails(world, owned("a", "another"), owned("b", "another"))
    assert health(world) == ("Unknown", "AwaitingReconciliation")


@pytest.mark.parametrize("kind", [kinds.NODE_POOL, kinds.NODE_CLASS])
def test_138_a_change_of_pool_or_class_makes_it_unknown_again(kind: kinds.Kind) -> None:
    """And forgets what was; without one it stays."""
    world = prepared()
    fails(world, owned("a"), owned("b"))
    world.pass_time(3600)
    world.settle()
    assert health(world)[0] == "False"
    known = world.get(kind, "default")
    world.put(replace(known, metadata=replace(known.metadata, generation=2)))
    world.settle()
    assert health(world) == ("Unknown", "AwaitingReconciliation")
    assert labels.REGISTRATIONS not in pool(world).metadata.annotations
    fails(world, owned("c"))
    assert health(world)[0] == "Unknown"


# --- 139 and 140 ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("missing", "NodeClassNotFound"),
        ("deleting", "NodeClassTerminating"),
        ("without conditions", "NodeClassReadinessUnknown"),
        ("not ready", "UnhealthyDependents"),
    ],
)
def test_139_a_pool_whose_class_is_not_ready_is_not_either(case: str, reason: str) -> None:
    world = running(node_claim("a"))
    known = world.get(kinds.NODE_CLASS, "default")
    if case == "missing":
        world.objects.pop(kinds.ref(known))
    elif case == "deleting":
        world.delete(kinds.ref(known))
    elif case == "without conditions":
        world.class_facts.clear()
        world.put(node_class())
    else:
        world.class_facts["default"] = changed(FACTS, subnets=())
    world.settle()
    found = {c.type: (c.status, c.reason) for c in pool(world).status.conditions}
    assert found["NodeClassReady"] == ("False", reason)
    assert found["Ready"] == ("False", "UnhealthyDependents")


def has(world: World) -> tuple[str | float, str | float]:
    """How much CPU the pool has, and how many nodes."""
    world.settle()
    status = pool(world).status
    assert {"cpu", "memory", "pods", "ephemeral-storage", "nodes"} <= set(status.resources)
    assert status.nodes == int(status.resources["nodes"])
    return status.resources["cpu"], status.resources["nodes"]


def test_140_a_pool_has_what_its_claims_promise_and_then_what_its_nodes_have() -> None:
    world = launched()
    assert has(world) == ("2", "1")
    node = world.join(world.claim(), ready=False)
    less = {**node.status.capacity, "cpu": "1900m"}
    world.put(replace(node, status=replace(node.status, capacity={"memory": "7Gi"})))
    assert has(world) == ("2", "1"), "what a node does not say yet is as promised"
    world.put(replace(world.node("node-a"), status=replace(node.status, capacity=less)))
    world.set_ready("node-a", True)
    assert has(world) == ("1900m", "1")


@pytest.mark.parametrize("how", ["command", "claim", "both"])
def test_140_a_node_that_is_removed_is_not_counted_nor_subtracted_twice(how: str) -> None:
    world = running(node_claim("a"), node_claim("b"))
    assert has(world) == ("4", "2")
    if how != "claim":
        known = world.claim("a")
        notes = {**known.metadata.annotations, labels.COMMAND: "{}"}
        world.put(replace(known, metadata=replace(known.metadata, annotations=notes)))
        assert has(world) == ("2", "1")
    if how != "command":
        world.delete(kinds.ref(world.claim("a")))
        assert has(world) == ("2", "1")
    for name in "ab":
        for value in (world.claim(name), world.node(f"node-{name}")):
            world.objects.pop(kinds.ref(value))
    world.instances.clear()
    assert has(world) == ("0", "0")
