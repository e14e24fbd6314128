"""CapacityBuffers, from end to end: machines that wait for pods, pods that start on them at once, and more machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.settings import FeatureGates
from kerf.sandbox.weather import Weather
from tests.simulation.stage import EAGER, SETTINGS, Stage
from tests.worlds import deployment

OPEN = replace(SETTINGS, gates=FeatureGates(capacity_buffer=True))
TWO_CPUS = {"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": ["2"]}
REQUESTS = {"cpu": "500m", "memory": "512Mi"}


class Reserve(Stage):
    """A stage whose nodes go as soon as they are empty, with a buffer for pods of its Deployment."""

    twice = True

    def __init__(
        self, pods: int, *, weather: Weather | None = None, disruption: Mapping[str, Any] = EAGER, **spec: Any
    ) -> None:
        pool = {"also": [TWO_CPUS]}
        super().__init__(replicas=pods, disruption=disruption, pool=pool, settings=OPEN, weather=weather)
        self.buffer(**spec)

    def buffer(self, **spec: Any) -> None:
        meta = {"name": "reserve", "namespace": "default"}
        manifest = {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": meta}
        ref = {"scalableRef": {"kind": "Deployment", "name": "web"}}
        self.world.apply({**manifest, "spec": {**ref, **spec}})

    def told(self, type_: str) -> str:
        """The reason of the buffer's condition."""
        (buffer,) = self.values(kinds.CAPACITY_BUFFER)
        return next((c.reason for c in buffer.status.conditions if c.type == type_), "")

    def fits(self) -> bool:
        return self.told("Provisioning") == "FitsExistingCapacity"


def test_a_buffer_has_its_machines_and_they_stay_empty() -> None:
    """Pods of the Deployment shun each other, so each has a node; nothing is written once all are up."""
    stage = Reserve(0, replicas=2)
    stage.run(10, until=lambda: stage.told("Provisioning") == "RequiresNewCapacity")
    stage.run(200, until=stage.fits)
    assert len(stage.nodes) == 2
    assert not stage.values(kinds.POD)
    stage.run(60)
    stage.seam.calls.clear()
    stage.run(600)
    assert not stage.seam.writes()
    assert len(stage.nodes) == 2


def test_pods_start_on_them_at_once_and_others_are_bought() -> None:
    stage = Reserve(0, replicas=1)
    stage.run(200, until=stage.fits)
    (first,) = stage.nodes
    stage.scale(1)
    stage.run(10, until=stage.all_run)
    assert [pod.spec.node_name for pod in stage.values(kinds.POD)] == [first.name]
    stage.run(40, until=lambda: len(stage.claims) == 2)
    stage.run(200, until=stage.fits)
    assert len(stage.nodes) == 2


def rests(seconds: float, minutes: float, disruption: Mapping[str, Any] = EAGER, restarts: int = 1) -> None:
    """A buffer whose nodes boot so fast keeps the nodes that it got first, also after restarts."""
    weather = Weather(launch_seconds=min(seconds, 1.0), boot_seconds=seconds, ready_seconds=0.0, describe_lag_seconds=0)
    stage = Reserve(0, weather=weather, disruption=disruption, replicas=2)
    stage.twice = False
    stage.run(300, until=lambda: len(stage.nodes) == 2)
    names = {claim.name for claim in stage.claims}
    for _ in range(restarts):
        stage.run(60 * minutes)
        stage.restart()
    stage.run(60 * minutes)
    assert {claim.name for claim in stage.claims} == names
    assert not stage.seam.writes("delete")
    assert stage.fits()


@pytest.mark.parametrize("seconds", [0.0, 4.0, 12.0])
def test_a_buffer_at_rest_rests_however_fast_its_nodes_boot(seconds: float) -> None:
    """They are up before the next pass, which is 30 seconds after the one that made them."""
    rests(seconds, 2)


@pytest.mark.long
@pytest.mark.parametrize("policy", ["WhenEmpty", "WhenEmptyOrUnderutilized"])
@pytest.mark.parametrize("seconds", [0.0, 1.0, 7.0, 17.0, 29.0, 31.0, 95.0])
def test_a_buffer_at_rest_rests_for_hours(seconds: float, policy: str) -> None:
    rests(seconds, 60, {**EAGER, "consolidationPolicy": policy}, restarts=3)


