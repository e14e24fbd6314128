"""Fleet requests into capacity reservations."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kerf.ec2.launch import fleet
from kerf.model.aws.cloud import CapacityReservation, FleetRequest
from kerf_api import labels
from tests.unit.ec2.ec2_facts import NOW, ZONES, catalogue, claim
from tests.unit.ec2.fleet_requests import BOTH, CAPACITY_TYPE, GENERIC, problem, request

RESERVED = (CAPACITY_TYPE, "In", ["reserved"])
BLOCK: dict[str, Any] = {"type": "capacity-block"}
TAKEN_BACK: dict[str, Any] = {"interruptible": True}


def held(id_: str, name: str = "m5.large", zone: str = ZONES[0], left: int = 1, **kind: Any) -> CapacityReservation:
    return CapacityReservation(id_, name, zone, left, **kind)


def reserved(*rows: CapacityReservation, wanted: Any = (), **changes: Any) -> FleetRequest:
    """The request of a claim that allows everything, in a region with these reservations."""
    types = catalogue(*GENERIC, reservations=rows)
    return request(claim("a", (CAPACITY_TYPE, "Exists", []), *wanted), types=types, **changes)


def into(found: FleetRequest) -> list[tuple[str, str, str]]:
    """Type, zone and reservation of each override, sorted."""
    return sorted((o.instance_type, o.zone, one.id if (one := found.reservation(o)) else "") for o in found.overrides)


def test_what_is_reserved_is_launched_before_anything_is_bought() -> None:
    """Each reservation has a template of its own, and its machines run there or not at all."""
    found = reserved(held("cr-1"), held("cr-2", "c5.large", ZONES[1], **BLOCK), held("cr-3", "c5.large", ZONES[2]))
    assert found.capacity_type == "reserved"
    assert into(found) == [("c5.large", ZONES[2], "cr-3"), ("m5.large", ZONES[0], "cr-1")]
    assert {template.capacity_reservations for template in found.templates} == {"capacity-reservations-only"}
    assert {template.reservation.id for template in found.templates if template.reservation} == {"cr-1", "cr-3"}
    assert all("karpenter.sh/capacity-type=reserved" in template.user_data for template in found.templates)


def test_reserved_types_are_listed_by_their_price_on_demand() -> None:
    rows = [held("cr-1", "m5.4xlarge"), held("cr-2", "m5.large"), held("cr-3", "r5.large", ZONES[1])]
    types = catalogue("m5.4xlarge", "m5.large", "r5.large", reservations=tuple(rows))
    found = request(claim("a", RESERVED), types=types)
    assert [override.instance_type for override in found.overrides] == ["m5.large", "r5.large", "m5.4xlarge"]
    assert {override.price for override in found.overrides} == {0}


def test_a_claim_that_was_planned_on_a_reservation_goes_there() -> None:
    rows = [held("cr-1", left=5), held("cr-2"), held("cr-3", "c5.large")]
    wanted = ((labels.RESERVATION_ID, "In", ["cr-2"]),)
    found = reserved(*rows, wanted=wanted)
    assert into(found) == [("m5.large", ZONES[0], "cr-2")]
    gone = {("m5.large", ZONES[0], "cr-2"): NOW + timedelta(minutes=1)}
    types = catalogue(*GENERIC, reservations=tuple(rows))
    assert problem(claim("a", RESERVED, *wanted), types=types, out_of_stock=gone).kind == fleet.CAPACITY


def test_of_reservations_of_a_type_in_a_zone_the_roomiest() -> None:
    found = reserved(held("cr-1", left=2), held("cr-2", left=3), held("cr-3", left=3), held("cr-4", zone=ZONES[1]))
    assert into(found) == [("m5.large", ZONES[0], "cr-2"), ("m5.large", ZONES[1], "cr-4")]


@pytest.mark.parametrize(
    ("rows", "chosen"),
    [
        ([held("cr-1", **TAKEN_BACK), held("cr-2", **BLOCK), held("cr-3")], ["cr-3"]),
        ([held("cr-1", **TAKEN_BACK), held("cr-2", **BLOCK)], ["cr-2"]),
        ([held("cr-1", **BLOCK), held("cr-2", "c5.large", **BLOCK), held("cr-3", zone=ZONES[1], **BLOCK)], ["cr-2"]),
        ([held("cr-1", **TAKEN_BACK), held("cr-2", "c5.large", **TAKEN_BACK)], ["cr-1", "cr-2"]),
    ],
)
def test_one_call_is_about_one_kind_of_reservation(rows: list[CapacityReservation], chosen: list[str]) -> None:
    """At one price the ordinary kind first; a capacity block is one machine's type and zone."""
    assert sorted(id_ for _, _, id_ in into(reserved(*rows))) == chosen


@pytest.mark.parametrize("left", [0, 1])
def test_without_reserved_capacity_the_launch_is_one_like_others(left: int) -> None:
    """Nothing is left, or the claim does not allow it."""
    plain = claim("a", BOTH if left else (CAPACITY_TYPE, "Exists", []))
    found = request(plain, types=catalogue(*GENERIC, reservations=(held("cr-1", left=left),)))
    assert found == request(plain)


def test_claims_of_one_reservation_share_a_call() -> None:
    rows = (RESERVED, (labels.RESERVATION_ID, "In", ["cr-1"]))
    types = catalogue(*GENERIC, reservations=(held("cr-1", left=2),))
    found = request(claim("a", *rows), claim("b", *rows), types=types)
    assert (found.members, found.sold("m5.large", ZONES[0])) == (("a", "b"), ("m5.large", ZONES[0], "cr-1"))
    assert request(claim("a")).sold("m5.large", ZONES[0]) == ("m5.large", ZONES[0], "on-demand")
