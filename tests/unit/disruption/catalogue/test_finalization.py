"""The end of a claim: its nodes, its instance, its deadline (152 to 154 of the disruption catalogue)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model import kinds
from kerf.model.plan import LaunchInstances, Plan, TerminateInstance
from kerf_api import labels
from tests.unit.lifecycle.drains import draining
from tests.unit.lifecycle.world import World, node_claim, pod, prepared, running, text


def goes(world: World, rounds: int = 12) -> None:
    for _ in range(rounds):
        world.settle()
        world.pass_time(11)


def is_there(world: World, *names: str) -> list[bool]:
    """Whether there are claims (`a`) and nodes (`node-a`) of these names."""
    of = [kinds.NODE if name.startswith("node-") else kinds.NODE_CLAIM for name in names]
    return [world.get(kind, name) is not None for kind, name in zip(of, names, strict=True)]


def terminations(world: World) -> int:
    return len(world.done(TerminateInstance))


# --- 152 --------------------------------------------------------------------------------------------------------
def test_152_all_nodes_of_a_registered_claim_go_before_it() -> None:
    world = running(node_claim("a"))
    first = world.node("node-a")
    world.put(replace(first, metadata=replace(first.metadata, name="node-b", uid="uid-node-b")))
    world.put(pod("web", "node-b"))
    world.delete(kinds.ref(world.claim()))
    world.settle()
    assert [world.node(name).metadata.deleting for name in ("node-a", "node-b")] == [True, True]
    world.pass_time(10)
    world.settle()
    assert is_there(world, "a", "node-a", "node-b") == [True, True, True], "a pod is still on one"
    assert terminations(world) == 0
    goes(world)
    assert is_there(world, "a", "node-a", "node-b") == [False, False, False]
    assert not world.instances


def test_152_the_node_of_a_claim_that_has_not_registered_is_left_alone() -> None:
    world = running(node_claim("b"))
    world.put(node_claim("a"))
    world.settle()
    world.join(world.claim("a"))
    world.delete(kinds.ref(world.claim("a")))
    goes(world)
    assert is_there(world, "a", "node-a") == [False, True]
    assert not world.node("node-a").metadata.deleting


def test_152_for_a_claim_that_was_never_launched_ec2_is_not_asked() -> None:
    world = prepared(node_claim("a"))
    world.delete(kinds.ref(world.claim()))
    world.settle()
    assert is_there(world, "a") == [False]
    assert (terminations(world), world.done(LaunchInstances), world.calls) == (0, [], {})


# --- 153 --------------------------------------------------------------------------------------------------------
def ended() -> World:
    """A claim that goes, up to when its instance is asked to end; nobody has asked yet."""
    world = running(node_claim("a"))
    world.delete(kinds.ref(world.claim()))
    world.settle()
    world.pass_time(6)
    while not any(isinstance(action, TerminateInstance) for action in world.decide().actions):
        world.obey(world.decide())
    return world


def test_153_a_termination_that_failed_is_asked_for_again() -> None:
    world = ended()
    for _ in range(3):
        plan = world.decide()
        asked = [action for action in plan.actions if isinstance(action, TerminateInstance)]
        assert len(asked) == 1
        world.obey(Plan(actions=tuple(action for action in plan.actions if action not in asked)))
        world.pass_time(6)
        assert is_there(world, "a", "node-a") == [True, True]
    goes(world)
    assert is_there(world, "a", "node-a") == [False, False]


def test_153_while_the_instance_is_there_so_is_its_claim_and_that_is_as_ready_as_before() -> None:
    world = ended()
    for _ in range(3):
        world.settle()
        world.pass_time(5)
    assert world.condition("InstanceTerminating") == ("True", "InstanceTerminating")
    assert world.condition("Ready") == ("True", "Ready")
    assert labels.TERMINATION_FINALIZER in world.claim().metadata.finalizers
    assert terminations(world) == 1
    world.pass_time(20)
    world.settle()
    assert is_there(world, "a") == [False]


# --- 154 --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("grace", [None, "5m"])
def test_154_with_a_grace_period_a_deletion_has_a_deadline(grace: str | None) -> None:
    spec: dict[str, Any] = {} if grace is None else {"terminationGracePeriod": grace}
    world = running(node_claim("a", **spec))
    world.pass_time(100)
    world.delete(kinds.ref(world.claim()))
    deadline = text(world.now + timedelta(minutes=5))
    world.settle()
    assert world.claim().metadata.annotations.get(labels.TERMINATION_TIMESTAMP) == (deadline if grace else None)


@pytest.mark.parametrize("minutes", [1, 60])
def test_154_a_deadline_that_is_there_is_kept(minutes: int) -> None:
    world = running(node_claim("a", terminationGracePeriod="5m"))
    claim = world.claim()
    other = text(world.now + timedelta(minutes=minutes))
    notes = {**claim.metadata.annotations, labels.TERMINATION_TIMESTAMP: other}
    world.put(replace(claim, metadata=replace(claim.metadata, annotations=notes)))
    world.delete(kinds.ref(world.claim()))
    world.settle()
    assert world.claim().metadata.annotations[labels.TERMINATION_TIMESTAMP] == other


def test_154_all_conditions_follow_the_generation_of_a_claim_that_goes() -> None:
    world = draining(pod("web", "node-a"))
    world.settle()
    claim = world.claim()
    assert claim.metadata.generation > 1
    assert {c.observed_generation for c in claim.status.conditions} == {claim.metadata.generation}