def test_without_the_buffer_they_go() -> None:
    stage = Reserve(0, replicas=2)
    stage.run(200, until=stage.fits)
    stage.world.delete("CapacityBuffer", "reserve")
    stage.run(400, until=lambda: not stage.claims and not stage.machines)


def test_a_controller_that_takes_over_keeps_them() -> None:
    """It knows nothing of the latest pass; nothing goes before its own first one."""
    stage = Reserve(0, replicas=2)
    stage.run(200, until=stage.fits)
    stage.run(60)
    for _ in range(3):
        stage.restart()
        stage.run(100)
    assert not stage.seam.writes("delete")
    assert len(stage.nodes) == 2


def test_a_share_follows_its_workload() -> None:
    stage = Reserve(2, percentage=50)
    stage.settle()
    stage.run(200, until=stage.fits)
    assert len(stage.nodes) == 3
    stage.scale(4)
    stage.run(300, until=lambda: stage.all_run() and len(stage.nodes) == 6 and stage.fits())
    stage.scale(0)
    stage.run(600, until=lambda: not stage.claims)
    assert stage.told("Provisioning") == "BufferEmpty"


def test_a_buffer_whose_template_comes_late() -> None:
    stage = Reserve(0)
    stage.world.delete("CapacityBuffer", "reserve")
    meta = {"name": "reserve", "namespace": "default"}
    manifest = {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": meta}
    stage.world.apply({**manifest, "spec": {"podTemplateRef": {"name": "later"}, "replicas": 1}})
    stage.run(20)
    assert stage.told("ReadyForProvisioning") == "PodTemplateNotFound"
    assert not stage.claims
    pod = {"spec": {"containers": [{"name": "main", "image": "main", "resources": {"requests": REQUESTS}}]}}
    stage.world.apply(
        {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {**meta, "name": "later"}, "template": pod}
    )
    stage.run(5, until=lambda: len(stage.claims) == 1)
    stage.run(200, until=stage.fits)


def test_without_the_gate_a_buffer_is_nobodys() -> None:
    stage = Stage(replicas=0, disruption=EAGER)
    Reserve.buffer(stage, replicas=2)  # type: ignore[arg-type]
    stage.run(120)
    (buffer,) = stage.values(kinds.CAPACITY_BUFFER)
    assert not stage.claims
    assert buffer.status.conditions == ()


class Growing(Stage):
    """A buffer of one pod of 1 CPU beside a Deployment whose pods (1500m) take a two-CPU node each."""

    def __init__(self) -> None:
        still = {**EAGER, "consolidateAfter": "5m"}
        super().__init__(replicas=0, disruption=still, pool={"also": [TWO_CPUS]}, settings=OPEN)
        containers = [{"name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}}}]
        meta = {"name": "reserve", "namespace": "default"}
        self.world.apply(
            {
                "apiVersion": "v1",
                "kind": "PodTemplate",
                "metadata": meta,
                "template": {"spec": {"containers": containers}},
            }
        )
        spec = {"podTemplateRef": {"name": "reserve"}, "replicas": 1}
        manifest = {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer"}
        self.world.apply({**manifest, "metadata": meta, "spec": spec})
        self.world.apply(deployment("web", {"replicas": 1, "cpu": "1500m"}))
        self.names: set[str] = set()

    def grow(self, first: int, last: int) -> None:
        """One pod every two minutes. Each gets its node, and there is never more than one node for the buffer."""
        for replicas in range(first, last + 1):
            self.scale(replicas)
            self.run(120)
            assert self.all_run(), replicas
            assert len(self.claims) == replicas + 1
            self.names |= {claim.name for claim in self.claims}

    def ends(self, replicas: int) -> None:
        self.run(400)
        (buffer,) = self.values(kinds.CAPACITY_BUFFER)
        assert {c.type: c.status for c in buffer.status.conditions}["Provisioning"] == "True"
        assert len(self.values(kinds.POD)) == replicas
        assert len(self.claims) == len(self.machines) == replicas + 1
        assert max(map(len, self.names)) <= 63


def test_a_workload_grows_pod_by_pod_and_the_buffer_stays() -> None:
    stage = Growing()
    stage.grow(1, 4)
    stage.ends(4)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_workload_grows_by_two_hundred_pods_and_the_buffer_stays() -> None:
    stage = Growing()
    stage.grow(1, 100)
    stage.restart()
    stage.grow(101, 200)
    stage.ends(200)
