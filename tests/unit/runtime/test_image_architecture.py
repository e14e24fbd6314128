"""Nodes drift when their EC2NodeClass no longer has an image of their architecture, and only then."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.model.settings import Settings
from kerf.runtime.controller import Controller
from kerf.sandbox.world import World
from tests import worlds

CLASS = Ref("EC2NodeClass", "", "default")
ARM = [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]
NOT_THERE = {"id": "ami-0123456789abcdef0"}


def running() -> tuple[World, Controller]:
    """One arm64 node with a pod that runs on any architecture."""
    world = World()
    settings = Settings(cluster_name="sandbox")
    loop = Controller(world.ports, settings=settings, inline=True)
    rest = {"disruption": {"consolidateAfter": "Never"}, "requirements": ARM}
    web = worlds.deployment("web", {"replicas": 1})
    for manifest in (worlds.node_class(), worlds.node_pool("default", rest), web):
        world.apply(manifest)
    world.run(loop, timedelta(minutes=5))
    return world, loop


def images(world: World, architecture: str) -> list[dict[str, Any]]:
    """Terms for the images of the class that have this architecture."""
    status = world.kube.get(CLASS).status
    rows = (row for row in status.amis if any(architecture in entry.values for entry in row.requirements))
    return [{"id": row.id} for row in rows]


def drifted(world: World) -> list[str]:
    claims = world.objects("NodeClaim")
    return [c["reason"] for claim in claims for c in claim["status"]["conditions"] if c["type"] == "Drifted"]


def test_a_class_of_another_architecture() -> None:
    world, loop = running()
    (claim,) = world.kube.list(kinds.NODE_CLAIM).items
    assert claim.metadata.labels["kubernetes.io/arch"] == "arm64"
    amd = images(world, "amd64")
    world.kube.patch(CLASS, {"spec": {"amiFamily": "AL2023", "amiSelectorTerms": [*amd, NOT_THERE]}})
    world.run(loop, timedelta(minutes=4))
    assert drifted(world) == []
    world.kube.patch(CLASS, {"spec": {"amiSelectorTerms": amd}})
    world.run(loop, timedelta(minutes=3))
    assert drifted(world) == ["AMIDrift"]


def test_a_resolution_that_fails_is_no_drift() -> None:
    world, loop = running()
    world.kube.patch(CLASS, {"spec": {"amiFamily": "AL2023", "amiSelectorTerms": [NOT_THERE]}})
    world.run(loop, timedelta(minutes=4))
    assert drifted(world) == []
