"""Which types, zones, capacity types and prices a launch may choose from."""

from __future__ import annotations

from dataclasses import replace as copy
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kerf.ec2.instance_types.catalogue import build
from kerf.ec2.launch import fleet
from kerf.ec2.launch.candidates import exotic
from kerf.ec2.launch.fleet import equal_launch
from kerf.model.aws.cloud import Subnet
from kerf.model.aws.instance_type import Catalogue
from kerf_api import labels
from kerf_api.requirements import IN, Requirements, requirement
from kerf_api.resources import Resources
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.ec2 import ec2_facts
from tests.unit.ec2.ec2_facts import NOW, SETTINGS, ZONES, all_names, catalogue, claim, facts, node_class, ready
from tests.unit.ec2.fleet_requests import BOTH, CAPACITY_TYPE, GENERIC, TYPE, ZONE, names, problem, request, typed


def repriced(name: str, *rows: tuple[str, str, list[str]]) -> NodeClaim:
    """A claim that was planned with the prices of NodeOverlays."""
    made = claim(name, *rows)
    notes = {**made.metadata.annotations, labels.PRICE_OVERLAY: "true"}
    return replace(made, metadata=replace(made.metadata, annotations=notes))


# --- filters ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (claim("a", (labels.ARCH, "In", ["arm64"])), ["m7g.large"]),
        (claim("a", requests={"memory": "14Gi"}), ["r5.large"]),
        (claim("a", requests={"cpu": "3"}), ["m5.xlarge"]),
        (claim("a", ("karpenter.k8s.aws/instance-cpu", "Gt", ["2"])), ["m5.xlarge"]),
        (claim("a", ("example.com/mine", "In", ["x"]), typed("m5.large")), ["m5.large"]),
    ],
)
def test_types_must_meet_requirements_and_hold_the_requests(one: NodeClaim, expected: list[str]) -> None:
    assert names(request(one)) == expected


@pytest.mark.parametrize(
    "one",
    [
        claim("a", typed("x1.huge")),
        claim("a", requests={"cpu": "64"}),
        claim("a", requests={"nvidia.com/gpu": "1"}),
        claim("a", (ZONE, "In", ["us-west-2z"])),
        claim("a", (labels.OS, "In", ["windows"])),
        claim("a", ("karpenter.k8s.aws/instance-gpu-count", "Exists", [])),
    ],
)
def test_nothing_that_fits_is_a_lack_of_capacity(one: NodeClaim) -> None:
    found = problem(one)
    assert (found.kind, found.reason) == (fleet.CAPACITY, "InsufficientCapacity")
    assert found.message == "all requested instance types were unavailable during launch"


def test_zone_and_zone_id_restrict_the_offerings() -> None:
    assert {o.zone for o in request(claim("a", (ZONE, "In", [ZONES[1]]))).overrides} == {ZONES[1]}
    assert {o.zone for o in request(claim("a", (labels.ZONE_ID, "In", ["usw2-az3"]))).overrides} == {ZONES[2]}


def test_what_is_out_of_stock_is_not_asked_for() -> None:
    later, earlier = NOW + timedelta(minutes=1), NOW - timedelta(minutes=1)
    stock = {
        ("m5.large", ZONES[0], "on-demand"): later,
        ("m5.large", ZONES[1], "on-demand"): earlier,
        ("m5.large", ZONES[2], "spot"): later,
    }
    found = request(claim("a", typed("m5.large")), out_of_stock=stock)
    assert [o.zone for o in found.overrides] == [ZONES[1], ZONES[2]]
    gone = {("m5.large", zone, "on-demand"): later for zone in ZONES}
    assert problem(claim("a", typed("m5.large")), out_of_stock=gone).kind == fleet.CAPACITY


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((), "on-demand"),
        ((BOTH,), "spot"),
        (((CAPACITY_TYPE, "In", ["on-demand"]),), "on-demand"),
        (((CAPACITY_TYPE, "In", ["reserved", "on-demand"]),), "on-demand"),
        (((CAPACITY_TYPE, "Exists", []),), "spot"),
    ],
)
def test_the_capacity_type(rows: tuple[Any, ...], expected: str) -> None:
    found = request(claim("a", *rows))
    assert found.capacity_type == expected
    assert {t.capacity_type for t in found.templates} == {expected}


