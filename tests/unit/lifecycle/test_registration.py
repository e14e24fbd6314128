"""Registered: with each of its reasons, what a Node takes over from its claim, and within what time."""

from __future__ import annotations

from dataclasses import replace as changed

import pytest
from msgspec.structs import replace

from kerf.model import kinds
from kerf.model.plan import Source
from kerf_api import labels
from tests.unit.lifecycle.nodes import deletions, launched
from tests.unit.lifecycle.world import NOW, World, node_claim, running


# --- Registered -------------------------------------------------------------------------------------------------
def test_no_node_yet() -> None:
    assert launched().condition("Registered") == ("Unknown", "NodeNotFound")


def test_several_nodes_of_one_instance() -> None:
    world = launched()
    first = world.join(world.claim())
    world.put(replace(first, metadata=replace(first.metadata, name="twin", uid="uid-twin")))
    world.settle()
    assert world.condition("Registered") == ("False", "MultipleNodesFound")
    assert world.condition("Ready") == ("False", "UnhealthyDependents")
    assert not world.node("node-a").registered


def test_registered() -> None:
    world = launched()
    world.join(world.claim(), ready=False)
    world.settle()
    assert world.condition("Registered") == ("True", "Registered")
    assert world.claim().status.node_name == "node-a"


def test_the_condition_follows_the_node_and_never_leads() -> None:
    world = launched()
    world.join(world.claim())
    world.obey(world.decide())
    assert world.node("node-a").registered
    assert world.condition("Registered") == ("Unknown", "NodeNotFound")


def test_a_node_that_calls_itself_registered_is_synced_all_the_same() -> None:
    world = launched()
    node = world.join(world.claim())
    world.put(replace(node, metadata=replace(node.metadata, labels={labels.REGISTERED: "true"})))
    world.settle()
    assert world.node("node-a").metadata.finalizers == (labels.TERMINATION_FINALIZER,)
    assert world.node("node-a").metadata.labels[labels.NODEPOOL] == "default"


def test_a_node_that_is_going_does_not_register() -> None:
    world = launched()
    node = world.join(world.claim())
    world.put(replace(node, metadata=replace(node.metadata, finalizers=("x/y",), deletion_timestamp=NOW)))
    world.settle()
    assert world.condition("Registered") == ("Unknown", "NodeNotFound")
    assert world.node("node-a").metadata.finalizers == ("x/y",)


def test_a_taint_that_the_node_has_is_kept_as_it_is() -> None:
    world = launched(spec={"taints": [{"key": "own", "value": "claim", "effect": "NoSchedule"}]})
    world.join(world.claim(), taints=[{"key": "own", "value": "node", "effect": "NoSchedule"}])
    world.settle()
    assert [t.value for t in world.node("node-a").spec.taints] == ["node"]


def test_the_label_of_the_node_class_is_added_where_it_lacks() -> None:
    world = running(node_claim("a"))
    claim, node = world.claim(), world.node("node-a")
    for value in (claim, node):
        kept = {key: text for key, text in value.metadata.labels.items() if key != labels.NODECLASS}
        world.put(replace(value, metadata=replace(value.metadata, labels=kept)))
    world.settle()
    assert world.claim().metadata.labels[labels.NODECLASS] == "default"
    assert world.node("node-a").metadata.labels[labels.NODECLASS] == "default"


# --- within what time -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("missing", [Source.NODES, Source.NODE_CLAIMS])
def test_that_no_node_joined_is_for_complete_lists_to_say(missing: Source) -> None:
    """Nodes that may not be listed any more have not failed to join."""
    world = launched()
    world.pass_time(901)
    world.facts["fresh_at"] = {source: world.now for source in Source if source is not missing}
    plan = world.decide()
    assert deletions(plan) == []
    assert [(r.subject, r.reason.code) for r in plan.refusals] == [("nodeclaim/a", "StaleSource")]
    world.settle()
    assert labels.BACK_OFF not in world.get(kinds.NODE_POOL, "default").metadata.annotations
    del world.facts["fresh_at"]
    assert deletions(world.decide()) == ["RegistrationTimeout"]


def late() -> World:
    """Everybody was down while the Node joined; now the time is over."""
    world = launched()
    world.join(world.claim())
    world.pass_time(2000)
    return world


def test_a_node_that_joined_while_nobody_looked_is_registered_however_late() -> None:
    world = late()
    world.settle()
    assert world.condition("Registered") == ("True", "Registered")
    assert labels.BACK_OFF not in world.get(kinds.NODE_POOL, "default").metadata.annotations


def test_a_node_that_is_late_and_cannot_be_registered_has_its_own_fifteen_minutes() -> None:
    world = late()

    def look() -> list[str]:
        plan = world.decide()
        world.obey(changed(plan, actions=tuple(a for a in plan.actions if a.lane != "node/node-a")))
        return deletions(plan)

    assert [look() for _ in range(3)] == [[], [], []]
    assert world.condition("Registered") == ("False", "NodeJoinedLate")
    world.pass_time(899)
    assert look() == []
    world.pass_time(1)
    assert look() == ["RegistrationTimeout"]
