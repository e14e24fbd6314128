"""Instances without a claim, and claims without an instance."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from kerf.lifecycle.view import View
from kerf.model import kinds
from kerf.model.plan import DeleteObject, Plan, Source, TerminateInstance
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.lifecycle.world import World, node_claim, pod, prepared, running


def terminated(plan: Plan) -> list[str]:
    return [action.instance_id for action in plan.actions if isinstance(action, TerminateInstance)]


def deleted(plan: Plan) -> list[str]:
    return [str(action.ref) for action in plan.actions if isinstance(action, DeleteObject)]


def noted(world: World) -> Plan:
    """The plan after what is to be ended has been written down."""
    world.obey(world.decide())
    return world.decide()


def test_an_instance_that_a_claim_waits_for_is_no_orphan() -> None:
    world = prepared(node_claim("a"))
    world.obey(world.decide())
    group = world.claim().metadata.annotations[labels.LAUNCH_GROUP]
    world.add_instance("i-mine", {labels.LAUNCH_GROUP: group})
    world.add_instance("i-surplus", {labels.LAUNCH_GROUP: group})
    world.pass_time(70)
    assert terminated(world.decide()) == []
    world.settle()
    assert world.claim().instance_id == "i-mine"
    assert [a.instance_id for a in world.done(TerminateInstance)] == ["i-surplus"]


@pytest.mark.parametrize("source", [Source.INSTANCES, Source.NODE_CLAIMS])
@pytest.mark.parametrize(("age", "collected"), [(90, ["i-lost"]), (91, [])])
def test_a_list_may_be_ninety_seconds_old(source: Source, age: int, collected: list[str]) -> None:
    world = prepared()
    world.add_instance("i-lost", {})
    world.pass_time(200)
    world.facts["fresh_at"] = dict.fromkeys(Source, world.now) | {source: world.now - timedelta(seconds=age)}
    assert terminated(noted(world)) == collected


@pytest.mark.parametrize("missing", [Source.INSTANCES, Source.NODE_CLAIMS])
def test_without_fresh_lists_nothing_is_collected(missing: Source) -> None:
    world = prepared()
    world.add_instance("i-lost", {})
    world.pass_time(100)
    world.facts["fresh_at"] = {source: world.now for source in Source if source is not missing}
    plan = world.decide()
    assert terminated(plan) == []
    assert [r.reason.code for r in plan.refusals] == ["StaleSource"]
    assert plan.next_due is not None


def lost(*, ready: bool | None) -> World:
    """A registered claim whose instance is gone; its Node ready, not ready, or gone too (None)."""
    world = running(node_claim("a"))
    world.pass_time(60)
    world.instances.clear()
    if ready is None:
        world.objects.pop(kinds.ref(world.node("node-a")))
    else:
        world.set_ready("node-a", ready)
    world.pass_time(5)
    return world


def test_a_claim_whose_instance_is_gone_says_which_pods_move() -> None:
    world = lost(ready=False)
    world.put(pod("web", "node-a"))
    ends = [action for action in noted(world).actions if isinstance(action, DeleteObject)]
    assert [(end.reason.code, end.moved) for end in ends] == [("GarbageCollected", ("default/web",))]


def test_a_claim_that_cannot_be_read_is_not_lost() -> None:
    """What it says of its instance may be what could not be read."""
    world = running(node_claim("a"))
    claim = world.claim()
    torn = replace(claim.metadata, unreadable="Expected `str`, got `int` - at `$.status.providerID`")
    world.put(replace(claim, metadata=torn, status=replace(claim.status, provider_id="")))
    world.pass_time(600)
    assert world.decide().actions == ()


def test_an_old_list_takes_no_claim() -> None:
    world = lost(ready=False)
    world.facts["fresh_at"] = {Source.NODE_CLAIMS: world.now}
    assert deleted(noted(world)) == []


def test_an_instance_that_ec2_does_not_list_yet_is_not_lost() -> None:
    """After a restart: the node joined within seconds, and EC2 lists the instance later."""
    world = running(node_claim("a"))
    instance = dict(world.instances)
    world.instances.clear()
    world.set_ready("node-a", False)
    world.pass_time(25)
    world.settle()
    assert world.get(kinds.NODE, "node-a") is not None
    world.instances.update(instance)
    world.pass_time(60)
    world.settle()
    assert not world.claim().metadata.deleting


def test_everything_goes_in_the_end() -> None:
    world = lost(ready=False)
    for _ in range(6):
        world.settle()
        world.pass_time(11)
    assert world.get(kinds.NODE_CLAIM, "a") is None
    assert world.get(kinds.NODE, "node-a") is None


@pytest.mark.parametrize(
    ("age", "since", "seen"),
    [(0, 2, True), (0, 1, False), (0, 0, False), (90, 100, True), (91, 100, False)],
)
def test_what_counts_as_a_list_of_instances_made_since(age: int, since: int, seen: bool) -> None:
    world = World()
    world.listed = world.now - timedelta(seconds=age)
    assert View(world.snapshot()).listed_after(world.now - timedelta(seconds=since)) == seen


def named(kind: str) -> NodeClaim:
    """A claim that names an instance and stays for good."""
    claim = node_claim("b", meta={"annotations": {labels.INSTANCE: "i-orphan"}})
    if kind == "of another class":
        return replace(claim, spec=replace(claim.spec, node_class_ref=replace(claim.spec.node_class_ref, group="x.io")))
    meta = replace(claim.metadata, finalizers=("example.com/x",), deletion_timestamp=claim.metadata.creation_timestamp)
    return replace(claim, metadata=meta)


@pytest.mark.parametrize("launched", [False, True])
@pytest.mark.parametrize("kind", ["of another class", "let go"])
def test_a_claim_that_kerf_does_not_end_keeps_no_instance(kind: str, launched: bool) -> None:
    world = running(node_claim("a"))
    orphan = world.add_instance("i-orphan", {labels.TAG_NODECLAIM: "gone"})
    claim = named(kind)
    status = replace(claim.status, provider_id=orphan.provider_id) if launched else claim.status
    world.put(replace(claim, status=status))
    for _ in range(4):
        world.settle()
        world.pass_time(30)
    assert {deed.instance_id for deed in world.done(TerminateInstance)} == {"i-orphan"}
