"""Nodes that go away, come back or are somebody else's."""

from __future__ import annotations

import pytest

from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.model.kubernetes.objects import Node
from kerf.model.plan import Plan
from kerf_api.v1.meta import decode
from tests.unit.lifecycle.nodes import deletions, launched, measured
from tests.unit.lifecycle.world import World, node_claim, pod, running


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


@pytest.mark.parametrize("what", [kinds.NODE_CLAIM, kinds.NODE])
@pytest.mark.parametrize(("ready", "pods"), [(True, 0), (False, 1)])
def test_a_node_that_is_deleted_before_ec2_lists_its_instance_is_not_taken_for_lost(
    what: Kind, *, ready: bool, pods: int
) -> None:
    world = running(node_claim("a"))
    listed = dict(world.instances)
    world.instances.clear()
    world.set_ready("node-a", ready)
    for number in range(pods):
        world.put(pod(f"p{number}", "node-a"))
    world.pass_time(25)
    world.settle()
    world.delete(kinds.ref(world.claim() if what is kinds.NODE_CLAIM else world.node("node-a")))
    for _ in range(5):
        world.settle()
        world.pass_time(5)
    assert world.get(kinds.NODE_CLAIM, "a") is not None
    assert world.get(kinds.NODE, "node-a") is not None
    world.instances.update(listed)
    for _ in range(12):
        world.settle()
        world.pass_time(5)
    done = [deed.key.partition(" ")[0] for deed in world.deeds]
    assert done.index("TerminateInstance") < done.index("ReleaseNode")
    assert world.get(kinds.NODE_CLAIM, "a") is None
