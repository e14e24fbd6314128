"""What EC2 answers a fleet call, and what is asked next (31 to 54)."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.aws.launch.fleets import parameters, result
from kerf.aws.observe.instances import instance
from kerf.ec2 import errors
from kerf.ec2.errors import OUT_OF_STOCK
from kerf.ec2.launch import fleet
from kerf.model.aws.cloud import FleetError, FleetRequest, FleetResult
from kerf.model.aws.instance_type import OfferingKey
from kerf.model.plan import LaunchInstances, Reason
from kerf.ports import TemplateMissing
from kerf.runtime.act.results import absorb
from kerf.runtime.inbox import Done, RegionRead
from kerf.runtime.state.fleet import Fleet
from kerf.runtime.state.state import State
from kerf_api import labels
from tests.unit.aws.catalogue.pods import FAMILY, TYPE
from tests.unit.ec2.ec2_facts import NOW, SETTINGS, ZONES, catalogue, claim, region
from tests.unit.ec2.fleet_requests import BOTH, CAPACITY_TYPE, GENERIC, names, problem, request, typed
from tests.unit.ec2.test_fleet_choices import repriced
from tests.unit.ec2.test_fleet_reservations import held
from tests.unit.lifecycle.world import node_claim, prepared

ICE = "InsufficientInstanceCapacity"


def answer(request: FleetRequest, code: str, *pools: tuple[str, str], launched: int = 0, message: str = "no") -> Any:
    """CreateFleet's answer: this error for these (type, zone)s (all that were asked for), and so many instances."""
    asked = [(o.instance_type, o.zone) for o in request.overrides]
    rows = [
        {
            "ErrorCode": code,
            "ErrorMessage": message,
            "LaunchTemplateAndOverrides": {"Overrides": {"InstanceType": name, "AvailabilityZone": zone}},
        }
        for name, zone in (pools or asked)
    ]
    first = request.overrides[0]
    of = {"Overrides": {"InstanceType": first.instance_type, "SubnetId": first.subnet_id}}
    given = [{"InstanceIds": [f"i-{n}"], "LaunchTemplateAndOverrides": of} for n in range(launched)]
    return {"Errors": rows, "Instances": given}


def told(request: FleetRequest, *answers: Any) -> FleetResult:
    """What came of it, as the port tells it."""
    whole = {key: [row for one in answers for row in one.get(key, ())] for key in ("Errors", "Instances")}
    return result(request, whole, NOW)


def stock(request: FleetRequest, *answers: Any) -> dict[OfferingKey, Any]:
    """What is out of stock once such an answer has been taken in."""
    fleets = Fleet()
    fleets.launched(request, told(request, *answers), NOW)
    return dict(fleets.out_of_stock(NOW))


# --- minValues --------------------------------------------------------------------------------------------------
LEAST = claim("a", (FAMILY, "Exists", []), typed(*GENERIC), min_values={FAMILY: 3, TYPE: 4})


def test_031_when_the_cheapest_types_are_too_few_for_min_values_there_is_no_call() -> None:
    found = problem(LEAST, settings=changed(SETTINGS, max_instance_types=2))
    assert found.kind == fleet.CAPACITY
    assert "truncating instance types" in found.message


def test_032_unless_best_effort_will_do() -> None:
    settings = changed(SETTINGS, max_instance_types=2, min_values_policy="BestEffort")
    assert len(names(request(LEAST, settings=settings))) == 2


# --- what is out of stock ---------------------------------------------------------------------------------------
def test_033_spot_that_is_out_of_stock_is_a_lack_of_capacity_of_what_was_named_only() -> None:
    asked = request(claim("a", BOTH, typed("m5.large", "c5.large")))
    assert asked.capacity_type == "spot"
    one = [("m5.large", ZONES[0])]
    assert errors.is_capacity(told(asked, answer(asked, ICE)).errors)
    assert stock(asked, answer(asked, ICE, *one)) == {("m5.large", ZONES[0], "spot"): NOW + OUT_OF_STOCK}


def test_034_then_what_is_on_demand_is_asked_for() -> None:
    one = claim("a", BOTH, typed("m5.large"))
    asked = request(one)
    assert request(one, out_of_stock=stock(asked, answer(asked, ICE))).capacity_type == "on-demand"


SPOT_ROLE = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"


