"""ARC zonal shift from end to end: launches go elsewhere, nothing is ended there, and all comes back by itself."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from kerf.model.settings import Settings
from kerf.provisioning.why import why
from kerf.sandbox.world import World
from tests.simulation.stage import ALONE, STILL, Play
from tests.worlds import deployment, node_class, node_pool

MINUTE = timedelta(minutes=1)
IN_A = {"nodeSelector": {"topology.kubernetes.io/zone": "us-west-2a"}}


class Shifting(Play):
    """A pod in the first zone, and one anywhere, with a node each; then the first zone is shifted away for so long."""

    def __init__(self, minutes: int = 30) -> None:
        world = World(seed=11, types=("m5.large",))
        world.apply(node_class())
        world.apply(node_pool("general", {"disruption": STILL}))
        super().__init__(world, settings=Settings(cluster_name="sandbox", zonal_shift=True))
        world.apply(deployment("web", {**ALONE, **IN_A}))
        self.live(minutes=5)
        assert self.zones() == {"us-west-2a": 1}
        self.until = world.clock.now() + minutes * MINUTE
        world.ec2.shift_away("usw2-az1", self.until)
        self.live(minutes=1)

    def zones(self) -> Counter[str]:
        """Of machines that run."""
        return Counter(m.zone for m in self.world.ec2.instances.values() if m.state in ("pending", "running"))

    def reasons(self) -> Counter[str]:
        """Of events about NodePools."""
        found = (one for one in self.world.objects("Event") if one["involvedObject"]["kind"] == "NodePool")
        return Counter(one["reason"] for one in found if one["reason"].startswith("ZonalShift"))


def test_nothing_is_launched_there_until_the_shift_is_over_by_itself() -> None:
    stage = Shifting()
    stage.world.apply(deployment("other", {"replicas": 2, **ALONE}))
    stage.world.apply(deployment("bound", {**ALONE, **IN_A}))
    stage.live(minutes=10)
    assert stage.zones()["us-west-2a"] == 1
    (waiting,) = [p for p in stage.world.objects("Pod") if p["status"].get("phase") == "Pending"]
    name = f"default/{waiting['metadata']['name']}"
    told = why(stage.controller.state.snapshot(stage.world.clock.now()), name)
    assert "ARC zonal shift: nothing is launched in us-west-2a for now" in repr(told)
    stage.world.run(stage.controller, stage.until + 5 * MINUTE)
    assert {p["status"].get("phase") for p in stage.world.objects("Pod")} == {"Running"}


def test_nothing_is_ended_there_before_the_shift_is_over() -> None:
    stage = Shifting()
    stage.world.delete("Deployment", "web")
    (claim,) = stage.world.objects("NodeClaim")
    stage.world.delete("NodeClaim", claim["metadata"]["name"])
    stage.live(minutes=15)
    stage.restart()
    stage.live(minutes=5)
    assert stage.zones() == {"us-west-2a": 1}
    stage.world.run(stage.controller, stage.until + 5 * MINUTE)
    assert stage.zones() == {}
    assert stage.world.objects("NodeClaim") == []


def test_a_node_pool_hears_once_of_either() -> None:
    stage = Shifting()
    stage.live(minutes=10)
    stage.restart()
    stage.live(minutes=5)
    assert stage.reasons() == {"ZonalShiftActive": 1}
    stage.world.run(stage.controller, stage.until + 2 * MINUTE)
    assert stage.reasons() == {"ZonalShiftActive": 1, "ZonalShiftCleared": 1}
