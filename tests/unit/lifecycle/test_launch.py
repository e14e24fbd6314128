"""What a launch that fails means: give the claim up, wait and say why, or ask EC2 anew."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta

import pytest
from msgspec.structs import replace

from kerf.model import kinds
from kerf.model.aws.cloud import FleetError
from kerf.model.plan import CreateNodeClaim, DeleteObject, LaunchInstances, Plan, Reason
from kerf.model.snapshot import LaunchFailure
from kerf_api import labels
from kerf_api.v1.conditions import put
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.lifecycle.world import NOW, World, node_claim, node_class, prepared

SOLD_OUT = FleetError("InsufficientInstanceCapacity", "no m5.large", "m5.large", "us-west-2a", capacity=True)
DENIED = FleetError("UnauthorizedOperation", "no policy " + "x" * 400)
MISMATCH = FleetError("IdempotencyMismatch", "the token was used")


def failing(*errors: FleetError) -> World:
    """A claim whose call EC2 answered with these errors and no instance."""
    world = prepared(node_claim("a"))
    world.given, world.errors = 0, errors
    world.obey(world.decide())
    world.obey(world.decide())
    world.given = None
    assert len(world.calls) == 1
    return world


def deletion(plan: Plan) -> DeleteObject | None:
    return next((a for a in plan.actions if isinstance(a, DeleteObject)), None)


# --- answers of EC2 ---------------------------------------------------------------------------------------------
def test_another_error_is_told_and_tried_again_in_a_new_call() -> None:
    world = failing(DENIED)
    world.settle()
    condition = world.claim().condition("Launched")
    assert condition is not None
    assert (condition.status, condition.reason) == ("Unknown", "Unauthorized")
    assert len(condition.message) == 303
    assert condition.message.endswith("...")
    assert len(world.calls) == 1
    world.pass_time(1)
    world.settle()
    assert len(world.calls) == 2
    assert world.claim().is_true("Launched")


def test_the_waits_between_calls_grow_with_the_claims_age() -> None:
    world = failing(DENIED)
    group = world.claim().metadata.annotations[labels.LAUNCH_GROUP]
    world.pass_time(100)
    world.failures[group] = LaunchFailure((DENIED,), world.now)
    plan = world.settle()
    assert plan.next_due == world.now + timedelta(seconds=10)
    world.pass_time(49)
    world.settle()
    assert len(world.calls) == 1
    world.pass_time(1)
    world.settle()
    assert len(world.calls) == 2


def test_too_few_instances_without_an_error_is_tried_again() -> None:
    world = prepared(node_claim("a"), node_claim("b"))
    world.given = 1
    world.obey(world.decide())
    world.obey(world.decide())
    world.given = None
    world.settle()
    assert world.claim("a").is_true("Launched")
    assert world.condition("Launched", "b") == ("Unknown", "LaunchFailed")
    world.pass_time(2)
    world.settle()
    assert world.claim("b").is_true("Launched")
    assert len(world.instances) == 2


def test_a_spent_token_waits_until_ec2_would_show_what_it_launched() -> None:
    world = failing(MISMATCH)
    group = world.claim().metadata.annotations[labels.LAUNCH_GROUP]
    world.pass_time(59)
    world.settle()
    assert world.claim().metadata.annotations[labels.LAUNCH_GROUP] == group
    world.pass_time(3)
    world.settle()
    assert world.claim().metadata.annotations[labels.LAUNCH_GROUP] != group
    assert world.claim().is_true("Launched")


def test_an_instance_of_a_spent_token_is_taken_in() -> None:
    world = failing(MISMATCH)
    group = world.claim().metadata.annotations[labels.LAUNCH_GROUP]
    world.add_instance("i-late", {labels.LAUNCH_GROUP: group})
    world.settle()
    assert world.claim().instance_id == "i-late"
    assert len(world.calls) == 1


def test_a_call_that_is_held_back_is_not_made() -> None:
    world = prepared(node_claim("a"))
    world.obey(world.decide())
    group = world.claim().metadata.annotations[labels.LAUNCH_GROUP]
    until = world.now + timedelta(seconds=4)
    world.facts["not_before"] = {f"launch/{group}": until}
    assert world.decide() == Plan(next_due=until)
    world.pass_time(4)
    assert isinstance(world.decide().actions[0], LaunchInstances)


def test_a_request_that_cannot_be_read_is_made_anew() -> None:
    world = prepared(node_claim("a"))
    world.obey(world.decide())
    claim = world.claim()
    notes = {**claim.metadata.annotations, labels.LAUNCH_REQUEST: "{"}
    world.put(replace(claim, metadata=replace(claim.metadata, annotations=notes)))
    world.settle()
    assert world.claim().is_true("Launched")


def test_a_claim_that_went_into_another_call_meanwhile_is_not_launched_twice() -> None:
    """Two claims appear while the first one's group is being written: that write wins, theirs names all three."""
    world = prepared(node_claim("a"))
    first = world.decide()
    for name in ("b", "c"):
        world.put(node_claim(name))
    second = world.decide()
    world.obey(first)
    world.obey(second)
    groups = {name: world.claim(name).metadata.annotations[labels.LAUNCH_GROUP] for name in ("a", "b", "c")}
    assert groups["a"] != groups["b"] == groups["c"]
    world.settle()
    assert all(world.claim(name).is_true("Launched") for name in groups)
    assert len(world.instances) == 3


