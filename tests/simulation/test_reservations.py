"""Capacity reservations from end to end: found, planned on, launched into, full, and over."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from kerf.model.aws.cloud import CapacityReservation
from kerf.model.settings import FeatureGates, Settings
from kerf.sandbox.aws.machines import Machine
from kerf.sandbox.world import World
from kerf_api import labels
from tests.simulation.stage import ALONE, STILL, Play
from tests.worlds import deployment, node_class, node_pool

TEAM = {"team": "red"}
OPEN = FeatureGates()
MINUTE = timedelta(minutes=1)


class Reserving(Play):
    """A class that selects a reservation of m5.large, a pool that may have anything, and pods of one node each."""

    def __init__(self, machines: int, gates: FeatureGates = OPEN, **pool: Any) -> None:
        world = World(seed=5, types=("m5.large", "c5.large", "r5.large"))
        selecting = node_class()
        selecting["spec"]["capacityReservationSelectorTerms"] = [{"tags": TEAM}]
        world.apply(selecting)
        world.apply(node_pool("general", pool))
        super().__init__(world, settings=Settings(cluster_name="sandbox", gates=gates))
        self.reserve(machines)
        self.live(seconds=20)

    def reserve(self, machines: int, id_: str = "cr-00000000000000001") -> None:
        zone = self.world.ec2.region.zones[0]
        self.world.ec2.reserve(CapacityReservation(id_, "m5.large", zone, machines, owner="123456789012"), TEAM)

    def serve(self, pods: int) -> list[Machine]:
        """So many pods, one on each node; the machines that run once all pods do."""
        self.world.apply(deployment("web", {**ALONE, "replicas": pods}))
        self.world.run(self.controller, 5 * MINUTE, stop_when=lambda: self.running() == pods)
        assert self.running() == pods
        return [m for m in self.world.ec2.instances.values() if m.state == "running"]

    def running(self) -> int:
        return sum(pod["status"].get("phase") == "Running" for pod in self.world.objects("Pod"))

    def held(self) -> Counter[str]:
        """How many nodes say that they are in which reservation ("": none)."""
        found = (node["metadata"]["labels"] for node in self.world.objects("Node"))
        return Counter(own.get(labels.RESERVATION_ID, "") for own in found)


def test_what_is_reserved_is_used_before_anything_is_bought() -> None:
    """Two machines are reserved, for three pods; and there is one more when a pod more comes."""
    stage = Reserving(2)
    (known,) = stage.world.objects("EC2NodeClass")
    assert [row["id"] for row in known["status"]["capacityReservations"]] == ["cr-00000000000000001"]
    machines = stage.serve(3)
    assert Counter(m.capacity_type == "reserved" for m in machines) == {True: 2, False: 1}
    assert stage.held() == {"cr-00000000000000001": 2, "": 1}
    nodes = [node["metadata"]["labels"] for node in stage.world.objects("Node")]
    kinds = {own.get(labels.RESERVATION_TYPE, ""): own[labels.CAPACITY_TYPE] for own in nodes}
    assert kinds["default"] == "reserved"
    stage.reserve(3)
    stage.live(seconds=90)
    stage.serve(4)
    assert stage.held() == {"cr-00000000000000001": 3, "": 1}


def test_a_reservation_that_others_have_filled_meanwhile_is_passed_over() -> None:
    """The launch fails, its claim is given up, and the pod has a machine that is bought, within a minute or two."""
    stage = Reserving(1)
    stage.reserve(0)
    (machine,) = stage.serve(1)
    assert machine.reservation is None
    assert stage.held() == {"": 1}


def test_more_pods_than_machines_where_nothing_else_is_allowed() -> None:
    """One runs, the other waits; no launch is tried for it in vain."""
    only = {"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["reserved"]}
    stage = Reserving(1, also=[only])
    stage.world.apply(deployment("web", {**ALONE, "replicas": 2}))
    stage.live(seconds=240)
    assert stage.running() == 1
    assert [m.capacity_type for m in stage.world.ec2.instances.values()] == ["reserved"]
    assert len([call for call in stage.world.ec2.calls if call.verb == "create_fleet"]) == 1


def test_without_the_gate_everything_is_bought() -> None:
    stage = Reserving(2, FeatureGates(reserved_capacity=False))
    (known,) = stage.world.objects("EC2NodeClass")
    assert "capacityReservations" not in known["status"]
    assert all(machine.reservation is None for machine in stage.serve(1))


def test_a_machine_whose_reservation_ends_runs_on_and_is_called_what_it_is() -> None:
    """On demand, from now on: it has not drifted, and keeps its pod."""
    stage = Reserving(2, disruption=STILL)
    stage.reserve(1, "cr-00000000000000002")
    stage.live(seconds=90)
    stage.serve(3)
    before = stage.held()
    assert before == {"cr-00000000000000001": 2, "cr-00000000000000002": 1}
    stage.world.ec2.cancel_reservation("cr-00000000000000002")
    stage.live(seconds=240)
    assert stage.held() == {"cr-00000000000000001": 2, "": 1}
    (bought,) = (c for c in stage.world.objects("NodeClaim") if labels.RESERVATION_ID not in c["metadata"]["labels"])
    assert bought["metadata"]["labels"][labels.CAPACITY_TYPE] == "on-demand"
    assert all(m.state == "running" for m in stage.world.ec2.instances.values())


def test_machines_leave_a_capacity_block_before_it_ends() -> None:
    """EC2 would end them; their pods have other nodes in time."""
    stage = Reserving(1)
    stage.serve(1)
    zone = stage.world.ec2.region.zones[0]
    block = CapacityReservation(
        "cr-00000000000000001", "m5.large", zone, 1, "123456789012", type="capacity-block", expiring=True
    )
    stage.world.ec2.reserve(block, TEAM)
    stage.live(seconds=300)
    assert stage.running() == 1
    assert stage.held() == {"": 1}


def test_what_was_bought_moves_into_a_reservation_that_comes_later() -> None:
    """It costs nothing more there; and from there it does not move back to spot."""
    stage = Reserving(0, disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"})
    (bought,) = stage.serve(1)
    assert bought.reservation is None
    stage.reserve(1)
    stage.live(minutes=10)
    assert stage.held() == {"cr-00000000000000001": 1}
    launched = len(stage.world.ec2.instances)
    stage.live(minutes=10)
    assert (stage.held(), len(stage.world.ec2.instances)) == ({"cr-00000000000000001": 1}, launched)
