"""Drains of nodes whose pods are under one PodDisruptionBudget: their length, and the number of requests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.changes.pdbs import allowed
from kerf.ports import PortError
from kerf.sandbox.api.api_server import Record
from kerf.sandbox.api.eviction import DisruptionController
from kerf.sandbox.faults import Call
from kerf.sandbox.weather import Weather
from kerf.sandbox.world import World
from tests.simulation.stage import STILL, Play, Seam
from tests.worlds import deployment, node_class, node_pool

TYPE = "m5.large"
PODS = 30


class Requests(Seam):
    """When evictions were asked for, and when they were accepted."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[float] = []
        self.accepted: list[float] = []
        self.now: Callable[[], float] = lambda: 0.0

    def before(self, call: Call) -> None:
        if call.verb == "evict":
            self.asked.append(self.now())
        super().before(call)

    def after(self, call: Call) -> None:
        if call.verb == "evict":
            self.accepted.append(self.now())
        super().after(call)


class Drains(Play):
    """Two nodes with 30 pods of a Deployment under one PodDisruptionBudget. Once the nodes are deleted, others are
    launched for the pods."""

    def __init__(self, start_seconds: float, most: int = 1) -> None:
        self.seam = Requests()
        world = World(seed=7, types=(TYPE,), weather=Weather(pod_start_seconds=start_seconds), faults=self.seam)
        only = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [TYPE]}]
        world.apply(node_class())
        world.apply(node_pool("general", {"disruption": STILL, "requirements": only}))
        world.apply(deployment("web", {"replicas": PODS, "cpu": "125m", "memory": "64Mi"}))
        spec = {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": most}
        meta = {"name": "web", "namespace": "default"}
        world.apply({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec})
        super().__init__(world)
        self.live(seconds=240)
        began = world.clock.now()
        self.seam.now = lambda: (world.clock.now() - began).total_seconds()
        #: When the budget allowed more disruptions than before, and how many more.
        self.rises: list[tuple[float, int]] = []
        world.server.listen(self._heard)
        self.claims = [one.name for one in self.values(kinds.NODE_CLAIM)]
        for name in self.claims:
            world.delete("NodeClaim", name)

    def _heard(self, old: Record | None, new: Record | None) -> None:
        if new is not None and new.kind is kinds.PDB and old is not None:
            more = allowed(new.value) - allowed(old.value)
            self.rises += [(self.seam.now(), more)] if more > 0 else []

    def values(self, kind: kinds.Kind) -> list[Any]:
        return [record.value for record in self.world.server.select(kind, "", "", "")]

    def begun(self, accepted: int = 1) -> Drains:
        """Once so many pods are evicted. Before, the deletion guard holds the drains for ten minutes."""
        for _ in range(4000):
            if len(self.seam.accepted) >= accepted:
                return self
            self.live(seconds=1)
        raise AssertionError(f"{len(self.seam.accepted)} evictions")

    @property
    def seconds(self) -> float:
        """From the first eviction to the latest."""
        return self.seam.accepted[-1] - self.seam.accepted[0]


@pytest.mark.parametrize(
    ("starts", "most", "refused"), [pytest.param(2.0, 1, 300, marks=pytest.mark.long), (10.0, 1, 650), (10.0, 3, 330)]
)
def test_a_drain_takes_as_long_as_its_pods_take_to_start(starts: float, most: int, refused: int) -> None:
    drains = Drains(starts, most).begun()
    drains.twice = starts < 10  # with memory and without
    seam = drains.begun(PODS).seam
    assert drains.seconds <= starts * (PODS / most - 1) + 1
    assert len(seam.accepted) == PODS
    assert len(seam.asked) - PODS < refused
    assert not drains.differences


def test_each_rise_is_met_by_as_many_requests_as_it_allows() -> None:
    """Beside those whose back-off is over by itself at that instant; the first wave asks for all."""
    drains = Drains(10.0, 3).begun(PODS)
    at_once = [sum(at <= asked < at + 0.05 for asked in drains.seam.asked) - more for at, more in drains.rises]
    late = at_once[2:]
    assert len(late) > 5
    assert sum(late) <= len(late) / 2
    assert max(late) <= 2


def test_under_a_budget_whose_controller_is_down_the_back_off_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its status says 0 since the latest eviction. When the controller works again, the drain goes on at once."""
    drains = Drains(2.0).begun()
    with monkeypatch.context() as down:
        down.setattr(DisruptionController, "settle", lambda self: False)
        drains.live(seconds=60)
        already = len(drains.seam.asked)
        drains.live(seconds=120)
        assert len(drains.seam.accepted) == 1
        assert 10 * PODS <= len(drains.seam.asked) - already <= 12 * PODS, "each once in 10 or 11 seconds"
    back = drains.seam.now()
    drains.begun(2)
    assert drains.seam.accepted[1] - back <= 1
    drains.begun(PODS)
    assert drains.seam.accepted[-1] - back <= 2 * PODS + 1


def test_a_status_that_lags_behind_is_met_by_one_request_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller counts every 20 seconds."""
    drains, settle = Drains(2.0).begun(), DisruptionController.settle
    latest = dict[str, datetime]()

    def slow(self: DisruptionController) -> bool:
        now = drains.world.clock.now()
        if (now - latest.setdefault("at", now)).total_seconds() < 20:
            return False
        latest["at"] = now
        return settle(self)

    monkeypatch.setattr(DisruptionController, "settle", slow)
    drains.begun(10)
    gaps = [b - a for a, b in zip(drains.seam.accepted[1:], drains.seam.accepted[2:], strict=False)]
    assert all(gap <= 22 for gap in gaps)
    assert len(drains.rises) <= len(drains.seam.accepted) + 1


def test_evictions_that_a_webhook_refuses_wait_whatever_the_budget_says() -> None:
    """Every second the budget allows one more than before; no pod is asked about more often."""
    drains = Drains(2.0).begun()
    drains.seam.fails["kube", "evict"] = PortError("denied by a webhook")
    drains.live(seconds=60)
    asked = len(drains.seam.asked)
    rises = len(drains.rises)
    for _ in range(120):
        none = {"status": {"disruptionsAllowed": 0}}
        drains.world.server.patch(kinds.PDB, "default", "web", none, subresource="status")
        drains.live(seconds=1)
    assert len(drains.rises) - rises == 120
    assert 0 < len(drains.seam.asked) - asked <= 12 * PODS


def test_a_restart_in_the_middle_costs_one_request_for_each_pod() -> None:
    drains = Drains(10.0).begun(10)
    asked, at = len(drains.seam.asked), drains.seam.now()
    drains.restart()
    drains.live(seconds=0.05)
    assert len(drains.seam.asked) - asked <= PODS - 10
    drains.begun(PODS)
    assert drains.seam.accepted[-1] - at <= 10 * (PODS - 10) + 2
