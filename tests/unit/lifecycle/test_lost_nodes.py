"""Nodes that go away, come back or are somebody else's."""

from __future__ import annotations

import pytest

from kerf.model import kinds
from kerf.model.kubernetes.objects import Node
from kerf.model.plan import Plan
from kerf_api.v1.meta import decode
from tests.unit.lifecycle.nodes import deletions, launched, measured
from tests.unit.lifecycle.world import World, node_claim, running


def test_a_node_of_somebody_else_is_left_alone() -> None:
    world = running(node_claim("a"))
    body = {"metadata": {"name": "other", "uid": "u", "finalizers": ["x/y"]}, "spec": {"providerID": "aws:///z/i-9"}}
    world.put(decode(Node, body))
    assert world.decide() == Plan()
    world.delete(kinds.ref(world.node("other")))
    assert world.decide() == Plan()


@pytest.mark.parametrize("ready", [True, False])
def test_a_node_that_was_deleted_under_our_finalizer_is_given_up_after_five_minutes(ready: bool) -> None:
    world = launched()
    node = world.join(world.claim(), ready=ready)
    world.settle()
    world.objects.pop(kinds.ref(node))
    world.settle()
    assert world.condition("ConsistentStateFound") == ("False", "NodeNotFound")
    world.pass_time(299)
    world.settle()
    assert not world.claim().metadata.deleting
    world.pass_time(1)
    first = world.decide()  # what is to be ended is written down first
    assert deletions(first) == []
    world.obey(first)
    assert deletions(world.decide()) == ["NodeLost"]


def test_a_node_that_came_back_in_time_is_kept() -> None:
    world = running(node_claim("a"))
    node = world.node("node-a")
    world.objects.pop(kinds.ref(node))
    world.settle()
    world.pass_time(200)
    world.put(node)
    world.settle()
    assert world.condition("ConsistentStateFound") == ("True", "ConsistentStateFound")
    world.pass_time(1000)
    assert deletions(world.decide()) == []


def taken_away(world: World) -> Node:
    """The claim's Node, which is not there any more."""
    node = world.node("node-a")
    world.objects.pop(kinds.ref(node))
    world.settle()
    return node


@pytest.mark.parametrize("usable", [True, False])
def test_a_node_that_goes_twice_has_its_five_minutes_twice(usable: bool) -> None:
    world = launched()
    world.join(world.claim(), ready=usable)
    world.settle()
    for _ in range(2):
        node = taken_away(world)
        world.pass_time(200)
        world.put(node)
        world.settle()
        assert world.condition("ConsistentStateFound") == (("True", "ConsistentStateFound") if usable else None)
    taken_away(world)
    world.pass_time(299)
    world.settle()
    assert not world.claim().metadata.deleting
    world.pass_time(1)
    world.settle()
    assert world.claim().metadata.deleting


def test_a_node_that_is_too_small_has_its_five_minutes_when_it_goes() -> None:
    world = measured("4Gi")
    world.settle()
    world.pass_time(3600)
    node = taken_away(world)
    assert world.condition("ConsistentStateFound") == ("False", "NodeNotFound")
    world.pass_time(10)
    world.settle()
    assert not world.claim().metadata.deleting
    world.put(node)
    world.settle()
    assert world.condition("ConsistentStateFound") == ("False", "ConsistencyCheckFailed")
    world.pass_time(1000)
    world.settle()
    assert not world.claim().metadata.deleting