def test_a_claim_that_another_call_has_launched_meanwhile_is_not_launched_again() -> None:
    """Three claims appear one after the other, each while the group of those before it is being written, so that theirs
    name them too. The writes show late and one by one: by then the claims before have their instances."""
    world, plans = prepared(), dict[str, Plan]()
    for name in "abc":
        world.put(node_claim(name))
        plans[name] = world.decide()
    for shown in ("a", "ab", "abc"):
        world.obey(about(plans[shown[-1]], shown[-1]))
        for _ in range(6):
            world.obey(about(world.decide(), shown))
    assert all(world.claim(name).is_true("Launched") for name in plans)
    assert len(world.instances) == 3


def about(plan: Plan, names: str) -> Plan:
    """The plan without what it writes to other claims."""
    others = {f"nodeclaim/{name}" for name in "abc" if name not in names}
    return changed(plan, actions=tuple(action for action in plan.actions if action.lane not in others))


def test_what_cannot_be_had_now_is_not_asked_for() -> None:
    world = prepared(node_claim("a"))
    world.facts["out_of_stock"] = {("m5.large", "us-west-2a", "on-demand"): NOW + timedelta(minutes=3)}
    gone = deletion(world.decide())
    assert gone is not None
    assert gone.reason.code == "InsufficientCapacity"


# --- the node class ---------------------------------------------------------------------------------------------
def with_ready(world: World, status: str, observed: int = 1) -> None:
    known = world.get(kinds.NODE_CLASS, "default")
    told = put(known.status.conditions, "Ready", status, "Why", generation=observed, now=NOW, message="words")
    meta = replace(known.metadata, generation=max(observed, known.metadata.generation))
    world.put(replace(known, metadata=meta, status=replace(known.status, conditions=told)))


@pytest.mark.parametrize("deleting", [False, True])
def test_without_its_class_a_claim_is_given_up(deleting: bool) -> None:
    world = prepared(node_claim("a"))
    if deleting:
        world.delete(kinds.ref(world.get(kinds.NODE_CLASS, "default")))
    else:
        world.objects.pop(kinds.ref(world.get(kinds.NODE_CLASS, "default")))
    plan = world.decide()
    gone = deletion(plan)
    assert gone is not None
    assert gone.reason.code == "InsufficientCapacity"
    assert "InsufficientCapacityError" in [e.reason for e in plan.events]


def test_a_class_that_is_not_ready_gives_the_claim_up() -> None:
    world = prepared(node_claim("a"))
    with_ready(world, "False")
    gone = deletion(world.decide())
    assert gone is not None
    assert (gone.reason.code, gone.reason.text) == ("NodeClassNotReady", "words")


def test_a_class_that_is_not_known_to_be_ready_makes_the_claim_wait() -> None:
    world = prepared(node_claim("a"))
    with_ready(world, "Unknown")
    plan = world.decide()
    assert deletion(plan) is None
    assert [r.reason.code for r in plan.refusals] == ["NodeClassReadinessUnknown"]
    world.obey(plan, first=1)
    assert world.condition("Launched") == ("Unknown", "NodeClassReadinessUnknown")


def test_a_class_that_changed_since_makes_the_claim_wait_and_not_launch() -> None:
    world = prepared(node_claim("a"))
    world.obey(world.decide())
    known = world.get(kinds.NODE_CLASS, "default")
    world.put(replace(known, metadata=replace(known.metadata, generation=2)))
    plan = world.settle()
    assert not world.done(LaunchInstances)
    assert [r.reason.code for r in plan.refusals] == ["NodeClassReadinessUnknown"]
    world.class_facts["default"] = changed(world.class_facts["default"], generation=2)
    world.settle()
    assert world.claim().is_true("Launched")


# --- other things -----------------------------------------------------------------------------------------------
def test_a_claim_that_cannot_be_understood_holds_up_only_itself() -> None:
    bad = node_claim("b", requirements=[{"key": "x", "operator": "Gt", "values": ["many"]}])
    world = prepared(node_claim("a"), bad)
    world.settle()
    assert world.claim("a").is_true("Launched")
    assert world.condition("Launched", "b") == ("Unknown", "LaunchFailed")


def test_large_groups_are_split() -> None:
    world = prepared(*(node_claim(f"c{number:03}") for number in range(120)))
    world.settle()
    assert sorted(len(ids) for ids in world.calls.values()) == [20, 100]


