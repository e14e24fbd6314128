"""What is written on a NodeClaim by others ends no instance that is not its own."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.lifecycle.nodeclaim.ownership import NOT_ITS_INSTANCE
from kerf.model import kinds
from kerf.model.kinds import ref
from kerf.model.plan import LaunchInstances, Plan, TerminateInstance
from kerf.scheduling.answers.nodeclaims import to_claim
from kerf.scheduling.solve import solve
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClassStatus
from kerf_api.v1.meta import decode
from tests.unit.lifecycle.world import FACTS, World, node_claim, prepared, running
from tests.unit.scheduling import worlds as w

PROVIDER = "aws:///us-west-2a/i-managed"


def _ended(world: World, why: str = "") -> set[str]:
    return {one.instance_id for one in world.done(TerminateInstance) if why in ("", one.reason.code)}


def _reported(plan: Plan) -> set[str]:
    return {one.subject for one in plan.refusals if one.reason.code == NOT_ITS_INSTANCE}


def _with(world: World, name: str, status: Any = None, **notes: str) -> None:
    claim = world.claim(name)
    meta = replace(claim.metadata, annotations={**claim.metadata.annotations, **notes})
    world.put(replace(claim, metadata=meta, **({"status": status} if status is not None else {})))


def _foreign(tags: dict[str, str], group: str = "") -> tuple[World, list[Plan]]:
    """A claim that never launched and names an instance; it is deleted, and time passes."""
    world = running(node_claim("a"))
    world.add_instance("i-victim", tags)
    world.put(node_claim("b", meta={"finalizers": [labels.TERMINATION_FINALIZER]}))
    _with(world, "b", **{labels.INSTANCE: "i-victim", **({labels.LAUNCH_GROUP: group} if group else {})})
    world.delete(ref(world.claim("b")))
    plans = []
    for _ in range(6):
        plans.append(world.decide())
        world.settle()
        world.pass_time(30)
    return world, plans


@pytest.mark.parametrize(
    ("tags", "group"),
    [
        ({labels.TAG_NODECLAIM: "other"}, ""),
        ({labels.TAG_NODECLAIM: "other", labels.LAUNCH_GROUP: "g"}, "g"),
        ({labels.LAUNCH_GROUP: "g"}, ""),
        ({labels.LAUNCH_GROUP: "g"}, "h"),
        ({}, ""),
    ],
)
def test_an_instance_of_others_is_not_terminated_for_a_claim_that_names_it(tags: dict[str, str], group: str) -> None:
    world, plans = _foreign(tags, group)
    assert not _ended(world, "Terminating")  # without a claim at all it is collected, under the guard
    assert world.get(kinds.NODE_CLAIM, "b") is None
    assert any("nodeclaim/b" in _reported(plan) for plan in plans)


def test_an_instance_that_no_list_shows_is_not_terminated() -> None:
    """It may be of another cluster."""
    world = running(node_claim("a"))
    world.put(node_claim("b", meta={"finalizers": [labels.TERMINATION_FINALIZER]}))
    _with(world, "b", **{labels.INSTANCE: "i-elsewhere"})
    world.delete(ref(world.claim("b")))
    for _ in range(6):
        world.settle()
        world.pass_time(30)
    assert not _ended(world)
    assert world.get(kinds.NODE_CLAIM, "b") is None


def test_a_claim_whose_status_names_the_instance_of_another_ends_neither() -> None:
    """Both claims name one machine; the other one is kept for the claim that its tag names, and that is reported."""
    world = running(node_claim("a"), node_claim("b"))
    own, other = world.claim("a").instance_id, world.claim("b").instance_id
    _with(world, "a", status=replace(world.claim("a").status, provider_id=world.claim("b").status.provider_id))
    for _ in range(10):
        plan = world.settle()
        world.pass_time(60)
    assert "nodeclaim/a" in _reported(plan)
    assert not _ended(world)
    world.delete(ref(world.claim("a")))
    for _ in range(4):
        world.settle()
        world.pass_time(30)
    assert other not in _ended(world)
    assert own != other


def test_the_own_instance_is_terminated() -> None:
    world = running(node_claim("a"))
    own = world.claim("a").instance_id
    world.delete(ref(world.claim("a")))
    for _ in range(6):
        world.settle()
        world.pass_time(30)
    assert _ended(world) == {own}
    assert world.get(kinds.NODE_CLAIM, "a") is None


def test_a_template_hands_down_annotations_of_users_only() -> None:
    pool = w.pool()
    notes = {**dict.fromkeys(sorted(labels.WRITTEN_ON_CLAIMS), "theirs"), labels.DO_NOT_DISRUPT: "true", "team": "a"}
    template = pool.spec.template
    meta = replace(template.metadata, annotations=notes)
    pool = replace(pool, spec=replace(pool.spec, template=replace(template, metadata=meta)))
    snapshot = w.world(pool, w.pod("p"))
    (node,) = solve(snapshot, [w.pod("p")]).new_nodes
    found = to_claim(snapshot, node, salt="").metadata.annotations
    assert "theirs" not in found.values()
    assert (found["team"], found[labels.DO_NOT_DISRUPT]) == ("a", "true")


def _stays(world: World, name: str) -> bool:
    node = world.get(kinds.NODE, name)
    return node is not None and not node.metadata.deleting


def test_a_node_of_another_claim_is_not_drained_for_a_claim_whose_status_names_it() -> None:
    """The other claim is gone by then: a node of a managed node group, say, that no list of Kerf's instances shows."""
    world = running(node_claim("a"), node_claim("b"))
    other = world.claim("b")
    world.put(replace(world.node("node-b"), spec=replace(world.node("node-b").spec, provider_id=PROVIDER)))
    _with(world, "a", status=replace(world.claim("a").status, provider_id=PROVIDER))
    world.delete(ref(world.claim("a")))
    for _ in range(4):
        world.settle()
        world.pass_time(30)
    assert _stays(world, "node-b")
    assert world.get(kinds.NODE_CLAIM, "a") is None
    assert other.instance_id not in _ended(world)