def test_a_claim_that_says_nothing_of_the_capacity_type_gets_on_demand_or_nothing() -> None:
    gone = {(name, zone, "on-demand"): NOW + timedelta(minutes=1) for name in GENERIC for zone in ZONES}
    assert problem(claim("a"), out_of_stock=gone).kind == fleet.CAPACITY
    assert request(claim("a", BOTH), out_of_stock=gone).capacity_type == "spot"


def test_on_demand_when_spot_is_out_of_stock() -> None:
    later = NOW + timedelta(minutes=1)
    stock = {(name, zone, "spot"): later for name in GENERIC for zone in ZONES}
    assert request(claim("a", BOTH), out_of_stock=stock).capacity_type == "on-demand"


EXOTIC = ("g5.xlarge", "inf2.xlarge", "m5.metal", "m5.large")


def test_exotic_types_only_where_nothing_else_will_do() -> None:
    types = catalogue(*EXOTIC)
    assert names(request(claim(), types=types)) == ["m5.large"]
    assert names(request(claim("a", typed("m5.metal")), types=types)) == ["m5.metal"]
    assert names(request(claim("a", requests={"nvidia.com/gpu": "1"}), types=types)) == ["g5.xlarge"]
    least = claim("a", (TYPE, "In", list(EXOTIC)), min_values={TYPE: 2})
    assert set(names(request(least, types=types))) == set(EXOTIC)


#: Fractions of GPUs, a whole GPU, and Neuron devices.
ACCELERATED = ("g6f.large", "gr6f.4xlarge", "p5.4xlarge", "inf1.xlarge", "trn1.2xlarge")


@pytest.mark.parametrize("name", ACCELERATED)
def test_plain_pods_go_to_types_without_accelerators_unless_there_are_none(name: str) -> None:
    beside = catalogue(name, "m5.24xlarge")
    assert names(request(claim(), types=beside)) == ["m5.24xlarge"]
    assert names(request(claim(), types=catalogue(name))) == [name]


def test_an_accelerator_that_no_resource_stands_for_counts_by_its_label() -> None:
    (plain,) = catalogue("m5.large")
    count = f"{labels.AWS_GROUP}/instance-accelerator-count"
    rows = {**plain.requirements, count: requirement(count, IN, ("8",))}
    assert not exotic(plain)
    assert exotic(copy(plain, requirements=Requirements(rows.values())))


def test_a_pool_of_accelerator_types_alone_launches_the_cheapest_for_plain_pods() -> None:
    found = request(claim(), types=catalogue(*ACCELERATED))
    assert set(names(found)) == set(ACCELERATED)
    wanted = claim("a", requests={"nvidia.com/gpu": "1"})
    assert set(names(request(wanted, types=catalogue(*ACCELERATED)))) == {"g6f.large", "gr6f.4xlarge", "p5.4xlarge"}


def test_an_offering_with_a_capacity_of_its_own_is_named_for_what_only_it_holds() -> None:
    extra = Resources({"example.com/extra": 2})
    types = tuple(
        copy(t, offerings=tuple(copy(o, capacity=extra) if o.zone == ZONES[1] else o for o in t.offerings))
        for t in catalogue("m5.large", "c5.large")
    )
    found = request(claim("a", requests={"example.com/extra": "1"}), types=types)
    assert {(o.instance_type, o.zone) for o in found.overrides} == {("c5.large", ZONES[1]), ("m5.large", ZONES[1])}
    assert {o.zone for o in request(claim(), types=types).overrides} == set(ZONES)
    assert problem(claim("a", requests={"example.com/extra": "3"}), types=types).kind == fleet.CAPACITY


def test_a_claim_with_the_prices_of_overlays_is_launched_by_their_order_and_with_its_like() -> None:
    assert request(repriced("a")).prioritized
    assert not request(claim()).prioritized
    assert equal_launch(repriced("a")) == equal_launch(repriced("b")) != equal_launch(claim("c"))


