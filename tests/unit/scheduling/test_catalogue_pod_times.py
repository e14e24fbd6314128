"""What is measured of pods: behaviours 11, 219 and 220 of the catalogue."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from kerf.model import kinds
from kerf.model.kubernetes.objects import Pod
from kerf.sandbox.clock import VirtualClock
from kerf.sandbox.world import World
from kerf.telemetry.telemetry import Telemetry
from kerf_api import labels
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.test_catalogue_volumes import claim, in_zones, using

HEALTHY_TIME = "karpenter_pods_provisioning_bound_duration_seconds_count"
UNDECIDED = "karpenter_pods_provisioning_scheduling_undecided_time_seconds"
ZONES = "karpenter_scheduler_pending_pods_by_effective_zone_count"


class Told:
    """Telemetry of a leader, which is shown one pass after the other, and how pods have changed since the last."""

    def __init__(self) -> None:
        self.told = Telemetry.quiet(World().kube, VirtualClock(w.NOW))
        self.known: dict[str, Pod] = {}

    def pass_(self, *objects: Any) -> None:
        for pod in (one for one in objects if isinstance(one, Pod)):
            self.told.object_changed(kinds.POD, self.known.get(pod.key), pod)
            self.known[pod.key] = pod
        snapshot = w.world(*objects, catalogue=c.CATALOGUE)
        self.told.planned(c.plan(*objects), snapshot)

    def numbers(self, name: str) -> dict[tuple[tuple[str, str], ...], float]:
        families = text_string_to_metric_families(self.told.metrics.text().decode())
        samples = (sample for family in families for sample in family.samples if sample.name == name)
        return {tuple(sorted(sample.labels.items())): sample.value for sample in samples}


def healthy(status: str) -> NodePool:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "NodeRegistrationHealthy", "status": status}]
    pool = w.pool()
    return decode(NodePool, {**_raw(pool), "status": {"conditions": conditions}})


def _raw(pool: NodePool) -> dict[str, Any]:
    raw: dict[str, Any] = msgspec.to_builtins(pool)
    return raw


@pytest.mark.parametrize(("status", "counted"), [("True", 1), ("False", 0)])
def test_011_the_time_from_which_a_healthy_pool_could_serve_a_pod(status: str, counted: int) -> None:
    """It is remembered where the pool's nodes register, and measured when the pod is bound."""
    told = Told()
    told.pass_(healthy(status), w.pod("p"))
    told.pass_(healthy(status), w.node("n"), w.pod("p", node="n"))
    assert sum(told.numbers(HEALTHY_TIME).values()) == counted


def test_219_when_a_pod_was_first_decided_about() -> None:
    """The first time counts; an error forgets it; bound pods are passed over."""
    told = Told()
    name = "karpenter_pods_scheduling_decision_duration_seconds_count"
    for _ in range(2):
        told.pass_(w.pool(), w.pod("p"))
    assert sum(told.numbers(name).values()) == 1
    told.pass_(w.pool(), w.pod("p"), w.pod("large", "1000"))
    assert sum(told.numbers(name).values()) == 2
    told.pass_(w.pool(), w.node("n"), w.pod("bound", node="n"))
    assert sum(told.numbers(name).values()) == 2
    assert told.numbers(UNDECIDED) == {}


def _effective(*objects: Any) -> list[str]:
    """The zone under which the only pending pod is counted."""
    told = Told()
    told.pass_(*objects)
    found = told.numbers(ZONES)
    return [dict(own)["zone"] for own, count in found.items() if count]


def test_220_where_a_pending_pod_can_be_placed() -> None:
    """Anywhere; in the zone that is left by its selector, its volume and its company; or nowhere."""

    def pod(**spec: Any) -> Pod:
        return w.pod("p", labels={"app": "p"}, **spec)

    z2 = {"nodeSelector": {labels.ZONE: "z2"}}
    nodes = [w.node(f"n-{z}", z, cpu="50m") for z in w.ZONES]
    web = [w.pod(f"w-{z}", "1m", "1Mi", node=f"n-{z}", labels={"app": "web"}) for z in w.ZONES]
    cases: list[tuple[str, list[Any]]] = [
        ("flexible", [pod()]),
        ("z2", [pod(**z2)]),
        ("flexible", [pod(affinity=c.prefers((1, labels.ZONE, "z2")))]),
        ("flexible", [using(), claim(volume="v"), in_zones("v", "z1", "z2")]),
        ("z2", [using(), claim(volume="v"), in_zones("v", "z2")]),
        ("none", [using(nodeSelector={labels.ZONE: "z1"}), claim(volume="v"), in_zones("v", "z2")]),
        ("z1", [*nodes, web[0], pod(affinity=w.between("podAffinity", labels.ZONE))]),
        ("z3", [*nodes, *web[:2], pod(affinity=w.between("podAntiAffinity", labels.ZONE))]),
        ("z3", [*nodes, *web[:2], w.pod("p", labels={"app": "web"}, topologySpreadConstraints=[w.spread()])]),
        ("flexible", [*nodes, *web[:2], pod(topologySpreadConstraints=[w.spread()])]),
        ("none", [*nodes, *web, pod(affinity=w.between("podAntiAffinity", labels.ZONE))]),
        ("none", [pod(affinity=w.between("podAffinity", labels.ZONE, "nobody"))]),
    ]
    for zone, objects in cases:
        assert _effective(w.pool(), *objects) == [zone]
