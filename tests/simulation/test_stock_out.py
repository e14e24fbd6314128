"""What is out of stock is passed over: another offering within a minute, another NodePool when the first has none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from kerf.model import backoff
from kerf.model.aws.cloud import FleetError, FleetRequest, FleetResult
from kerf.model.settings import FeatureGates, Settings
from kerf.sandbox.world import World
from kerf_api import labels
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool
from tests.simulation.stage import Play
from tests.worlds import deployment, node_class, node_pool

ON_DEMAND = {"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]}
MINUTE = timedelta(minutes=1)
TYPES = ("c5.large", "c5.xlarge", "m5.large", "m5.xlarge", "r5.large")


def family(letter: str) -> dict[str, Any]:
    return {"key": f"{labels.AWS_GROUP}/instance-category", "operator": "In", "values": [letter]}


class Quota:
    """The world's cloud, with a quota of some family used up: the whole call fails, and no offering is to blame.

    With `no_vcpus` the quota of vCPUs is: EC2 has tried the first override.
    """

    def __init__(self, cloud: Any) -> None:
        self._cloud, self.used_up, self.no_vcpus = cloud, "none", False
        self.requests: list[FleetRequest] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cloud, name)

    @property
    def calls(self) -> int:
        return len(self.requests)

    def create_fleet(self, request: FleetRequest, may_act: Callable[[], bool] = lambda: True) -> FleetResult:
        self.requests.append(request)
        if any(override.instance_type.startswith(self.used_up) for override in request.overrides):
            return FleetResult((), (FleetError("MaxFleetCountExceeded", "the fleet quota is used up", capacity=True),))
        if self.no_vcpus:
            first = request.overrides[0]
            error = FleetError("VcpuLimitExceeded", "no vCPUs", first.instance_type, first.zone, capacity=True)
            return FleetResult((), (error,))
        found: FleetResult = self._cloud.create_fleet(request, may_act)
        return found


class Shop(Play):
    """A class and some pools, up and ready, and a controller that can be started again."""

    def __init__(self, **pools: dict[str, Any]) -> None:
        world = World(seed=9, types=TYPES)
        world.apply(node_class())
        for name, pool in pools.items():
            world.apply(node_pool(name, pool))
        self.cloud = Quota(world.cloud)
        super().__init__(world, self.cloud)
        self.live(seconds=20)

    def none_left(self, types: Iterable[str], minutes: int = 60) -> None:
        for instance_type in types:
            until = self.world.clock.now() + timedelta(minutes=minutes)
            self.world.ec2.stock_out(instance_type, "*", "on-demand", until)

    def launched(self) -> list[str]:
        return sorted(machine.instance_type for machine in self.world.ec2.instances.values())

    def until_launched(self, limit: timedelta) -> timedelta:
        """How long it took to have one more instance."""
        began, before = self.world.clock.now(), len(self.launched())
        self.world.run(self.controller, limit, stop_when=lambda: len(self.launched()) > before)
        assert len(self.launched()) > before, "nothing was launched"
        return self.world.clock.now() - began

    def pools_used(self) -> set[str]:
        return {claim["metadata"]["labels"][labels.NODEPOOL] for claim in self.world.objects("NodeClaim")}


def test_another_type_within_a_minute_when_the_chosen_one_is_out_of_stock() -> None:
    probe = Shop(general={"requirements": [ON_DEMAND]})
    probe.world.apply(deployment("web", {}))
    probe.until_launched(MINUTE)
    (chosen,) = probe.launched()

    stage = Shop(general={"requirements": [ON_DEMAND]})
    stage.none_left([chosen])
    stage.world.apply(deployment("web", {}))
    assert stage.until_launched(MINUTE) < MINUTE
    assert chosen not in stage.launched()


def test_the_last_type_when_all_others_are_out_of_stock() -> None:
    stage = Shop(general={"requirements": [ON_DEMAND]})
    stage.none_left(TYPES[:-1])
    stage.world.apply(deployment("web", {}))
    assert stage.until_launched(MINUTE) < MINUTE
    assert stage.launched() == ["r5.large"]


def test_the_next_pool_by_weight_when_the_first_has_nothing() -> None:
    stage = Shop(
        first={"requirements": [ON_DEMAND, family("c")], "weight": 90},
        second={"requirements": [ON_DEMAND, family("m")], "weight": 50},
        third={"requirements": [ON_DEMAND, family("r")], "weight": 10},
    )
    stage.none_left(["c5.large", "c5.xlarge"])
    stage.world.apply(deployment("web", {}))
    assert stage.until_launched(MINUTE) < MINUTE
    assert stage.launched()[0].startswith("m5")
    stage.live(seconds=10)
    assert stage.pools_used() == {"second"}


def test_a_controller_that_starts_again_and_again_still_gets_there() -> None:
    """What it learned of stock-outs is lost with each start; a try of each start is what that costs."""
    stage = Shop(general={"requirements": [ON_DEMAND]})
    stage.none_left(TYPES[:-1])
    stage.world.apply(deployment("web", {}))
    for _ in range(5):
        stage.live(seconds=4)
        stage.restart()
    stage.live(seconds=40)
    assert stage.launched() == ["r5.large"]
    assert stage.cloud.calls <= 12


def test_a_quota_that_is_used_up_is_not_asked_for_all_the_time_and_another_pool_serves() -> None:
    stage = Shop(
        first={"requirements": [ON_DEMAND, family("c")], "weight": 90},
        second={"requirements": [ON_DEMAND, family("m")], "weight": 10},
    )
    stage.cloud.used_up = "c5"
    stage.world.apply(deployment("web", {}))
    assert stage.until_launched(MINUTE) < MINUTE
    assert stage.launched()[0].startswith("m5")
    stage.live(seconds=10)
    assert stage.pools_used() == {"second"}


def test_without_another_pool_the_waits_grow_and_a_restart_does_not_forget_them() -> None:
    stage = Shop(only={"requirements": [ON_DEMAND, family("c")]})
    stage.cloud.used_up = "c5"
    stage.world.apply(deployment("web", {}))
    stage.live(minutes=2)
    assert 2 <= stage.cloud.calls <= 7
    for _ in range(10):
        stage.restart()
        stage.live(seconds=12)
    assert stage.cloud.calls <= 9
    (pool,) = stage.world.objects("NodePool")
    assert backoff.until(decode(NodePool, pool), stage.world.clock.now()) is not None
    stage.cloud.used_up = "none"
    assert stage.until_launched(timedelta(minutes=6)) < timedelta(minutes=6)
    stage.live(minutes=5)
    (pool,) = stage.world.objects("NodePool")
    assert labels.BACK_OFF not in pool["metadata"]["annotations"]


def test_a_quota_of_vcpus_that_is_used_up_is_asked_for_smaller_types_only() -> None:
    """EC2 names one type and zone at a time: what is as large is not tried in another zone or family."""
    stage = Shop(general={"requirements": [ON_DEMAND]})
    stage.cloud.no_vcpus = True
    stage.world.apply(deployment("web", {"cpu": "1800m"}))
    stage.live(minutes=2, seconds=30)
    assert [request.overrides[0].instance_type for request in stage.cloud.requests] == ["c5.large"]
    assert not stage.launched()
    stage.cloud.no_vcpus = False
    assert stage.until_launched(2 * MINUTE) < 2 * MINUTE


def test_a_quota_of_vcpus_that_the_end_of_a_node_frees_is_used_at_once() -> None:
    eager = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}
    first = {"requirements": [ON_DEMAND, family("c")], "disruption": eager, "weight": 10}
    stage = Shop(first=first, second={"requirements": [ON_DEMAND, family("m")], "disruption": eager})
    stage.world.ec2.stocks.quotas["on-demand"] = 2
    stage.world.apply(deployment("old", {"cpu": "1800m"}))
    stage.until_launched(MINUTE)
    stage.live(minutes=2)
    stage.world.apply(deployment("new", {"cpu": "1700m", "nodeSelector": {labels.NODEPOOL: "second"}}))
    stage.live(minutes=3, seconds=15)
    before = stage.cloud.calls

    def states() -> list[str]:
        return [machine.state for machine in stage.world.ec2.instances.values()]

    stage.world.apply(deployment("old", {"cpu": "1800m", "replicas": 0}))
    stage.world.run(stage.controller, 3 * MINUTE, stop_when=lambda: set(states()) == {"terminated"})
    assert stage.until_launched(2 * MINUTE) <= timedelta(seconds=30)
    assert stage.cloud.calls - before <= 2


def test_the_status_never_says_that_all_is_well_while_nothing_is_in_stock() -> None:
    stage = Shop(general={"requirements": [ON_DEMAND]})
    stage.none_left(TYPES)
    stage.world.apply(deployment("web", {}))
    stage.live(seconds=70)
    for _ in range(120):
        assert stage.controller.status().troubles, stage.world.clock.now()
        stage.live(seconds=10)


def test_a_static_pool_without_capacity_is_a_trouble() -> None:
    stage = Shop()
    stage.none_left(TYPES)
    stage._settings = Settings(cluster_name="sandbox", gates=FeatureGates(static_capacity=True))
    stage.restart()
    stage.world.apply(node_pool("static", {"requirements": [ON_DEMAND], "replicas": 2}))
    stage.live(minutes=3)
    (found,) = stage.controller.status().troubles
    assert (found.object, found.times) == ("nodepool/static", 2)