def test_an_instance_whose_tag_names_another_claim_is_kept_with_its_node() -> None:
    world = running(node_claim("a"), node_claim("b"))
    instance = world.instances[world.claim("a").instance_id]
    world.instances[instance.id] = changed(instance, tags={**instance.tags, labels.TAG_NODECLAIM: "b"})
    world.delete(ref(world.claim("a")))
    for _ in range(4):
        world.settle()
        world.pass_time(30)
    assert instance.id not in _ended(world)
    assert _stays(world, "node-a")
    assert world.get(kinds.NODE_CLAIM, "a") is None


def test_a_node_whose_instance_lost_its_tags_is_drained_as_ever() -> None:
    world = running(node_claim("a"), node_claim("b"))
    instance = world.instances[world.claim("a").instance_id]
    world.instances[instance.id] = changed(instance, tags={})
    world.delete(ref(world.claim("a")))
    for _ in range(4):
        world.settle()
        world.pass_time(5)
    assert not _stays(world, "node-a")


def test_a_launch_uses_what_aws_gave_for_the_class_and_not_its_status() -> None:
    world = prepared(node_claim("a"))
    theirs = decode(
        EC2NodeClassStatus,
        {
            "subnets": [{"id": "subnet-theirs", "zone": "us-west-2a"}],
            "securityGroups": [{"id": "sg-theirs"}],
            "amis": [{"id": "ami-theirs", "requirements": []}],
            "instanceProfile": "theirs",
        },
    )
    node_class = world.get(kinds.NODE_CLASS, "default")
    status = replace(theirs, conditions=node_class.status.conditions)
    world.put(replace(node_class, status=status))
    world.settle()
    (request,) = [deed.request for deed in world.done(LaunchInstances)]
    assert "theirs" not in str(request)
    assert request.templates[0].instance_profile == FACTS.instance_profile


@pytest.mark.parametrize("known", ["not yet", "of an earlier generation"])
def test_nothing_is_launched_from_a_class_before_aws_has_answered_for_it(known: str) -> None:
    """At a start, or after an edit, its status may be by others."""
    world = prepared(node_claim("a"))
    world.class_facts = {} if known == "not yet" else {"default": changed(FACTS, generation=0)}
    world.settle()
    assert not world.done(LaunchInstances)
    assert world.condition("Launched") == ("Unknown", "LaunchFailed")
    world.class_facts = {"default": FACTS}
    world.settle()
    assert world.claim("a").is_true("Launched")
