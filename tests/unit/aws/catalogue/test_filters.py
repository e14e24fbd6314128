"""Which types and offerings a fleet call may name (64 to 78 and 104)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest

from kerf.ec2.launch import fleet
from kerf.model.aws.cloud import CapacityReservation
from kerf.model.aws.instance_type import Catalogue, Offering
from kerf_api import labels
from kerf_api.resources import Resources
from tests.unit.aws.catalogue.pods import BOUGHT, TYPE, asked, pod
from tests.unit.ec2.ec2_facts import NOW, ZONES, all_names, catalogue, claim
from tests.unit.ec2.fleet_requests import BOTH, CAPACITY_TYPE, GENERIC, ZONE, names, problem, request
from tests.unit.ec2.test_fleet_reservations import BLOCK, TAKEN_BACK, held, into, reserved

LATER = NOW + timedelta(minutes=1)


def sold_out(names: Iterable[str], kind: str = "on-demand") -> dict[Any, Any]:
    return {(name, zone, kind): LATER for name in names for zone in ZONES}


def repriced(types: Catalogue, price: Any) -> Catalogue:
    """Each offering at what `price` says of it."""
    return tuple(changed(t, offerings=tuple(changed(o, price=price(o)) for o in t.offerings)) for t in types)


# --- each type by itself ----------------------------------------------------------------------------------------
def test_064_what_does_not_suit_does_not_fit_or_is_not_to_be_had_is_left_out() -> None:
    only = claim("a", ("karpenter.k8s.aws/instance-cpu", "In", ["4"]))
    assert names(request(only)) == ["m5.xlarge"]
    assert names(request(claim("a", requests={"memory": "14Gi"}))) == ["r5.large"]
    rest = [name for name in GENERIC if name != "m5.large"]
    assert names(request(claim(), out_of_stock=sold_out(rest))) == ["m5.large"]


EXTRA = Resources({"example.com/extra": 2})


def with_capacity(zone: str, own: Resources, types: Catalogue | None = None) -> Catalogue:
    """Machines from this zone have these resources besides."""
    known = catalogue("m5.large", "c5.large") if types is None else types
    return tuple(
        changed(t, offerings=tuple(changed(o, capacity=own) if o.zone == zone else o for o in t.offerings))
        for t in known
    )


def test_065_a_type_that_is_too_small_is_kept_for_offerings_that_are_large_enough() -> None:
    types, wants = with_capacity(ZONES[1], EXTRA), {"example.com/extra": "1"}
    found = request(claim("a", requests=wants), types=types)
    assert {(o.instance_type, o.zone) for o in found.overrides} == {("c5.large", ZONES[1]), ("m5.large", ZONES[1])}
    elsewhere = claim("a", (ZONE, "In", [ZONES[0]]), requests=wants)
    assert problem(elsewhere, types=types).kind == fleet.CAPACITY
    gone = {(name, ZONES[1], "on-demand"): LATER for name in ("c5.large", "m5.large")}
    assert problem(claim("a", requests=wants), types=types, out_of_stock=gone).kind == fleet.CAPACITY


def test_066_of_several_capacities_that_which_fits_will_do() -> None:
    small = with_capacity(ZONES[1], Resources({"example.com/extra": 1}))
    types = with_capacity(ZONES[2], EXTRA, small)
    found = request(claim("a", requests={"example.com/extra": "2"}), types=types)
    assert {o.zone for o in found.overrides} == {ZONES[2]}
    only_override = {(name, zone, "on-demand"): LATER for name in ("c5.large", "m5.large") for zone in ZONES[:2]}
    assert {o.zone for o in request(claim(), types=types, out_of_stock=only_override).overrides} == {ZONES[2]}


# --- reservations -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [{}, TAKEN_BACK, BLOCK])
def test_067_where_something_is_reserved_only_that_is_named(kind: dict[str, Any]) -> None:
    found = reserved(held("cr-1", **kind))
    assert into(found) == [("m5.large", ZONES[0], "cr-1")]
    assert found.capacity_type == "reserved"


@pytest.mark.parametrize(
    ("rows", "chosen"),
    [
        ([held("cr-1", **BLOCK), held("cr-2", "c5.large")], "cr-2"),
        ([held("cr-1", **TAKEN_BACK), held("cr-2", "c5.large", **BLOCK)], "cr-2"),
        ([held("cr-1", **TAKEN_BACK), held("cr-2", "c5.large")], "cr-2"),
    ],
)
def test_068_at_one_price_ordinary_ones_come_before_blocks_and_these_before_what_is_taken_back(
    rows: list[CapacityReservation], chosen: str
) -> None:
    assert [id_ for _, _, id_ in into(reserved(*rows))] == [chosen]


def priced(*rows: tuple[CapacityReservation, int], available: bool = True) -> Catalogue:
    """Types with reservations at these prices; the first is what `available` says."""
    prices = {one.id: price for one, price in rows}
    shut = () if available else (rows[0][0].id,)

    def of(offering: Offering) -> Offering:
        one = offering.reservation
        if one is None:
            return offering
        return changed(offering, price=prices[one.id], available=one.id not in shut)

    types = catalogue(*GENERIC, reservations=tuple(one for one, _ in rows))
    return tuple(changed(t, offerings=tuple(map(of, t.offerings))) for t in types)


ALL: tuple[str, str, list[str]] = (CAPACITY_TYPE, "Exists", [])


def test_069_a_cheaper_one_that_cannot_be_had_or_does_not_suit_counts_for_nothing() -> None:
    block, plain = held("cr-1", **BLOCK), held("cr-2", "c5.large", ZONES[1])
    assert into(request(claim("a", ALL), types=priced((block, 1), (plain, 2))))[0][2] == "cr-1"
    shut = priced((block, 1), (plain, 2), available=False)
    assert into(request(claim("a", ALL), types=shut))[0][2] == "cr-2"
    elsewhere = claim("a", ALL, (ZONE, "In", [ZONES[1]]))
    assert into(request(elsewhere, types=priced((block, 1), (plain, 2))))[0][2] == "cr-2"


def test_070_of_capacity_blocks_the_cheapest_that_can_be_had_alone() -> None:
    rows = (held("cr-1", **BLOCK), 3), (held("cr-2", "c5.large", **BLOCK), 2), (held("cr-3", zone=ZONES[1], **BLOCK), 4)
    found = request(claim("a", ALL), types=priced(*rows))
    assert into(found) == [("c5.large", ZONES[0], "cr-2")]
    gone = {("c5.large", ZONES[0], "cr-2"): LATER}
    assert into(request(claim("a", ALL), types=priced(*rows), out_of_stock=gone)) == [("m5.large", ZONES[0], "cr-1")]


def test_071_a_claim_that_allows_no_reservation_sees_none() -> None:
    types = catalogue(*GENERIC, reservations=(held("cr-1"), held("cr-2", "c5.large", **BLOCK)))
    assert request(claim("a", BOTH), types=types) == request(claim("a", BOTH))


def test_072_of_reservations_of_one_type_and_zone_that_with_most_left() -> None:
    found = reserved(held("cr-1", left=2), held("cr-2", left=3), held("cr-3", zone=ZONES[1]))
    assert into(found) == [("m5.large", ZONES[0], "cr-2"), ("m5.large", ZONES[1], "cr-3")]


def test_073_when_none_is_to_be_had_the_types_are_those_that_would_be_bought() -> None:
    types = catalogue(*GENERIC, reservations=(held("cr-1", left=0),))
    assert request(claim("a", ALL), types=types) == request(claim("a", ALL))


# --- all types together -----------------------------------------------------------------------------------------
EXOTIC = ("g5.xlarge", "inf2.xlarge", "m5.metal")


def test_074_bare_metal_and_accelerators_only_where_nothing_else_will_do() -> None:
    types = catalogue(*EXOTIC, "m5.large")
    assert names(request(claim(), types=types)) == ["m5.large"]
    assert set(names(request(claim(), types=catalogue(*EXOTIC)))) == set(EXOTIC)
    least = claim("a", (TYPE, "Exists", []), min_values={TYPE: 2})
    assert set(names(request(least, types=types))) == {*EXOTIC, "m5.large"}


def spot_at(**prices: int) -> Catalogue:
    """c5.large and m5.large with spot at these prices; on demand they cost 85,000 and 96,000."""
    types = catalogue("c5.large", "m5.large")
    return repriced(types, lambda o: prices[o.instance_type[:2]] if o.capacity_type == "spot" else o.price)


def test_075_spot_above_the_cheapest_on_demand_price_is_left_out() -> None:
    found = request(claim("a", BOTH), types=spot_at(c5=85_000, m5=85_001))
    assert (found.capacity_type, names(found)) == ("spot", ["c5.large"])
    dear = request(claim("a", BOTH), types=spot_at(c5=90_000, m5=90_000))
    assert (dear.capacity_type, names(dear)) == ("on-demand", ["c5.large", "m5.large"])


def test_076_but_not_where_there_is_nothing_to_choose_or_min_values_ask_for_it() -> None:
    types = spot_at(c5=60_000, m5=200_000)
    both = ["c5.large", "m5.large"]
    assert names(request(claim("a", BOTH), types=types)) == ["c5.large"]
    assert names(request(claim("a", (CAPACITY_TYPE, "In", ["spot"])), types=types)) == both
    assert names(request(claim("a", BOTH), types=types, out_of_stock=sold_out(both))) == both
    assert names(request(claim("a", BOTH, (TYPE, "Exists", []), min_values={TYPE: 1}), types=types)) == both


def test_077_no_more_than_the_sixty_cheapest_types_are_named() -> None:
    types = catalogue(*all_names())
    found = request(claim("a", (labels.ARCH, "In", ["amd64"])), types=types)
    bought = {
        t.name: min(o.price for o in t.offerings if o.available and o.capacity_type == "on-demand")
        for t in types
        if "metal" not in t.name
        and t.requirements[labels.ARCH].values == {"amd64"}
        and any(o.available and o.capacity_type == "on-demand" for o in t.offerings)
    }
    assert sorted(names(found)) == sorted(sorted(bought, key=lambda name: (bought[name], name))[:60])


def test_078_a_pod_that_names_bare_metal_gets_it() -> None:
    assert asked(pod(select={TYPE: "m5.metal"})).types == ["m5.metal"]
    assert "m5.metal" not in asked(pod()).types


def test_104_what_is_not_said_means_on_demand_and_spot_comes_first_where_both_may_be() -> None:
    assert request(claim()).capacity_type == "on-demand"
    assert asked(pod(), rows=[BOUGHT]).call.capacity_type == "on-demand"
    assert request(claim("a", BOTH)).capacity_type == "spot"
    nameless = tuple(
        changed(t, offerings=tuple(changed(o, available=o.capacity_type != "spot") for o in t.offerings))
        for t in catalogue("m5.large")
    )
    assert problem(claim("a", (CAPACITY_TYPE, "In", ["spot"])), types=nameless).kind == fleet.CAPACITY
