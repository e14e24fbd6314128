"""Offerings: what is listed, what is available, and at what price."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kerf.ec2 import images
from kerf.ec2.instance_types.catalogue import build
from kerf.model.aws.cloud import CapacityReservation, Image, Subnet
from kerf.model.aws.instance_type import InstanceType, Offering, Reservation, suiting
from kerf.model.settings import FeatureGates, Settings
from kerf_api import labels
from kerf_api.requirements import Requirements, requirement
from tests.unit.ec2 import ec2_facts
from tests.unit.ec2.ec2_facts import SETTINGS, ZONES, all_names, catalogue, facts, info, node_class, one, region


def available(found: InstanceType) -> set[tuple[str, str]]:
    return {(o.zone, o.capacity_type) for o in found.offerings if o.available}


def test_one_offering_for_each_zone_and_capacity_type_with_its_price() -> None:
    found = one("m5.large")
    keys = [(o.zone, o.capacity_type) for o in found.offerings]
    assert keys == [(zone, kind) for zone in ZONES for kind in ("on-demand", "spot")]
    assert {o.price for o in found.offerings if o.capacity_type == "on-demand"} == {96000}
    assert [o.price for o in found.offerings if o.capacity_type == "spot"] == [36480, 37440, 38400]
    assert [o.zone_id for o in found.offerings][::2] == ["usw2-az1", "usw2-az2", "usw2-az3"]
    assert all(o.available for o in found.offerings)


def test_sorted_by_name_and_the_same_every_time() -> None:
    found = catalogue("t3.large", "m5.large", "c5.large")
    assert [t.name for t in found] == ["c5.large", "m5.large", "t3.large"]
    assert found == catalogue("c5.large", "t3.large", "m5.large")


def test_a_zone_without_a_subnet_is_listed_and_unavailable() -> None:
    found = catalogue("m5.large", subnets=(Subnet("subnet-a", "us-west-2a", "usw2-az1", 5),))[0]
    assert len(found.offerings) == 6
    assert available(found) == {("us-west-2a", "on-demand"), ("us-west-2a", "spot")}


def test_any_subnet_of_a_zone_may_tell_its_id() -> None:
    rows = (Subnet("subnet-1", ZONES[0]), Subnet("subnet-2", ZONES[0], "usw2-az1"), Subnet("subnet-3", ZONES[0]))
    found = catalogue("m5.large", subnets=rows)[0]
    assert {o.zone_id for o in found.offerings if o.zone == ZONES[0]} == {"usw2-az1"}


def test_a_zone_that_does_not_offer_the_type_is_unavailable() -> None:
    sold = replace(region("m5.large"), zones_by_type={"m5.large": frozenset({"us-west-2b"})})
    found = build(node_class(), facts(), sold, SETTINGS)[0]
    assert available(found) == {("us-west-2b", "on-demand"), ("us-west-2b", "spot")}


def test_an_unknown_price_makes_an_offering_unavailable() -> None:
    priced = replace(region("m5.large"), spot={("m5.large", "us-west-2b"): 1}, on_demand={})
    found = build(node_class(), facts(), priced, SETTINGS)[0]
    assert available(found) == {("us-west-2b", "spot")}


def test_what_only_lacks_a_price_is_told_from_what_cannot_be_had() -> None:
    """A NodeOverlay can tell a price; a subnet, or a zone that sells the type, it cannot."""
    rows = (Subnet("subnet-a", "us-west-2a", "usw2-az1", 5), Subnet("subnet-b", "us-west-2b", "usw2-az2", 5))
    sold = {"m5.large": frozenset({"us-west-2a", "us-west-2c"})}
    unknown = replace(region("m5.large"), zones_by_type=sold, spot={}, on_demand={})
    found = build(node_class(), facts(subnets=rows), unknown, SETTINGS)[0]
    assert {(o.zone, o.capacity_type) for o in found.offerings if o.unpriced} == {
        ("us-west-2a", "on-demand"),
        ("us-west-2a", "spot"),
    }
    assert not any(o.unpriced for o in one("m5.large").offerings)


@pytest.mark.parametrize("name", ["g5.xlarge", "inf2.xlarge", "m5.large", "m7g.large"])
def test_a_type_that_no_image_fits_stays_listed(name: str) -> None:
    standard_arm = tuple(i for i in ec2_facts.images() if i.architecture == "arm64" and i.variant == "standard")
    found = catalogue(name, images=standard_arm)[0]
    assert found.capacity["cpu"] == info(name).vcpus * 1000
    assert bool(available(found)) == (name == "m7g.large")


@pytest.mark.parametrize(
    ("name", "image"),
    [("m5.large", "ami-1"), ("g5.xlarge", "ami-2"), ("inf2.xlarge", "ami-3"), ("m7g.large", "ami-4")],
)
def test_a_type_takes_the_image_of_its_kind(name: str, image: str) -> None:
    table = images.table(images.listed(ec2_facts.images()))
    assert images.pick(one(name).requirements, table) == image


def test_the_newest_living_image_of_each_kind_is_listed_newest_first() -> None:
    rows = (
        Image("ami-old", "a", "amd64", "2026-01-01", variant="standard"),
        Image("ami-new", "b", "amd64", "2026-03-01", variant="standard", deprecated=True),
        Image("ami-b", "b", "amd64", "2026-02-01", variant="standard"),
        Image("ami-a", "a", "amd64", "2026-02-01", variant="standard"),
        Image("ami-arm", "arm", "arm64", "2026-04-01", variant="standard"),
        Image("ami-mac", "mac", "arm64_mac", "2026-05-01", variant="standard"),
    )
    assert [image.id for image in images.listed(rows)] == ["ami-arm", "ami-b"]
    assert images.listed(rows) == images.listed(reversed(rows))
    dead = tuple(replace(row, deprecated=True) for row in rows)
    assert [(image.id, image.deprecated) for image in images.listed(dead)] == [("ami-arm", True), ("ami-new", True)]


@pytest.mark.parametrize(
    ("family", "name", "spec", "usable"),
    [
        ("AL2023", "a1.large", {}, False),
        ("Bottlerocket", "a1.large", {}, True),
        ("AL2023", "m5.large", {"connectionTracking": {"udpTimeout": 45}}, True),
        ("AL2023", "m4.large", {"connectionTracking": {"udpTimeout": 45}}, False),
        ("AL2023", "m5.metal", {"connectionTracking": {"udpTimeout": 45}}, False),
        ("AL2023", "m5.large", {"cpuOptions": {"nestedVirtualization": "enabled"}}, False),
        ("AL2023", "m5.large", {"cpuOptions": {"nestedVirtualization": "disabled"}}, True),
    ],
)
def test_what_the_class_asks_of_the_machine(family: str, name: str, spec: dict[str, Any], usable: bool) -> None:
    found = one(name, node_class(family, **spec))
    assert bool(available(found)) == usable


def test_a_type_without_a_nodes_architecture_is_left_out() -> None:
    odd = replace(region("m5.large"), types={"m5.large": replace(info("m5.large"), architectures=("i386",))})
    assert build(node_class(), facts(), odd, SETTINGS) == ()


def test_ec2s_and_kubernetes_words_for_architectures_mean_the_same() -> None:
    raw, own = region("m5.large"), info("m5.large")
    named = replace(raw, types={"m5.large": replace(own, architectures=("amd64",))})
    assert build(node_class(), facts(), named, SETTINGS) == build(node_class(), facts(), raw, SETTINGS)


def test_the_whole_region() -> None:
    names = all_names()
    found = catalogue(*names)
    assert [t.name for t in found] == names
    assert len(found) > 1200
    assert sum(bool(available(t)) for t in found) > 1200


# --- capacity reservations ----------------------------------------------------------------------------------------
def reserved(*rows: CapacityReservation, settings: Settings = SETTINGS, **changes: Any) -> InstanceType:
    found = catalogue("m5.large", "t3.large", settings=settings, reservations=rows, **changes)
    assert found[1] == one("t3.large")
    return found[0]


def test_a_reservation_is_one_more_offering_as_good_as_free() -> None:
    found = reserved(CapacityReservation("cr-1", "m5.large", ZONES[0], 2, type="capacity-block", interruptible=True))
    *bought, held = found.offerings
    assert bought == list(one("m5.large").offerings)
    assert held == Offering(
        "m5.large",
        ZONES[0],
        "reserved",
        0,
        zone_id="usw2-az1",
        reservation=Reservation("cr-1", 2, "capacity-block", True),
        on_demand=96_000,
    )
    assert {key: min(row.values) for key, row in held.requirements().items()} == {
        labels.ZONE: ZONES[0],
        labels.ZONE_ID: "usw2-az1",
        labels.CAPACITY_TYPE: "reserved",
        "karpenter.k8s.aws/capacity-reservation-id": "cr-1",
        "karpenter.k8s.aws/capacity-reservation-type": "capacity-block",
        "karpenter.k8s.aws/capacity-reservation-interruptible": "true",
    }


def test_the_type_leaves_it_to_its_offerings_what_reservation_a_machine_is_in() -> None:
    found = reserved(CapacityReservation("cr-1", "m5.large", ZONES[0], 2))
    assert found.requirements[labels.CAPACITY_TYPE].values == {"on-demand", "spot", "reserved"}
    wanted = [Requirements([requirement(labels.RESERVATION_ID, *row)]) for row in (("In", ["cr-1"]), ("NotIn", ["x"]))]
    assert [found.requirements.conflict(row) for row in wanted] == [None, None]
    assert [sum(o.suits(row) for o in found.offerings) for row in wanted] == [1, 7]
    assert [sum(map(suiting(row), found.offerings)) for row in wanted] == [1, 7]
    assert one("m5.large").requirements.conflict(wanted[0]) == labels.RESERVATION_ID


@pytest.mark.parametrize(
    ("row", "changes"),
    [
        (CapacityReservation("cr-1", "m5.large", ZONES[0], 0), {}),
        (CapacityReservation("cr-1", "m5.large", ZONES[0], 2, expiring=True), {}),
        (CapacityReservation("cr-1", "m5.large", "us-west-2x", 2), {}),
        (CapacityReservation("cr-1", "m5.large", ZONES[0], 2), {"subnets": (Subnet("subnet-b", ZONES[1]),)}),
        (CapacityReservation("cr-1", "m5.large", ZONES[0], 2), {"images": ()}),
    ],
)
def test_a_reservation_that_cannot_be_used_is_listed_and_unavailable(
    row: CapacityReservation, changes: dict[str, Any]
) -> None:
    held = catalogue("m5.large", reservations=(row,), **changes)[0].offerings[-1]
    assert (held.reservation, held.available) == (Reservation("cr-1", row.left), False)


def test_without_the_gate_reservations_are_no_offerings() -> None:
    shut = replace(SETTINGS, gates=FeatureGates(reserved_capacity=False))
    assert reserved(CapacityReservation("cr-1", "m5.large", ZONES[0], 2), settings=shut) == one("m5.large")


def test_types_do_not_depend_on_the_number_of_free_addresses() -> None:
    """`Built` takes the types of such facts to be the same."""
    few, many = (tuple(Subnet(f"subnet-{z}", z, f"id-{z}", free_addresses=n) for z in ZONES) for n in (1, 4000))
    assert catalogue("m5.large", subnets=few) == catalogue("m5.large", subnets=many[::-1])
