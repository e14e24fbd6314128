"""An EC2NodeClass, a NodePool and pods that are created together: no warning before the NodePool is ready."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest

from kerf.model.settings import Settings
from kerf.ports import Unavailable
from kerf.runtime.controller import Controller
from kerf.sandbox.faults import Call, Faults
from kerf.sandbox.world import World
from tests import worlds

SYSTEM = {"key": "CriticalAddonsOnly", "effect": "NoSchedule"}


def warnings(world: World) -> list[str]:
    return [
        event["message"]
        for event in world.objects("Event")
        if (event["reason"], event["type"]) == ("FailedScheduling", "Warning")
        and "Failed to schedule" in event["message"]
    ]


def played(world: World, manifests: list[dict[str, Any]], apart: timedelta) -> None:
    loop = Controller(world.ports, settings=Settings(cluster_name="sandbox"), inline=True)
    world.run(loop, timedelta(seconds=20))
    for manifest in manifests:
        world.apply(manifest)
        world.run(loop, apart)
    world.run(loop, timedelta(minutes=3))


class Slow(Faults):
    """AWS does not answer for the class so many times."""

    def __init__(self, times: int = 3) -> None:
        self.left = times

    def before(self, call: Call) -> None:
        if call.verb == "resolve" and self.left:
            self.left -= 1
            raise Unavailable("ec2:DescribeSubnets: timed out")


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_no_warning_in_any_order(order: tuple[int, ...]) -> None:
    world = World(faults=Slow())
    all_ = [worlds.node_class(), worlds.node_pool("default", {}), worlds.deployment("web", {"replicas": 3})]
    played(world, [all_[place] for place in order], timedelta(milliseconds=200))
    assert warnings(world) == []
    pods = [pod for pod in world.objects("Pod") if pod["metadata"]["labels"].get("app") == "web"]
    assert {bool(pod["spec"].get("nodeName")) for pod in pods} == {True}


def test_a_class_that_never_gets_ready_is_warned_of_without_advice() -> None:
    world = World()
    broken = worlds.node_class(cluster="nowhere")
    system = worlds.node_pool("system", {"taints": [SYSTEM]})
    played(world, [broken, system, worlds.deployment("web", {"replicas": 1})], timedelta(milliseconds=200))
    found = warnings(world)
    assert found
    assert not any("CriticalAddonsOnly" in text for text in found)


def test_a_class_that_aws_never_answers_for_is_warned_of_after_a_minute() -> None:
    world = World(faults=Slow(1000))
    all_ = [worlds.node_class(), worlds.node_pool("default", {}), worlds.deployment("web", {"replicas": 1})]
    played(world, all_, timedelta(seconds=10))
    found = warnings(world)
    assert found
    assert all("NodePool default: is settling: " in text and "one edit" not in text for text in found)
