"""What is counted of launches, ends and offerings (39, 40, 60, 220)."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest

from kerf.model.aws.cloud import CapacityReservation, FleetError, FleetResult, Instance, Subnet
from kerf.model.changes.indexes import InstanceIndex
from kerf.model.plan import LaunchInstances, Reason, TerminateInstance
from kerf.model.snapshot import Snapshot
from kerf.ports import Unavailable
from kerf.sandbox.world import World
from kerf.telemetry.precedence import at_once
from kerf.telemetry.series.markets import Markets
from kerf.telemetry.series.metrics import Metrics
from kerf.telemetry.telemetry import Telemetry
from kerf_api import labels
from tests.unit.ec2.ec2_facts import NOW, SETTINGS, ZONES, catalogue, claim
from tests.unit.ec2.fleet_requests import request, typed
from tests.unit.scheduling import worlds as w

WHY = Reason("Test")
LAUNCHED, ENDED = (f"karpenter_cloudprovider_instance_{kind}_failures_total" for kind in ("launch", "termination"))


class Told:
    """The metrics, and what was told of them."""

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self.metrics = Metrics()
        self.markets = Markets(self.metrics)
        if snapshot is not None:
            self.markets.seen(snapshot)

    def launch(self, *errors: FleetError) -> None:
        action = LaunchInstances(reason=WHY, request=request(claim("a", typed("m5.large"))), claims=("a",))
        self.markets.done(action, FleetResult(errors=errors), None)

    def end(self, error: Exception | None) -> None:
        self.markets.done(TerminateInstance(reason=WHY, instance_id="i-1"), None, error)

    def count(self, name: str, **labels_: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels_) or 0.0

    def series(self, name: str) -> dict[tuple[str, str, str], float]:
        """By type, capacity type and zone."""
        found = {}
        for row in self.markets.text(at_once).decode().splitlines():
            if row.startswith(f"{name}{{"):
                told, _, value = row.partition("} ")
                parts = dict(part.split("=") for part in told.partition("{")[2].replace('"', "").split(","))
                found[parts["instance_type"], parts["capacity_type"], parts["zone"]] = float(value)
        return found


def test_039_each_error_of_a_launch_is_counted_where_it_happened_and_by_what_it_means() -> None:
    told = Told()
    told.launch(
        FleetError("InsufficientFreeAddressesInSubnet", "no address", "m5.large", ZONES[0]),
        FleetError("VcpuLimitExceeded", "no more", "m5.large", ZONES[1]),
    )
    for zone, zone_id, reason in (
        (ZONES[0], "usw2-az1", "InsufficientFreeAddressesInSubnet"),
        (ZONES[1], "usw2-az2", "VCPULimitExceeded"),
    ):
        assert told.count(LAUNCHED, zone=zone, zone_id=zone_id, capacity_type="on-demand", reason=reason) == 1


def test_040_an_unknown_error_in_an_unknown_zone_is_counted_as_such() -> None:
    told = Told()
    told.launch(FleetError("SomethingNew", "words", "m5.large", "us-west-2x"))
    assert told.count(LAUNCHED, zone="us-west-2x", zone_id="", capacity_type="on-demand", reason="LaunchFailed") == 1


@pytest.mark.parametrize(("error", "counted"), [(Unavailable("later"), 1), (None, 0)])
def test_060_an_instance_that_could_not_be_ended_is_counted_where_it_is(error: Any, counted: int) -> None:
    one = Instance("i-1", "m5.large", ZONES[1], "running", "spot", NOW, zone_id="usw2-az2")
    told = Told(w.world(instances=InstanceIndex.of({"i-1": one})))
    told.end(error)
    assert told.count(ENDED, zone=ZONES[1], zone_id="usw2-az2") == counted


@pytest.mark.parametrize(("outcome", "counted"), [("unavailable", 1), ("forbidden", 1), ("gone", 0), ("ok", 0)])
def test_060_one_that_was_gone_already_was_ended(outcome: str, counted: int) -> None:
    world = World()
    told = Telemetry.quiet(world.kube, world.clock)
    action = TerminateInstance(reason=WHY, instance_id="i-1")
    told.done(action, outcome, None, None if outcome == "ok" else Unavailable("x"), None)
    assert (told.metrics.registry.get_sample_value(ENDED, {"zone": "", "zone_id": ""}) or 0.0) == counted


# --- offerings --------------------------------------------------------------------------------------------------
AVAILABLE, PRICE = (
    f"karpenter_cloudprovider_instance_type_offering_{kind}" for kind in ("available", "price_estimate")
)
HERE = (Subnet("subnet-a", ZONES[0], "usw2-az1", 10),)


def offered(gate: bool = True, **more: Any) -> Told:
    """Two classes with a subnet each, in different zones; the second has a reservation."""
    held = (CapacityReservation("cr-1", "m5.large", ZONES[1], 1),) if gate else ()
    types = {
        "one": catalogue("m5.large", subnets=HERE),
        "two": catalogue("m5.large", subnets=(Subnet("subnet-b", ZONES[1], "usw2-az2", 10),), reservations=held),
    }
    gates = changed(SETTINGS.gates, reserved_capacity=gate)
    return Told(w.world(catalogues=types, gates=gates, **more))


def test_220_an_offering_is_to_be_had_when_it_is_for_any_class_and_has_its_price_in_any_case() -> None:
    told = offered()
    for kind in ("on-demand", "spot"):
        seen = {zone: told.series(AVAILABLE)["m5.large", kind, zone] for zone in ZONES}
        assert seen == {ZONES[0]: 1.0, ZONES[1]: 1.0, ZONES[2]: 0.0}
    prices = told.series(PRICE)
    assert prices["m5.large", "on-demand", ZONES[2]] == 0.096
    assert prices["m5.large", "spot", ZONES[2]] == 0.0384


def test_220_what_is_out_of_stock_is_not_to_be_had() -> None:
    told = offered(now=NOW, out_of_stock={("m5.large", ZONES[0], "spot"): NOW + timedelta(minutes=1)})
    assert told.series(AVAILABLE)["m5.large", "spot", ZONES[0]] == 0.0
    assert told.series(AVAILABLE)["m5.large", "on-demand", ZONES[0]] == 1.0


def test_220_reserved_capacity_has_series_with_its_gate_only() -> None:
    seen = offered().series(AVAILABLE)
    assert {zone: seen["m5.large", labels.RESERVED, zone] for zone in ZONES} == {
        ZONES[0]: 0.0,
        ZONES[1]: 1.0,
        ZONES[2]: 0.0,
    }
    assert not [key for key in offered(gate=False).series(AVAILABLE) if key[1] == labels.RESERVED]


def test_220_types_have_their_sizes() -> None:
    text = offered().markets.text(at_once).decode()
    assert 'karpenter_cloudprovider_instance_type_cpu_cores{instance_type="m5.large"} 2.0' in text
    memory = 7577 * 2**20
    assert f'karpenter_cloudprovider_instance_type_memory_bytes{{instance_type="m5.large"}} {float(memory)}' in text
