"""Placement groups: what goes into one, what is out of stock there, which partition a machine is in (53 to 219)."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.aws.launch.launch_templates import template_data
from kerf.ec2 import errors
from kerf.ec2.errors import OUT_OF_STOCK
from kerf.ec2.instances import claim_labels
from kerf.ec2.launch import fleet
from kerf.ec2.nodeclass import drift
from kerf.model.aws.cloud import FleetError, FleetRequest, PlacementGroup
from kerf.model.aws.instance_type import Catalogue
from kerf.runtime.state.fleet import Fleet
from kerf_api import labels
from kerf_api.v1.conditions import READY
from tests.unit.aws.catalogue import pods
from tests.unit.aws.catalogue.test_fleet_errors import ICE, answer, reserved, stock, told
from tests.unit.ec2.ec2_facts import NOW, ZONES, catalogue, claim, facts, node_class, one, ready
from tests.unit.ec2.fleet_requests import CLASS, names, problem, request, typed
from tests.unit.ec2.test_drift import CA, TYPES, instance, launched, stamped
from tests.unit.ec2.test_nodeclass import status, verdict
from tests.unit.lifecycle.nodes import launched as in_world
from tests.unit.lifecycle.world import World
from tests.unit.scheduling import worlds as w

NEAR = PlacementGroup("pg-0near", "near", "cluster")
APART = PlacementGroup("pg-0apart", "apart", "spread")
RACKS = PlacementGroup("pg-0racks", "racks", "partition", 3)
GROUP, PARTITION = labels.PLACEMENT_GROUP, labels.PLACEMENT_PARTITION
PLACED = node_class(placementGroupSelector={"name": "any"})
LIMIT = "You have reached the limit of instances in this spread placement group"


def types(group: PlacementGroup | None, *names: str, **changes: Any) -> Catalogue:
    return catalogue(*(names or ("c5.large", "m5.large")), of=PLACED, placement_group=group, **changes)


def placed(group: PlacementGroup, *wanted: Any, **changes: Any) -> FleetRequest:
    """The call for a claim of a class with this group."""
    of = ready(PLACED, facts(placement_group=group))
    given = {"types": types(group), "node_class": of, "placement_group": group, **changes}
    return request(claim("a", *(wanted or (typed("c5.large", "m5.large"),))), **given)


# --- what is out of stock ---------------------------------------------------------------------------------------
def test_053_a_spread_group_that_is_full_in_a_zone_has_no_type_of_the_launch_there() -> None:
    asked = placed(APART)
    said = answer(asked, "InstanceLimitExceeded", ("m5.large", ZONES[0]), message=LIMIT)
    assert errors.is_capacity(told(asked, said).errors)
    full = stock(asked, said)
    assert full == {(kind, ZONES[0], "on-demand in pg-0apart"): NOW + OUT_OF_STOCK for kind in names(asked)}
    again = placed(APART, out_of_stock=full)
    assert {(o.instance_type, o.zone) for o in again.overrides} == {(n, z) for n in names(asked) for z in ZONES[1:]}
    assert placed(changed(APART, id="pg-0other"), out_of_stock=full).overrides[0].zone == ZONES[0]
    assert len(request(claim("a", typed("m5.large")), out_of_stock=full).overrides) == len(ZONES)


def test_053_of_a_class_without_a_group_such_words_close_the_offering_that_was_named() -> None:
    asked = request(claim("a", typed("m5.large")))
    said = answer(asked, "InstanceLimitExceeded", ("m5.large", ZONES[0]), message=LIMIT)
    assert set(stock(asked, said)) == {("m5.large", ZONES[0], "on-demand")}


def test_054_what_is_out_of_stock_in_a_group_is_to_be_had_outside() -> None:
    asked = placed(NEAR)
    closed = stock(asked, answer(asked, ICE, ("m5.large", ZONES[0])))
    assert set(closed) == {("m5.large", ZONES[0], "on-demand in pg-0near")}
    outside = request(claim("a", typed("m5.large")), out_of_stock=closed)
    assert [o.zone for o in outside.overrides] == list(ZONES)
    within = placed(NEAR, typed("m5.large"), out_of_stock=closed)
    assert [o.zone for o in within.overrides] == list(ZONES[1:])


def test_054_what_is_out_of_stock_outside_is_so_in_a_group() -> None:
    asked = request(claim("a", typed("m5.large")))
    closed = stock(asked, answer(asked, ICE, ("m5.large", ZONES[0])))
    assert [o.zone for o in placed(NEAR, typed("m5.large"), out_of_stock=closed).overrides] == list(ZONES[1:])


def test_054_a_reservation_that_is_full_is_so_for_all() -> None:
    plain = reserved()
    into = tuple(replace(template, placement_group="pg-0near") for template in plain.templates)
    asked = replace(plain, templates=into)
    full, said = FleetError("ReservationCapacityExceeded", "no", "m5.large", ZONES[0], True), Fleet()
    assert list(errors.closed(asked, full)) == [("m5.large", ZONES[0], "cr-1")]
    said.launched(asked, told(asked, answer(asked, "InstanceLimitExceeded", message=LIMIT)), NOW)
    assert ("m5.large", ZONES[0], "cr-1 in pg-0near") in said.out_of_stock(NOW)
    assert ("m5.large", ZONES[0], "cr-1") not in said.out_of_stock(NOW)


# --- what goes into a group -------------------------------------------------------------------------------------
def usable(name: str, group: PlacementGroup | None) -> bool:
    (found,) = types(group, name)
    return any(offering.available for offering in found.offerings)


def test_118_a_type_that_the_group_does_not_take_is_not_to_be_had() -> None:
    assert (usable("m5.large", NEAR), usable("t3.large", NEAR)) == (True, False)
    assert (usable("t3.large", APART), usable("t3.large", RACKS)) == (True, True)
    assert any(offering.available for offering in one("t3.large").offerings), "of a class without a group"


def test_118_nothing_is_launched_outside_the_group_that_a_class_asks_for() -> None:
    assert not usable("m5.large", None)
    found = problem(claim("a", typed("m5.large")), node_class=ready(PLACED, facts(placement_group=NEAR)))
    assert (found.kind, "placement group" in found.message) == (fleet.NOT_READY, True)


def test_a_group_that_the_class_asks_for_no_more_counts_no_more() -> None:
    assert catalogue("m5.large", placement_group=NEAR) == catalogue("m5.large")
    asked = request(claim("a", typed("m5.large")), placement_group=NEAR)
    assert asked == request(claim("a", typed("m5.large")))


def placement(found: FleetRequest) -> dict[str, Any]:
    (template,) = found.templates
    return dict(template_data(template, "us-west-2")["Placement"])


def test_machines_are_launched_into_the_group_and_the_partition_that_is_asked_for() -> None:
    tenancy = {"Tenancy": "default"}
    assert placement(request(claim("a", typed("m5.large")))) == tenancy
    assert placement(placed(NEAR)) == {**tenancy, "GroupId": "pg-0near"}
    racks = {**tenancy, "GroupId": "pg-0racks"}
    assert placement(placed(RACKS, typed("m5.large"), types=types(RACKS))) == racks, "EC2 evens them out"
    asked = placed(RACKS, (PARTITION, "In", ["3", "2"]), types=types(RACKS))
    assert placement(asked) == {**racks, "PartitionNumber": 2}
    other = placed(RACKS, (PARTITION, "NotIn", ["1"]), types=types(RACKS))
    assert placement(other) == {**racks, "PartitionNumber": 2}


def test_a_partition_that_the_group_does_not_have_is_nowhere_to_be_had() -> None:
    of = ready(PLACED, facts(placement_group=RACKS))
    wanted = claim("a", (PARTITION, "In", ["4"]))
    assert problem(wanted, node_class=of, types=types(RACKS), placement_group=RACKS).kind == fleet.CAPACITY
    near = ready(PLACED, facts(placement_group=NEAR))
    assert problem(
        claim("a", (PARTITION, "Exists", [])), node_class=near, types=types(NEAR), placement_group=NEAR
    ).kind == (fleet.CAPACITY)


def test_pods_ask_for_a_partition_or_spread_over_them() -> None:
    chosen = pods.asked(
        pods.pod("a", select={PARTITION: "3"}), of=PLACED, types=types(RACKS, "m5.large"), placement_group=RACKS
    )
    assert placement(chosen.call)["PartitionNumber"] == 3
    web: dict[str, Any] = {"labels": {"app": "web"}, "topologySpreadConstraints": [w.spread(PARTITION)]}
    spread = pods.asked(
        *(pods.pod(name, **web) for name in "abc"), of=PLACED, types=types(RACKS, "m5.large"), placement_group=RACKS
    )
    assert spread.pending == ()
    assert sorted(placement(call)["PartitionNumber"] for call in spread.calls) == [1, 2, 3]


@pytest.mark.parametrize(
    ("group", "number", "expected"),
    [
        (NEAR, 0, {GROUP: "pg-0near"}),
        (RACKS, 0, {GROUP: "pg-0racks", PARTITION: ""}),
        (RACKS, 2, {GROUP: "pg-0racks", PARTITION: "2"}),
    ],
)
def test_the_labels_say_where_it_is(group: PlacementGroup, number: int, expected: dict[str, str]) -> None:
    machine = changed(instance(), placement_group=group.id, partition=number)
    (kind,) = types(group, "m5.large")
    found = claim_labels(machine, kind, PLACED)
    assert {key: value for key, value in found.items() if key in (GROUP, PARTITION)} == expected


# --- the class --------------------------------------------------------------------------------------------------
def test_198_without_its_group_a_class_is_not_ready_and_without_a_selector_it_needs_none() -> None:
    missing = facts(problems={"PlacementGroupReady": ("PlacementGroupNotFound", "none of that name")})
    found = status(PLACED, missing)
    assert verdict(found, "PlacementGroupReady") == ("False", "PlacementGroupNotFound")
    assert verdict(found, READY)[0] == "False"
    there = status(replace(PLACED, status=found), facts(placement_group=NEAR))
    assert (verdict(there, "PlacementGroupReady")[0], verdict(there, READY)[0]) == ("True", "True")
    plain = status(replace(node_class(), status=found), facts())
    assert (verdict(plain, "PlacementGroupReady")[0], verdict(plain, READY)[0]) == ("True", "True")


# --- drift ------------------------------------------------------------------------------------------------------
SELECTING = stamped(ready(PLACED, facts(placement_group=NEAR)))


def drifted(of: Any, label: str, group: PlacementGroup | None, generation: int = 1) -> str | None:
    mine = launched(of.metadata.annotations[labels.NODECLASS_HASH])
    mine = replace(
        mine, metadata=replace(mine.metadata, labels={**mine.metadata.labels, **({GROUP: label} if label else {})})
    )
    return drift.reason(mine, of, instance(), TYPES, CA, facts(placement_group=group, generation=generation))


def test_200_another_group_than_the_class_selects_is_drift_whichever_has_none() -> None:
    assert drifted(SELECTING, "pg-0near", NEAR) == ""
    assert drifted(SELECTING, "pg-0other", NEAR) == "PlacementGroupDrift"
    assert drifted(SELECTING, "", NEAR) == "PlacementGroupDrift"
    assert drifted(stamped(CLASS), "pg-0near", None) == "PlacementGroupDrift"
    assert drifted(stamped(CLASS), "", None) == ""


def test_200_of_a_group_that_is_not_known_there_is_no_verdict() -> None:
    assert drifted(SELECTING, "pg-0near", None) is None
    assert drifted(SELECTING, "pg-0near", changed(NEAR, id="pg-0new"), generation=0) is None


# --- registration -----------------------------------------------------------------------------------------------
def joining(own: dict[str, str]) -> World:
    """A claim with these labels, whose Node has joined."""
    world = in_world()
    one = world.claim()
    world.put(replace(one, metadata=replace(one.metadata, labels={**one.metadata.labels, **own})))
    world.join(world.claim())
    return world


def tell(world: World, number: int) -> None:
    """EC2 tells in which partition the machine is."""
    (id_,) = world.instances
    world.instances[id_] = changed(world.instances[id_], partition=number)


AWAITED = {GROUP: "pg-0racks", PARTITION: ""}


def test_219_a_node_takes_no_pods_before_its_partition_is_known_and_then_has_the_label() -> None:
    world = joining(AWAITED)
    world.settle()
    assert world.condition("Registered") == ("Unknown", "RegistrationHookPending")
    assert not world.node("node-a").registered
    assert [taint.key for taint in world.node("node-a").spec.taints] == [labels.UNREGISTERED_TAINT]
    tell(world, 2)
    world.settle()
    assert world.condition("Registered") == ("True", "Registered")
    assert (world.claim().metadata.labels[PARTITION], world.node("node-a").metadata.labels[PARTITION]) == ("2", "2")


def test_219_of_a_machine_that_is_not_listed_nothing_is_known() -> None:
    world = joining(AWAITED)
    world.instances.clear()
    world.settle()
    found = world.claim().condition("Registered")
    assert found is not None
    assert (found.status, "of the machine" in found.message) == ("Unknown", True)
    assert world.claim().metadata.labels[PARTITION] == ""


@pytest.mark.parametrize("own", [{}, {GROUP: "pg-0near"}, {GROUP: "pg-0racks", PARTITION: "3"}])
def test_219_where_there_is_no_partition_or_it_is_known_no_node_waits(own: dict[str, str]) -> None:
    world = joining(own)
    tell(world, 2)
    world.settle()
    assert world.condition("Registered") == ("True", "Registered")
    assert world.claim().metadata.labels.get(PARTITION) == own.get(PARTITION)
