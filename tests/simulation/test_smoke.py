"""The whole controller in a world in memory: pods wait, nodes come, pods run; the pods go, and everything goes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from kerf.model.settings import Settings
from kerf.runtime.controller import Controller
from kerf.sandbox.world import World
from tests.worlds import node_class

NODE_CLASS = node_class()
NODE_POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "general"},
    "spec": {
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                    {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
                ],
            }
        },
        "disruption": {
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "consolidateAfter": "30s",
            "budgets": [{"nodes": "100%"}],
        },
    },
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 20,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]},
        },
    },
}


def _world() -> tuple[World, Controller]:
    world = World(seed=1)
    for manifest in (NODE_CLASS, NODE_POOL, DEPLOYMENT):
        world.apply(manifest)
    settings = Settings(cluster_name="sandbox")
    return world, Controller(world.ports, settings=settings, inline=True)


def _phases(world: World) -> list[Any]:
    return [pod.get("status", {}).get("phase") for pod in world.objects("Pod")]


def test_twenty_pods_get_nodes_and_an_empty_cluster_has_none() -> None:
    world, controller = _world()

    world.run(controller, until=timedelta(minutes=10))
    assert _phases(world) == ["Running"] * 20
    claims = world.objects("NodeClaim")
    assert claims
    assert len(world.objects("Node")) == len(claims) == len(list(world.cloud.instances()))
    for claim in claims:
        conditions = {c["type"]: c["status"] for c in claim["status"]["conditions"]}
        assert conditions["Initialized"] == conditions["Ready"] == "True"

    world.scale("default", "web", 0)
    world.run(controller, until=timedelta(minutes=10))
    assert world.objects("Pod") == []
    assert world.objects("NodeClaim") == []
    assert world.objects("Node") == []
    assert list(world.cloud.instances()) == []


def test_a_restart_in_the_middle_of_a_launch_makes_nothing_twice() -> None:
    world, controller = _world()
    world.run(controller, until=timedelta(minutes=1), stop_when=lambda: bool(list(world.cloud.instances())))
    launched = {instance.id for instance in world.cloud.instances()}
    assert launched

    settings = Settings(cluster_name="sandbox")
    other = Controller(world.ports, settings=settings, inline=True)
    world.run(other, until=timedelta(minutes=10))

    assert _phases(world) == ["Running"] * 20
    assert {instance.id for instance in world.cloud.instances()} == launched
