"""The kubelets of the sandbox admit pods and resize them in place."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.model import kinds
from kerf.sandbox.weather import Weather
from kerf.sandbox.world import World
from tests.unit.sandbox.sandbox_world import node, places, pod, wait


def world_of(*manifests: dict[str, Any], resize_seconds: float = 2.0) -> World:
    """A world with one node of four CPUs, a minute later."""
    world = World(seed=2, weather=Weather(resize_seconds=resize_seconds))
    for manifest in (node("one"), *manifests):
        world.apply(manifest)
        wait(world, 15)
    return world


def status(world: World, name: str) -> Any:
    return world.server.get(kinds.POD, "default", name).manifest["status"]


def requests(world: World, name: str) -> str:
    """The CPU that the container of the pod has."""
    cpu: str = status(world, name)["containerStatuses"][0]["resources"]["requests"]["cpu"]
    return cpu


def pending(world: World, name: str) -> list[str]:
    return [c["reason"] for c in status(world, name)["conditions"] if c["type"] == "PodResizePending"]


def test_until_the_kubelet_acts_the_old_requests_count() -> None:
    world = world_of(pod("big", cpu="3"), resize_seconds=100)
    world.resize("default", "big", {"cpu": "200m"})
    world.apply(pod("next", cpu="2"))
    wait(world, 95)
    assert (places(world)["next"], requests(world, "big")) == ("", "3")
    wait(world, 10)
    assert (places(world)["next"], requests(world, "big")) == ("one", "200m")


def test_larger_requests_count_at_once() -> None:
    world = world_of(pod("big", cpu="1"), resize_seconds=100)
    world.resize("default", "big", {"cpu": "3"})
    world.apply(pod("next", cpu="2"))
    wait(world, 5)
    assert places(world)["next"] == ""


def test_an_infeasible_resize_does_not_count() -> None:
    world = world_of(pod("big", cpu="1"))
    world.resize("default", "big", {"cpu": "5"})
    wait(world, 5)
    world.apply(pod("next", cpu="3"))
    wait(world, 5)
    assert pending(world, "big") == ["Infeasible"]
    assert (places(world)["next"], requests(world, "big")) == ("one", "1")


def test_a_deferred_resize_waits_for_a_pod_to_go() -> None:
    world = world_of(pod("big", cpu="1"), pod("other", cpu="2"))
    world.resize("default", "big", {"cpu": "3"})
    wait(world, 60)
    assert (pending(world, "big"), requests(world, "big")) == (["Deferred"], "1")
    world.delete("Pod", "other")
    wait(world, 60)
    assert (pending(world, "big"), requests(world, "big")) == ([], "3")


@pytest.mark.parametrize(
    ("late", "reason"),
    [
        (pod("late", cpu="3", nodeName="one"), "OutOfcpu"),
        (pod("late", cpu="1", nodeName="one", nodeSelector={"team": "a"}), "NodeAffinity"),
        (pod("late", cpu="0", nodeName="one", initContainers=[{"name": "init", "resources": {}}]), ""),
        (
            pod(
                "late",
                cpu="0",
                nodeName="one",
                initContainers=[
                    {"name": "side", "restartPolicy": "Always", "ports": [{"containerPort": 80, "hostPort": 80}]}
                ],
            ),
            "NodePorts",
        ),
    ],
)
def test_a_pod_that_its_node_cannot_run_fails(late: dict[str, Any], reason: str) -> None:
    first = pod("first", cpu="2")
    first["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    world = world_of(first, late)
    found = status(world, "late")
    assert (found["phase"], found.get("reason", "")) == (("Failed", reason) if reason else ("Running", ""))
