"""What is kept up on a claim, its node and its instance: tags, the capacity type."""

from __future__ import annotations

from dataclasses import replace as changed

import pytest
from msgspec.structs import replace

from kerf.model.kubernetes.objects import Node
from kerf.model.plan import TagInstance
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.lifecycle.nodes import launched
from tests.unit.lifecycle.world import node_claim, running


# --- tags -------------------------------------------------------------------------------------------------------
def test_an_instance_is_tagged_once() -> None:
    world = launched()
    world.join(world.claim())
    world.settle()
    tags = world.instances[world.claim().instance_id].tags
    assert (tags["Name"], tags[labels.TAG_NODECLAIM]) == ("node-a", "a")
    assert len(world.done(TagInstance)) == 1
    assert world.claim().metadata.annotations[labels.TAGGED] == "true"
    assert world.claim().metadata.annotations[labels.CLUSTER_NAME_TAGGED] == "true"


def test_the_note_about_tags_does_not_hold_up_initialization() -> None:
    world = launched()
    world.join(world.claim())
    while not world.claim().is_true("Initialized"):
        assert labels.TAGGED not in world.claim().metadata.annotations
        world.obey(world.decide())


def test_a_name_that_somebody_gave_is_kept() -> None:
    world = launched()
    world.add_instance(world.claim().instance_id, {"Name": "mine"})
    world.join(world.claim())
    world.settle()
    assert [sorted(a.tags) for a in world.done(TagInstance)] == [[labels.TAG_EKS_CLUSTER, labels.TAG_NODECLAIM]]


def test_an_instance_that_is_not_seen_is_not_tagged() -> None:
    world = launched()
    world.join(world.claim())
    world.instances.clear()
    world.facts["fresh_at"] = {}
    world.settle()
    assert not world.done(TagInstance)
    assert labels.TAGGED not in world.claim().metadata.annotations


# --- reservations -------------------------------------------------------------------------------------------------
RESERVED = {labels.CAPACITY_TYPE: "reserved", labels.RESERVATION_ID: "cr-1", labels.RESERVATION_TYPE: "default"}


@pytest.mark.parametrize("stale", [("claim", "node"), ("node",), ("claim",)])
@pytest.mark.parametrize(("paid", "expected"), [("on-demand", "on-demand"), ("reserved", "reserved")])
def test_what_ec2_calls_on_demand_is_called_so(stale: tuple[str, ...], paid: str, expected: str) -> None:
    """When its reservation has ended; whoever still says otherwise is corrected, and keeps all other labels."""
    world = running(node_claim("a"))
    (id_,) = world.instances
    world.instances[id_] = changed(world.instances[id_], capacity_type=paid)
    before: dict[str, NodeClaim | Node] = {"claim": world.claim(), "node": world.node("node-a")}
    for name in stale:
        meta = before[name].metadata
        before[name] = world.put(replace(before[name], metadata=replace(meta, labels={**meta.labels, **RESERVED})))
    world.settle()
    after: dict[str, NodeClaim | Node] = {"claim": world.claim(), "node": world.node("node-a")}
    for name in stale:
        own = dict(before[name].metadata.labels)
        if expected == "on-demand":
            own = {k: v for k, v in own.items() if k not in labels.RESERVATION_LABELS} | {labels.CAPACITY_TYPE: paid}
        assert dict(after[name].metadata.labels) == own