def being_created(*claims: NodeClaim) -> tuple[CreateNodeClaim, ...]:
    return tuple(CreateNodeClaim(reason=Reason("Test"), claim=claim) for claim in claims)


def test_claims_wait_for_equal_ones_that_are_being_created_and_go_with_one_call() -> None:
    first, second = node_claim("a"), node_claim("b")
    world = prepared(first)
    world.facts["under_way"] = being_created(first, second)
    plan = world.settle()
    assert world.deeds == []
    assert plan.next_due == NOW + timedelta(seconds=5)
    world.put(second)
    world.settle()
    assert [len(ids) for ids in world.calls.values()] == [2]


def test_nobody_waits_for_claims_of_another_kind_or_for_a_creation_that_hangs() -> None:
    other = node_claim("b", requirements=[{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}])
    world = prepared(node_claim("a"))
    world.facts["under_way"] = being_created(other)
    world.settle()
    assert world.claim("a").is_true("Launched")
    world = prepared(node_claim("a"))
    world.facts["under_way"] = being_created(node_claim("b"))
    world.pass_time(5)
    world.settle()
    assert world.claim("a").is_true("Launched")


def test_a_full_group_waits_for_no_more() -> None:
    claims = [node_claim(f"c{number:03}") for number in range(120)]
    world = prepared(*claims[:110])
    world.facts["under_way"] = being_created(*claims)
    world.settle()
    assert [len(ids) for ids in world.calls.values()] == [100]


def test_an_instance_that_vanished_before_it_was_assigned_runs_into_the_time_limit() -> None:
    world = prepared(node_claim("a"))
    while labels.INSTANCE not in world.claim().metadata.annotations:
        world.obey(world.decide())
    world.instances.clear()
    assert world.decide().next_due == NOW + timedelta(minutes=5)
    world.pass_time(300)
    gone = deletion(world.decide())
    assert gone is not None
    assert gone.reason.code == "LaunchTimeout"


def test_a_claim_past_its_time_is_never_launched_again() -> None:
    world = prepared(node_claim("a"))
    world.obey(world.decide())
    world.pass_time(301)
    actions = world.decide().actions
    assert [type(a) for a in actions if a.lane == "nodeclaim/a"] == [DeleteObject]
    assert not any(isinstance(a, LaunchInstances) for a in actions)


def test_the_class_is_looked_up_by_name() -> None:
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "other"}
    world = prepared(node_claim("a", nodeClassRef=ref))
    world.put(node_class("other"))
    plan = world.decide()
    assert [r.reason.code for r in plan.refusals] == ["NodeClassReadinessUnknown"]


def test_an_instance_waits_for_its_type_to_be_known() -> None:
    """A restart repeats the call before it has read the types; labelled without its type, the node would be drifted."""
    world = prepared(node_claim("a"))
    world.obey(world.decide())
    world.facts["catalogues"] = {}
    world.settle()
    assert len(world.calls) == 1
    assert world.condition("Launched") == ("Unknown", "InstanceTypesUnknown")
    assert labels.INSTANCE not in world.claim().metadata.annotations
    del world.facts["catalogues"]
    world.settle()
    assert world.condition("Launched") == ("True", "Launched")
    assert world.claim().metadata.labels[labels.ARCH] == "amd64"
    assert world.claim().status.capacity["cpu"] == "2"
    assert len(world.calls) == 1


def test_an_instance_that_is_ending_is_given_to_nobody() -> None:
    world = prepared(node_claim("a"))
    world.obey(world.decide())
    group = world.claim().metadata.annotations[labels.LAUNCH_GROUP]
    dying = world.add_instance("i-dying", {labels.LAUNCH_GROUP: group})
    world.instances["i-dying"] = changed(dying, state="shutting-down")
    assert [type(a) for a in world.decide().actions] == [LaunchInstances]


@pytest.mark.parametrize(("error", "gone"), [(DENIED, True), (MISMATCH, False)])
def test_a_deleted_claim_goes_at_once_when_its_call_surely_gave_nothing(error: FleetError, gone: bool) -> None:
    world = failing(error)
    world.delete(kinds.ref(world.claim()))
    world.settle()
    assert (world.get(kinds.NODE_CLAIM, "a") is None) == gone


def test_a_claim_that_can_be_read_only_in_part_is_left_alone() -> None:
    """What it says of having launched may be in the other part: neither launched nor given up."""
    world = prepared(node_claim("a", meta={"unreadable": "$.status.conditions"}))
    for _ in range(3):
        plan = world.settle()
        assert [(r.subject, r.reason.code) for r in plan.refusals] == [("nodeclaim/a", "Malformed")]
        world.pass_time(600)
    assert world.deeds == []
    world.delete(kinds.ref(world.claim()))
    world.settle()
    assert world.claim().metadata.finalizers
