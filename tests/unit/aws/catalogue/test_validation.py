"""EC2NodeClasses are validated by a launch that is tried dry: what is tried, what is said, when again (185 to 191)."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.ec2.nodeclass import validation
from kerf.ec2.nodeclass.validation import (
    DENIED_HOLDS,
    HOLDS,
    PROFILE_NOT_FOUND,
    UNEXPECTED,
    USER_DATA_TOO_LARGE,
    denial,
)
from kerf.model import kinds
from kerf.model.aws.cloud import DryRun, FleetRequest, Image, LaunchTemplate
from kerf.model.aws.instance_type import Catalogue
from kerf.model.plan import LaunchInstances, ValidateClass
from kerf.runtime.state.catalogues import Catalogues
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool
from tests.unit.ec2.ec2_facts import CLUSTER, SETTINGS, ZONES, catalogue, facts, node_class, ready
from tests.unit.lifecycle.world import FACTS, NOW, World, node_claim, node_pool
from tests.unit.lifecycle.world import node_class as stored
from tests.unit.runtime.test_catalogues import catalogues

TENANCY = f"{labels.AWS_GROUP}/instance-tenancy"


# --- what is said ---------------------------------------------------------------------------------------------------
def begun(**spec: Any) -> World:
    """A class to which nothing has happened."""
    world = World(stored(**spec), node_pool())
    world.settings = changed(world.settings, disable_dry_run=False)
    return world


def tried(problem: tuple[str, str] | None, **spec: Any) -> World:
    """A class of which a dry run says so."""
    world = begun(**spec)
    world.objection = problem
    world.settle()
    return world


def told(world: World, type_: str = validation.CONDITION) -> tuple[str, str, str]:
    rows = world.get(kinds.NODE_CLASS, "default").status.conditions
    found = next(row for row in rows if row.type == type_)
    return found.status, found.reason, found.message


def test_185_a_class_that_can_be_launched_from_is_valid() -> None:
    world = tried(None)
    assert told(world) == validation.SUCCEEDED
    assert told(world, "Ready")[0] == "True"
    (asked,) = world.done(ValidateClass)
    assert asked.request.capacity_type == labels.ON_DEMAND
    assert asked.request.tags[labels.TAG_NODECLASS] == "default"


def test_185_before_it_was_tried_the_result_is_unknown() -> None:
    world = begun()
    untried(world)
    assert told(world)[:2] == ("Unknown", "AwaitingReconciliation")
    assert told(world, "Ready")[0] == "Unknown"


def untried(world: World) -> None:
    """Everything else is done."""
    for _ in range(4):
        plan = world.decide()
        world.obey(changed(plan, actions=tuple(one for one in plan.actions if not isinstance(one, ValidateClass))))


@pytest.mark.parametrize("call", list(validation.DENIALS))
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("with an explicit deny in a permissions boundary", "A permissions boundary denies the action"),
        ("with an explicit deny in a service control policy", "A service control policy denies the action"),
        ("", "AWS does not authorize the action"),
    ],
)
def test_185_a_denial_is_reported_with_the_reason_and_nothing_is_launched(call: str, text: str, words: str) -> None:
    world = tried(denial(call, f"{call}: UnauthorizedOperation: you may not {text}"))
    status, reason, message = told(world)
    assert (status, reason) == ("False", validation.DENIALS[call][0])
    assert words in message
    assert told(world, "Ready")[0] == "False"
    world.put(node_claim("a"))
    world.settle()
    assert world.done(LaunchInstances) == []


def test_185_what_is_denied_is_tried_again_and_so_is_what_was_fine() -> None:
    world = tried(denial("ec2:RunInstances", "UnauthorizedOperation"))
    world.objection = None
    world.pass_time(DENIED_HOLDS.total_seconds() - 1)
    world.settle()
    assert told(world)[0] == "False"
    world.pass_time(1)
    world.settle()
    assert told(world) == validation.SUCCEEDED
    assert world.decide().next_due == world.now + HOLDS
    world.pass_time(HOLDS.total_seconds())
    world.settle()
    assert len(world.done(ValidateClass)) == 3


def test_185_a_restarted_controller_trusts_the_status_until_it_has_tried_again() -> None:
    for problem, status in ((None, "True"), (denial("ec2:CreateFleet", "UnauthorizedOperation"), "False")):
        world = tried(problem)
        world.dry_runs.clear()
        plan = world.decide()
        assert [type(action) for action in plan.actions] == [ValidateClass]
        assert told(world)[0] == status


def test_185_what_is_waited_for_comes_first_and_is_forgotten_when_it_is_there() -> None:
    world = begun()
    world.class_facts["default"] = changed(FACTS, subnets=())
    world.settle()
    assert told(world)[1] == "DependenciesNotReady"
    assert world.done(ValidateClass) == []
    world.class_facts["default"] = FACTS
    untried(world)
    assert told(world)[:2] == ("Unknown", "AwaitingReconciliation")
    world.settle()
    assert told(world)[0] == "True"


# --- instance profiles ----------------------------------------------------------------------------------------------
NO_PROFILE = (PROFILE_NOT_FOUND, "Invalid IAM Instance Profile name")


def test_187_a_profile_that_was_made_for_a_role_is_waited_for() -> None:
    world = tried(NO_PROFILE)
    assert told(world)[0] == "Unknown"
    world.objection = None
    world.pass_time(5)
    world.settle()
    assert told(world) == validation.SUCCEEDED


def test_187_a_profile_that_ec2_does_not_see_for_a_minute_is_reported_and_tried_each_minute() -> None:
    world = tried(NO_PROFILE)
    for _ in range(11):
        world.pass_time(5)
        world.settle()
        assert told(world)[0] == "Unknown"
    world.pass_time(5)
    world.settle()
    assert told(world) == ("False", *NO_PROFILE)
    assert len(world.done(ValidateClass)) == 13
    for _ in range(60):
        world.pass_time(10)
        world.settle()
    assert len(world.done(ValidateClass)) == 23
    world.objection = None
    world.pass_time(60)
    world.settle()
    assert told(world) == validation.SUCCEEDED


def test_187_a_profile_that_is_named_has_to_be_there() -> None:
    world = tried(NO_PROFILE, role=None, instanceProfile="mine")
    assert told(world)[:2] == ("False", PROFILE_NOT_FOUND)
    world.objection = None
    world.pass_time(60)
    world.settle()
    assert told(world) == validation.SUCCEEDED, "it is not believed for as long as a denial"


# --- the type that is tried -----------------------------------------------------------------------------------------
GPU, PLAIN = "g4dn.xlarge", "c5.large"
USUAL = ("m5.large", "m6g.large")


def pool(*entries: tuple[str, str, list[str]], name: str = "default") -> NodePool:
    return decode(NodePool, encoded(name, entries))


def encoded(name: str, entries: Any) -> dict[str, Any]:
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}
    rows = [{"key": key, "operator": operator, "values": values} for key, operator, values in entries]
    return {"metadata": {"name": name}, "spec": {"template": {"spec": {"nodeClassRef": ref, "requirements": rows}}}}


def of_types(*names: str) -> tuple[str, str, list[str]]:
    return (labels.INSTANCE_TYPE, "In", list(names))


def asked(
    *pools: NodePool, types: Catalogue | None = None, of: EC2NodeClass | None = None, **changes: Any
) -> FleetRequest:
    given: dict[str, Any] = {"cluster": CLUSTER, "settings": SETTINGS, **changes}
    known = catalogue(GPU, "inf2.xlarge", PLAIN, "c5.xlarge", "m5.metal", *USUAL) if types is None else types
    found = validation.request(of or ready(node_class()), catalogue=known, pools=pools, **given)
    assert found is not None
    return found


def types_of(request: FleetRequest) -> set[str]:
    return {override.instance_type for override in request.overrides}


def template_of(request: FleetRequest) -> LaunchTemplate:
    (template,) = request.templates
    return template


def test_188_a_plain_type_is_tried_if_a_node_pool_can_have_one() -> None:
    assert types_of(asked(pool(of_types(GPU, PLAIN, "c5.xlarge", "m5.metal")))) == {PLAIN}
    assert types_of(asked(pool(of_types(GPU)), pool(of_types("c5.xlarge"), name="other"))) == {"c5.xlarge"}
    both = (GPU, "m5.xlarge")  # as large as each other
    assert types_of(asked(pool(of_types(*both)), types=catalogue(*both))) == {"m5.xlarge"}


def test_188_else_one_with_accelerators_and_its_own_image() -> None:
    found = asked(pool(of_types(GPU)))
    assert types_of(found) == {GPU}
    assert template_of(found).image_id == "ami-2"
    assert template_of(asked(pool(of_types(PLAIN)))).image_id == "ami-1"


def test_188_without_a_node_pool_or_a_type_for_it_a_usual_one_is_tried() -> None:
    assert types_of(asked()) == {"m5.large"}
    assert types_of(asked(pool(of_types("r5.large")))) == {"m5.large"}
    assert types_of(asked(types=catalogue(PLAIN, "m6g.large"))) == {"m6g.large"}
    assert types_of(asked(types=catalogue("c5.xlarge", GPU))) == {"c5.xlarge"}


def test_188_so_it_is_for_windows() -> None:
    build = "10.0.20348"
    windows = facts(images=(Image("ami-w", "Windows_Server-2022", "amd64", windows_build=build, variant="standard"),))
    of = ready(node_class("Windows2022"), windows)
    known = catalogue(PLAIN, *USUAL, of=of, images=windows.images)
    assert types_of(asked(pool(of_types(PLAIN)), types=known, of=of)) == {"m5.large"}


def test_188_of_a_class_that_nothing_boots_nothing_is_tried() -> None:
    arm = facts(images=(Image("ami-a", "own", "arm64"),))
    of = ready(node_class("Custom"), arm)
    known = catalogue(PLAIN, of=of, images=arm.images)
    assert validation.request(of, catalogue=known, pools=(), cluster=CLUSTER, settings=SETTINGS) is None


def test_188_it_is_tried_in_a_subnet_of_each_zone() -> None:
    found = asked(pool(of_types(PLAIN)))
    assert {override.zone for override in found.overrides} == set(ZONES)
    assert len(found.overrides) == len(ZONES)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([["dedicated"]], "dedicated"),
        ([["default"], ["default", "dedicated"]], "dedicated"),
        ([["default"]], "default"),
        ([], "default"),
    ],
)
def test_189_dedicated_hardware_is_tried_as_soon_as_one_node_pool_allows_it(
    values: list[list[str]], expected: str
) -> None:
    pools = [pool((TENANCY, "In", one), name=f"p{number}") for number, one in enumerate(values)]
    assert template_of(asked(pool(name="plain"), *pools)).tenancy == expected


# --- when it is tried again -----------------------------------------------------------------------------------------
def test_190_a_new_annotation_makes_it_be_tried_again_and_those_of_controllers_do_not() -> None:
    world = tried(None)
    world.settle()
    assert len(world.done(ValidateClass)) == 1
    for key, count in ((f"{labels.KERF}/garbage-collected", 1), ("example.com/look-again", 2)):
        of = world.get(kinds.NODE_CLASS, "default")
        world.put(replace(of, metadata=replace(of.metadata, annotations={**of.metadata.annotations, key: "x"})))
        world.settle()
        assert len(world.done(ValidateClass)) == count


def test_190_so_does_another_thing_that_it_selects() -> None:
    world = tried(None)
    world.class_facts["default"] = changed(FACTS, images=(changed(FACTS.images[0], id="ami-2"),))
    world.settle()
    assert len(world.done(ValidateClass)) == 2
    world.class_facts["default"] = changed(FACTS, images=(changed(FACTS.images[0], id="ami-2"),), instance_profile="b")
    world.objection = denial("ec2:RunInstances", "UnauthorizedOperation: iam:PassRole")
    world.settle()
    assert told(world)[:2] == ("False", "RunInstancesAuthCheckFailed")


def test_190_with_its_class_goes_what_was_known_of_it() -> None:
    made: Catalogues = catalogues("default")
    made.tried("default", DryRun("1", NOW))
    assert made.dry_runs["default"].identity == "1"
    made.forget("default")
    made.tried("default", DryRun("2", NOW))  # an answer that comes late
    assert made.dry_runs == {}


def test_190_without_dry_runs_a_class_is_valid_and_nothing_is_called() -> None:
    world = World(stored(), node_pool())
    world.settings = changed(world.settings, disable_dry_run=True)
    world.settle()
    assert told(world) == validation.SUCCEEDED
    assert world.done(ValidateClass) == []


# --- what else AWS may say ------------------------------------------------------------------------------------------
def test_191_user_data_that_is_too_large_is_a_reason_of_its_own() -> None:
    assert told(tried((USER_DATA_TOO_LARGE, "16400"))) == ("False", USER_DATA_TOO_LARGE, "16400")


def test_191_any_other_error_is_reported_and_decides_nothing() -> None:
    fault = (UNEXPECTED, "ec2:CreateLaunchTemplate: InvalidUserData.Malformed: not base64")
    assert told(tried(fault)) == ("Unknown", *fault)
    world = tried(None)
    world.objection = fault
    world.pass_time(HOLDS.total_seconds())
    world.settle()
    assert told(world) == validation.SUCCEEDED
    due = world.decide().next_due
    assert due is not None
    assert due <= world.now + timedelta(minutes=1)
