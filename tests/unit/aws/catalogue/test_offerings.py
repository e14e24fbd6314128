"""Offerings: which of them can be had, and when what is known of types is worked out anew (103 to 118)."""

from __future__ import annotations

import itertools
from dataclasses import replace as changed
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.aws.observe.reservations import of_rows
from kerf.ec2.errors import OUT_OF_STOCK
from kerf.ec2.instance_types.catalogue import build
from kerf.model.aws.cloud import ClassFacts, FleetError, FleetResult, Region
from kerf.model.aws.instance_type import Catalogue, InstanceType
from kerf.model.overlays import overlaid
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.runtime.state.catalogues import Catalogues
from kerf.runtime.state.fleet import Fleet
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from tests.unit.aws.test_aws_reservations import row
from tests.unit.ec2.ec2_facts import (
    NOW,
    SETTINGS,
    ZONES,
    catalogue,
    claim,
    facts,
    images,
    info,
    node_class,
    one,
    region,
)
from tests.unit.ec2.fleet_requests import request, typed
from tests.unit.model.test_overlays import overlay
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

DISK = [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "40Gi"}}]


def usable(found: InstanceType) -> bool:
    return any(offering.available for offering in found.offerings)


def test_103_a_type_of_which_nothing_is_to_be_had_is_listed_all_the_same() -> None:
    for types in (catalogue("m5.large", images=()), catalogue("m5.large", subnets=())):
        assert [kind.name for kind in types] == ["m5.large"]
        (found,) = types
        assert found.capacity == one("m5.large").capacity
        assert len(found.offerings) == 2 * len(ZONES)
        assert not usable(found)


def test_105_there_is_one_offering_for_each_zone_and_capacity_type() -> None:
    for found in catalogue("m5.large", "c5.large"):
        keys = [(o.zone, o.capacity_type) for o in found.offerings]
        assert sorted(keys) == sorted({(zone, kind) for zone in ZONES for kind in ("on-demand", "spot")})


# --- what is kept, and what is worked out anew ------------------------------------------------------------------
class Kept:
    """Catalogues of one class, and how often they were worked out."""

    def __init__(self) -> None:
        self.built = 0
        self.of = Catalogues(SETTINGS, self._build)
        self.of.region = region("m5.large")

    def _build(self, node_class: EC2NodeClass, found: ClassFacts, sold: Region, settings: Settings) -> Catalogue:
        self.built += 1
        return build(node_class, found, sold, settings)

    def look(self, found: ClassFacts, of: EC2NodeClass | None = None) -> Catalogue:
        self.of.resolved("default", "class-uid", found, NOW)
        return self.of.catalogues([of or node_class()])["default"]


def edited(**spec: Any) -> EC2NodeClass:
    """The class with another spec, at another generation."""
    made = node_class(**spec)
    return replace(made, metadata=replace(made.metadata, generation=2))


def test_106_while_nothing_changes_the_same_types_are_handed_out() -> None:
    kept = Kept()
    first = kept.look(facts())
    assert kept.look(facts()) is first
    assert kept.built == 1


@pytest.mark.parametrize(
    ("spec", "changes"),
    [
        ({"kubelet": {"maxPods": 10}}, {}),
        ({"blockDeviceMappings": DISK}, {}),
        ({"instanceStorePolicy": "RAID0"}, {}),
        ({}, {"images": images("20261202")[3:]}),
        ({}, {"subnets": facts().subnets[:1]}),
    ],
)
def test_106_when_what_they_follow_from_changes_they_are_others(spec: dict[str, Any], changes: dict[str, Any]) -> None:
    kept = Kept()
    kept.of.region = region("m5d.large")
    first = kept.look(facts())
    assert kept.look(facts(**changes), edited(**spec) if spec else None) != first


def test_106_so_they_are_when_the_region_is_read_again() -> None:
    kept = Kept()
    first = kept.look(facts())
    kept.of.region = changed(region("m5.large"), on_demand={"m5.large": 1})
    assert kept.look(facts()) != first


def closed(fleet: Fleet, *pools: tuple[str, str], at: datetime = NOW) -> None:
    """EC2 says that these (type, zone)s are out of stock."""
    asked = request(claim("a", typed("m5.large", "c5.large")))
    errors = tuple(FleetError("InsufficientInstanceCapacity", "no", *pool, capacity=True) for pool in pools)
    fleet.launched(asked, FleetResult(errors=errors), at)


def test_107_what_is_out_of_stock_changes_no_type() -> None:
    """It is known beside the types, by offering: none is worked out anew, and no other offering is touched."""
    kept, fleet = Kept(), Fleet()
    first = kept.look(facts())
    closed(fleet, ("m5.large", ZONES[0]))
    assert set(fleet.out_of_stock(NOW)) == {("m5.large", ZONES[0], "on-demand")}
    assert kept.look(facts()) is first
    assert kept.built == 1