def test_035_without_leave_for_the_role_that_spot_needs_nothing_is_bought_on_spot() -> None:
    one = claim("a", BOTH, typed("m5.large"))
    asked = request(one)
    known = State(SETTINGS, build=lambda *_: (), interpret=lambda _: None)
    known.take(RegionRead(region(*GENERIC), NOW), NOW)
    action = LaunchInstances(reason=Reason("Test"), request=asked, claims=("a",))
    said = told(asked, answer(asked, SPOT_ROLE, ("m5.large", ZONES[0])))
    assert errors.is_capacity(said.errors)
    absorb(Done(action, "ok", NOW, said), known)
    closed = known.fleet.out_of_stock(NOW)
    assert set(closed) == {(name, zone, "spot") for name in GENERIC for zone in ZONES}
    assert request(one, out_of_stock=closed).capacity_type == "on-demand"


def test_035_an_event_on_the_claim_reports_it() -> None:
    world = prepared(node_claim("a"))
    world.given, world.errors = 0, (FleetError(SPOT_ROLE, "no", "m5.large", "us-west-2a", capacity=True),)
    for _ in range(2):
        world.obey(world.decide())
    (event,) = (e for e in world.decide().events if e.ref.kind == "NodeClaim")
    assert (event.type, "service-linked role" in event.message) == ("Warning", True)


def test_036_a_fleet_quota_closes_the_offering_that_was_named() -> None:
    asked = request(claim("a", typed("m5.large")))
    said = answer(asked, "MaxFleetCountExceeded", ("m5.large", ZONES[1]))
    assert errors.is_capacity(told(asked, said).errors)
    assert set(stock(asked, said)) == {("m5.large", ZONES[1], "on-demand")}


def reserved() -> FleetRequest:
    types = catalogue(*GENERIC, reservations=(held("cr-1"), held("cr-2", zone=ZONES[1])))
    return request(claim("a", (CAPACITY_TYPE, "Exists", []), typed("m5.large")), types=types)


def test_037_a_reservation_that_is_full_is_passed_over_and_nothing_else() -> None:
    asked = reserved()
    said = answer(asked, "ReservationCapacityExceeded")
    assert errors.is_capacity(told(asked, said).errors)
    full = stock(asked, said)
    assert set(full) == {("m5.large", ZONES[0], "cr-1"), ("m5.large", ZONES[1], "cr-2")}
    again = request(claim("a", BOTH, typed("m5.large")), out_of_stock=full)
    assert len(again.overrides) == len(ZONES), "what is bought is not closed by it"


def test_038_too_many_requests_say_nothing_of_a_reservation() -> None:
    asked = reserved()
    said = answer(asked, "RequestLimitExceeded")
    assert not errors.is_capacity(told(asked, said).errors)
    assert errors.launch_condition(told(asked, said).errors)[0] == "RequestLimitExceeded"
    assert stock(asked, said) == {}


def test_041_without_the_gate_an_instance_in_an_open_reservation_is_on_demand() -> None:
    shut = changed(SETTINGS, gates=changed(SETTINGS.gates, reserved_capacity=False))
    (template,) = request(claim("a", typed("m5.large")), settings=shut).templates
    assert template.capacity_reservations == "", "so that EC2 uses open ones"
    row = {
        "InstanceId": "i-1",
        "InstanceType": "m5.large",
        "State": {"Name": "running"},
        "LaunchTime": NOW,
        "CapacityReservationId": "cr-1",
        "CapacityReservationSpecification": {"CapacityReservationPreference": "open"},
    }
    assert (instance(row).capacity_type, instance(row).reservation) == ("on-demand", None)


def test_046_errors_beside_an_instance_are_remembered_and_the_launch_has_come_off() -> None:
    asked = request(claim("a", typed("m5.large")))
    said = answer(asked, ICE, ("m5.large", ZONES[0]), launched=1)
    fleets = Fleet()
    fleets.launched(asked, told(asked, said), NOW)
    assert set(fleets.out_of_stock(NOW)) == {("m5.large", ZONES[0], "on-demand")}
    assert list(fleets.instances) == ["i-0"]
    assert asked.group not in fleets.failures(NOW)


def test_047_a_refusal_among_stock_outs_is_what_the_claim_says() -> None:
    asked = request(claim("a", typed("m5.large")))
    said = answer(asked, ICE, ("m5.large", ZONES[0])), answer(asked, "UnauthorizedOperation", ("m5.large", ZONES[1]))
    found = told(asked, *said).errors
    assert not errors.is_capacity(found)
    assert errors.launch_condition(found)[0] == "Unauthorized"