def dear_spot(*dear: str) -> Catalogue:
    """Spot of these types at twice the on-demand price of an m5.large."""
    rows = catalogue("m5.large", "c5.large")
    return tuple(
        copy(
            t,
            offerings=tuple(
                copy(o, price=192_000) if t.name in dear and o.capacity_type == "spot" else o for o in t.offerings
            ),
        )
        for t in rows
    )


def test_spot_dearer_than_the_cheapest_on_demand_is_left_out() -> None:
    assert names(request(claim("a", BOTH), types=dear_spot("m5.large"))) == ["c5.large"]
    assert request(claim("a", BOTH), types=dear_spot("m5.large", "c5.large")).capacity_type == "on-demand"
    level = tuple(
        copy(t, offerings=tuple(copy(o, price=85_000) if o.capacity_type == "spot" else o for o in t.offerings))
        for t in catalogue("m5.large", "c5.large")
    )
    assert request(claim("a", BOTH), types=level).capacity_type == "spot", "an equal price is not dearer"
    only_spot = claim("a", (CAPACITY_TYPE, "In", ["spot"]))
    assert names(request(only_spot, types=dear_spot("m5.large"))) == ["c5.large", "m5.large"]
    least = claim("a", BOTH, typed("m5.large", "c5.large"), min_values={TYPE: 2})
    assert names(request(least, types=dear_spot("m5.large"))) == ["c5.large", "m5.large"]


def test_the_cheapest_sixty_types() -> None:
    types = catalogue(*all_names())
    found = request(claim("a", (labels.ARCH, "In", ["amd64"])), types=types)
    assert len(names(found)) == 60
    cheapest = sorted(
        (min(o.price for o in t.offerings if o.available and o.capacity_type == "on-demand"), t.name)
        for t in types
        if "metal" not in t.name
        and t.requirements[labels.ARCH].values == {"amd64"}
        and any(o.available and o.capacity_type == "on-demand" for o in t.offerings)
        and t.allocatable["memory"] >= 0
    )
    assert sorted(names(found)) == sorted(name for _, name in cheapest[:60])


def test_never_more_overrides_than_ec2_takes() -> None:
    zones = tuple(f"us-west-2{letter}" for letter in "abcdef")
    rows = tuple(Subnet(f"subnet-{zone}", zone) for zone in zones)
    infos = ec2_facts.region(*all_names()[:200], zones=zones)
    types = build(node_class(), facts(subnets=rows), infos, SETTINGS)
    found = request(types=types, node_class=ready(node_class(), facts(subnets=rows)))
    assert len(found.overrides) == 300
    assert [o.price for o in found.overrides] == sorted(o.price for o in found.overrides)


SHAPES = (
    *(
        "t3.nano",
        "t3.small",
        "t3.medium",
        "t3.large",
        "m5.large",
        "m5.xlarge",
        "m5.4xlarge",
        "m5.24xlarge",
        "m7a.medium",
    ),
    *("t4g.nano", "t4g.small", "t4g.medium", "t4g.large", "m7g.large", "m7g.xlarge", "m7g.4xlarge", "m7g.16xlarge"),
)


def test_a_request_fits_into_an_annotation() -> None:
    of = ready(node_class(userData="#!/bin/bash\n" + "x" * 16000))
    one = claim("a", typed(*SHAPES))
    found = request(one, types=catalogue(*SHAPES), node_class=of)
    assert len(msgspec.json.encode(found)) < 256 * 1024
    assert {o.template for o in found.overrides} == {t.name for t in found.templates}
    roomy = request(one, types=catalogue(*SHAPES))
    assert len(roomy.templates) > len(found.templates) > 5
    assert found.overrides[0].price == roomy.overrides[0].price, "the cheapest are kept"


# --- minValues --------------------------------------------------------------------------------------------------
FAMILY = "karpenter.k8s.aws/instance-family"


def test_min_values() -> None:
    enough = claim("a", (FAMILY, "Exists", []), typed(*GENERIC), min_values={FAMILY: 3, TYPE: 4})
    assert len(names(request(enough))) == 6
    few = copy(SETTINGS, max_instance_types=2)
    found = problem(enough, settings=few)
    assert found.kind == fleet.CAPACITY
    assert "truncating instance types" in found.message
    assert len(names(request(enough, settings=copy(few, min_values_policy="BestEffort")))) == 2
