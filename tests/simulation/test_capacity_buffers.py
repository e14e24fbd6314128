"""CapacityBuffers, from end to end: machines that wait for pods, pods that start on them at once, and more machines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reconciler.model import kinds
from reconciler.model.settings import FeatureGates
from tests.simulation.stage import EAGER, SETTINGS, Stage

OPEN = replace(SETTINGS, gates=FeatureGates(capacity_buffer=True))
TWO_CPUS = {"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": ["2"]}
REQUESTS = {"cpu": "500m", "memory": "512Mi"}


class Reserve(Stage):
    """A stage whose nodes go as soon as they are empty, with a buffer for pods of its Deployment."""

    twice = True

    def __init__(self, pods: int, **spec: Any) -> None:
        pool = {"also": [TWO_CPUS]}
        super().__init__(replicas=pods, disruption=EAGER, pool=pool, settings=OPEN)
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