def test_226_what_is_out_of_stock_is_another_value_each_time_something_is_marked_or_is_over() -> None:
    fleet, seen = Fleet(), list[dict[Any, Any]]()
    for step in range(3):
        closed(fleet, ("m5.large", ZONES[step]), at=NOW + timedelta(seconds=step))
        seen.append(dict(fleet.out_of_stock(NOW + timedelta(seconds=step))))
    closed(fleet, ("m5.large", ZONES[0]), at=NOW + timedelta(seconds=9))
    seen.append(dict(fleet.out_of_stock(NOW + timedelta(seconds=9))))
    seen.append(dict(fleet.out_of_stock(NOW + OUT_OF_STOCK + timedelta(seconds=1))))
    seen.append(dict(fleet.out_of_stock(NOW + OUT_OF_STOCK + timedelta(seconds=9))))
    assert [len(each) for each in seen] == [1, 2, 3, 3, 2, 0]
    assert all(before != after for before, after in itertools.pairwise(seen))


# --- what a class asks of its machines --------------------------------------------------------------------------
END = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(("minutes", "available"), [(41, True), (40, False), (1, False)])
def test_109_into_a_capacity_block_that_is_about_to_end_nothing_is_launched(minutes: int, available: bool) -> None:
    block = row(ReservationType="capacity-block", EndDate=END, AvailabilityZone=ZONES[0])
    rows = of_rows([block], END - timedelta(minutes=minutes))
    (*_, held) = catalogue("m5.large", reservations=rows)[0].offerings
    assert (held.capacity_type, held.available) == (labels.RESERVED, available)


@pytest.mark.parametrize(
    ("family", "name", "available"),
    [
        ("AL2023", "a1.large", False),
        ("Bottlerocket", "a1.large", True),
        ("Custom", "a1.large", True),
        ("AL2023", "m7g.large", True),
    ],
)
def test_111_a1_machines_cannot_run_al2023(family: str, name: str, available: bool) -> None:
    assert usable(one(name, node_class(family))) is available


def unpriced(**gates: Any) -> Snapshot:
    """A world in which AWS tells no price of m5.large, and an overlay does."""
    sold = changed(region("m5.large"), on_demand={}, spot={})
    types = build(node_class(), facts(), sold, SETTINGS)
    told = overlay("priced", c.row(labels.INSTANCE_TYPE, "In", "m5.large"), price="0.5")
    return w.world(w.pool(), told, catalogue=types, gates=changed(SETTINGS.gates, **gates))


def test_113_a_price_that_only_an_overlay_knows_makes_an_offering_one_that_can_be_bought() -> None:
    world = unpriced(node_overlay=True)
    found = overlaid(world.node_overlays.values(), world.node_pools.values(), world.catalogues)
    (priced,) = found.catalogues["default", "default"]
    assert {(o.price, o.available) for o in priced.offerings} == {(500_000, True)}
    (plain,) = world.catalogues["default"]
    assert {(o.price, o.available) for o in plain.offerings} == {(0, False)}


@pytest.mark.parametrize(("name", "value"), [("m5.xlarge", "true"), ("t3.large", "false")])
def test_114_whether_a_type_has_enclaves_is_a_label(name: str, value: str) -> None:
    assert info(name).nitro_enclaves is (value == "true")
    assert one(name).requirements["karpenter.k8s.aws/nitro-sandbox"].values == {value}


NESTED = {"cpuOptions": {"nestedVirtualization": "enabled"}}
TRACKED: dict[str, Any] = {"connectionTracking": {"udpTimeout": 45}}


def nests(name: str, spec: dict[str, Any]) -> bool:
    """Whether a type can be had whose processor can nest virtual machines, or (named `plain`) cannot."""
    features = ("nested-virtualization",) if name == "nesting" else ()
    sold = changed(region("m5.large"), types={"m5.large": changed(info("m5.large"), processor_features=features)})
    return usable(build(node_class(**spec), facts(), sold, SETTINGS)[0])


def test_118_virtual_machines_in_virtual_machines_need_a_processor_that_can() -> None:
    assert (nests("nesting", NESTED), nests("plain", NESTED)) == (True, False)
    assert nests("plain", {})
    assert nests("plain", {"cpuOptions": {"nestedVirtualization": "disabled"}})


@pytest.mark.parametrize(("name", "available"), [("m5.large", True), ("m4.large", False), ("m5.metal", False)])
def test_118_connections_are_tracked_on_nitro_only(name: str, available: bool) -> None:
    assert usable(one(name, node_class(**TRACKED))) is available
    assert usable(one(name))
