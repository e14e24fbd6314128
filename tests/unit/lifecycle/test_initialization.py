"""Registered and initialised beside what the disruption catalogue says of it (150, 151): Nodes that go or join anew."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.model import kinds
from kerf_api import labels
from kerf_api.v1.meta import Taint, decode
from tests.unit.lifecycle.nodes import change, launched, measured
from tests.unit.lifecycle.world import World, node_claim, running


def test_a_node_that_went_before_it_was_usable() -> None:
    world = launched()
    world.join(world.claim(), ready=False)
    world.settle()
    world.objects.pop(kinds.ref(world.node("node-a")))
    world.settle()
    assert world.condition("Initialized") == ("Unknown", "NodeNotFound")


def test_a_node_that_is_found_in_order_later() -> None:
    world = measured("4Gi")
    world.settle()
    node = world.node("node-a")
    world.put(replace(node, status=replace(node.status, capacity={**node.status.capacity, "memory": "8Gi"})))
    world.settle()
    assert world.condition("ConsistentStateFound") == ("True", "ConsistentStateFound")


def test_initialization_never_reverts() -> None:
    world = running(node_claim("a"))
    world.set_ready("node-a", False)
    world.settle()
    assert world.condition("Initialized") == ("True", "Initialized")
    assert world.claim().is_true("Ready")


def test_before_registration_nothing_is_said_of_initialization() -> None:
    assert launched().condition("Initialized") == ("Unknown", "AwaitingReconciliation")


def test_our_labels_are_put_back_on_a_usable_node() -> None:
    """A person took them off: without them the node would never be disrupted again."""
    world = running(node_claim("a"))
    world.settle()
    node = world.node("node-a")
    others = {k: v for k, v in node.metadata.labels.items() if k not in (labels.INITIALIZED, labels.REGISTERED)}
    world.put(replace(node, metadata=replace(node.metadata, labels=others)))
    world.settle()
    assert world.node("node-a").metadata.labels == node.metadata.labels


OWN, AGENT = {"key": "own", "effect": "NoSchedule"}, {"key": "agent", "effect": "NoSchedule"}


def joined_anew() -> World:
    """A usable Node was taken away, finalizer and all; its machine has restarted and registers again."""
    world = launched(spec={"taints": [OWN], "startupTaints": [AGENT]})
    world.join(world.claim())
    world.settle()
    change(world, "node-a", taints=(decode(Taint, OWN),))
    world.settle()
    assert world.condition("Initialized") == ("True", "Initialized")
    world.objects.pop(kinds.ref(world.node("node-a")))
    world.pass_time(60)
    node = world.join(world.claim())
    world.put(replace(node, metadata=replace(node.metadata, uid="uid-anew", creation_timestamp=world.now)))
    return world


def test_a_node_that_joins_anew_gets_all_that_a_new_one_gets() -> None:
    world = joined_anew()
    world.settle()
    node = world.node("node-a")
    assert [taint.key for taint in node.spec.taints] == ["own", "agent"]
    assert node.metadata.finalizers == (labels.TERMINATION_FINALIZER,)
    assert [owner.name for owner in node.metadata.owner_references] == ["a"]
    assert node.metadata.labels[labels.NODEPOOL] == "default"
    assert world.claim().is_true("Initialized")


def test_a_node_that_joins_anew_is_usable_when_a_new_one_would_be() -> None:
    world = joined_anew()
    world.settle()
    assert (world.node("node-a").registered, world.node("node-a").initialized) == (True, False)
    change(world, "node-a", taints=(decode(Taint, OWN),))
    world.set_ready("node-a", False)
    world.settle()
    assert not world.node("node-a").initialized
    world.set_ready("node-a", True)
    world.settle()
    assert world.node("node-a").initialized
    assert [taint.key for taint in world.node("node-a").spec.taints] == ["own"]