def test_048_no_instance_and_no_reason_is_no_lack_of_capacity() -> None:
    asked = request(claim("a", typed("m5.large")))
    found = told(asked, {}).errors
    assert not errors.is_capacity(found)
    assert errors.launch_condition(found)[0] == "LaunchFailed"


def test_052_a_template_that_vanishes_again_is_what_the_claim_says_and_another_call_is_made() -> None:
    world = prepared(node_claim("a"))
    world.obey(world.decide())
    (action,) = world.decide().actions
    assert isinstance(action, LaunchInstances)
    known = State(world.settings, build=lambda *_: (), interpret=lambda _: None)
    error = TemplateMissing("ec2:CreateFleet: InvalidLaunchTemplateName.NotFoundException: gone")
    absorb(Done(action, "template_missing", world.now, error=error), known)
    world.failures = dict(known.fleet.failures(world.now))
    world.settle()
    assert world.condition("Launched") == ("Unknown", "LaunchFailed")
    before = world.claim().metadata.annotations[labels.LAUNCH_GROUP]
    world.pass_time(5)
    world.settle()
    assert world.claim().is_true("Launched")
    assert world.claim().metadata.annotations[labels.LAUNCH_GROUP] != before


# --- strategies -------------------------------------------------------------------------------------------------
def strategy(prioritized: bool, kind: str) -> str:
    wanted = (CAPACITY_TYPE, "In", [kind])
    call = parameters(request(repriced("a", wanted) if prioritized else claim("a", wanted)))
    options = {"on-demand": "OnDemandOptions", "spot": "SpotOptions"}[kind]
    assert {key for key in call if key.endswith("Options")} == {options}
    return str(call[options]["AllocationStrategy"])


def test_049_on_demand_the_cheapest_is_taken_or_the_first_by_our_prices() -> None:
    assert (strategy(False, "on-demand"), strategy(True, "on-demand")) == ("lowest-price", "prioritized")


def test_050_on_spot_ec2_weighs_price_and_stock_or_goes_by_our_prices() -> None:
    found = strategy(False, "spot"), strategy(True, "spot")
    assert found == ("price-capacity-optimized", "capacity-optimized-prioritized")


# --- after a while ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("left", "zones"),
    [({("m5.large", ZONES[0])}, ZONES[1:]), ({("m5.large", zone) for zone in ZONES[:2]}, ZONES[2:])],
)
def test_100_what_is_out_of_stock_gives_way_to_other_zones_types_and_sizes(left: Any, zones: Any) -> None:
    one = claim("a", typed("m5.large", "m5.xlarge"))
    asked = request(one)
    closed = stock(asked, answer(asked, ICE, *left))
    again = request(one, out_of_stock=closed)
    assert tuple(o.zone for o in again.overrides if o.instance_type == "m5.large") == zones
    assert {o.zone for o in again.overrides if o.instance_type == "m5.xlarge"} == set(ZONES)
    all_of_it = stock(asked, answer(asked, ICE, *[("m5.xlarge", zone) for zone in ZONES]))
    assert names(request(one, out_of_stock=all_of_it)) == ["m5.large"]


def test_101_when_it_is_over_the_offering_is_tried_again() -> None:
    fleets, asked = Fleet(), request(claim("a", typed("m5.large")))
    fleets.launched(asked, told(asked, answer(asked, ICE)), NOW)
    later = NOW + OUT_OF_STOCK
    assert len(fleets.out_of_stock(later - timedelta(seconds=1))) == len(ZONES)
    assert request(claim("a", typed("m5.large")), out_of_stock=fleets.out_of_stock(later)) == asked


def test_102_spot_that_is_to_be_had_nowhere_becomes_on_demand() -> None:
    one = claim("a", BOTH)
    asked = request(one)
    assert asked.capacity_type == "spot"
    again = request(one, out_of_stock=stock(asked, answer(asked, ICE)))
    assert (again.capacity_type, again.tags[labels.TAG_NODEPOOL]) == ("on-demand", "default")
    only = replace(
        one, spec=replace(one.spec, requirements=claim("a", (CAPACITY_TYPE, "In", ["spot"])).spec.requirements)
    )
    assert problem(only, out_of_stock=stock(asked, answer(asked, ICE))).kind == fleet.CAPACITY
