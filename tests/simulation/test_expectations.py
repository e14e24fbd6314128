"""Pods that are told which node was made for them (NOMINATE_PODS) come there, wherever the scheduler would put them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from kerf.model import kinds
from kerf.model.settings import Settings
from kerf.ports import Forbidden
from kerf.sandbox.weather import Weather
from kerf.scheduling.answers.nodeclaims import pod_mark
from kerf_api import labels
from tests.simulation.stage import SETTINGS, Stage, of
from tests.worlds import deployment

TOLD: Final = replace(SETTINGS, nominate_pods=True)
#: Large pods, pods that want memory, and many that are small: each node is made for some of each.
WORKLOADS: Final[dict[str, dict[str, Any]]] = {
    "big": {"replicas": 5, "cpu": "3300m", "memory": "3Gi"},
    "fat": {"replicas": 4, "cpu": "500m", "memory": "11Gi"},
    "small": {"replicas": 24, "cpu": "400m", "memory": "700Mi"},
}


def stage(settings: Settings, ready_seconds: float = 5) -> Stage:
    """The scheduler takes any node that will do."""
    weather = Weather(scattered=True, ready_seconds=ready_seconds)
    found = Stage(replicas=0, weather=weather, settings=settings)
    for name, given in WORKLOADS.items():
        found.world.apply(deployment(name, given))
    return found


def away(found: Stage) -> list[str]:
    """Pods on a node that was not made for them."""
    marks: dict[str, Any] = {
        claim.status.node_name: claim.metadata.annotations[labels.PLANNED_PODS].split(",") for claim in found.claims
    }
    return [p.key for p in found.values(kinds.POD) if pod_mark(p.metadata.uid) not in marks[p.spec.node_name]]


def expecting(found: Stage) -> list[str]:
    return [pod.key for pod in found.values(kinds.POD) if pod.status.nominated_node_name and not pod.spec.node_name]


@pytest.mark.parametrize(("settings", "strays"), [(TOLD, False), (SETTINGS, True)])
def test_pods_come_to_the_node_that_was_made_for_them(settings: Settings, strays: bool) -> None:
    found = stage(settings)
    found.settle()
    assert bool(away(found)) is strays


def test_pods_of_a_node_that_dies_before_it_takes_them_get_another() -> None:
    found = stage(TOLD, ready_seconds=90)
    found.run(60, until=lambda: bool(expecting(found)))
    lost = found.claims[0].instance_id
    found.world.ec2.terminate(lost)
    found.settle()
    assert lost not in {claim.instance_id for claim in found.claims}
    assert found.all_run()
    assert not expecting(found)


def test_writes_that_are_forbidden_hold_nothing_up_for_long() -> None:
    found = stage(TOLD)
    found.seam.fails["kube", "patch"] = of("pod/", Forbidden("pods/status"))
    found.settle()
    assert found.all_run()
