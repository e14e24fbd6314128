"""Nodes attach so many volumes as their CSINode says, and no more: the sandbox's kube-scheduler looks."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.sandbox.weather import Weather
from kerf.sandbox.world import World

from .sandbox_world import node, places, pod, wait
from .test_sandbox_volumes import claim, storage_class, using

NFS = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "share"}, "spec": {"nfs": {"path": "/"}}}


def world_of(most: int, *manifests: dict[str, Any], provisioner: str = "ebs.csi.aws.com") -> World:
    """One node that attaches so many volumes."""
    weather = Weather(attachable_volumes=most, detach_seconds=5, pod_stop_seconds=1)
    world = World(weather=weather, zones=("a-1a",))
    disks = {**storage_class("WaitForFirstConsumer"), "provisioner": provisioner}
    for manifest in (node("one", "a-1a"), disks, *manifests):
        world.apply(manifest)
    wait(world, 10)
    return world


def bound(world: World) -> list[str]:
    return [name for name, where in places(world).items() if where]


def test_a_ready_node_says_what_it_can_attach_and_its_driver_goes_with_it() -> None:
    world = world_of(7)
    (found,) = world.objects("CSINode")
    (driver,) = found["spec"]["drivers"]
    assert (found["metadata"]["name"], driver["name"]) == ("one", "ebs.csi.aws.com")
    assert driver["allocatable"] == {"count": 7}
    world.delete("Node", "one")
    wait(world, 1)
    assert world.objects("CSINode") == []


@pytest.mark.parametrize(
    ("provisioner", "lingering"),
    [("ebs.csi.aws.com", ["b", "plain"]), ("kubernetes.io/aws-ebs", ["b", "c", "plain"])],
)
def test_a_full_node_takes_no_pod_with_another_volume(provisioner: str, lingering: list[str]) -> None:
    """An attachment that is left over counts; the kube-scheduler counts none of a volume that is not CSI's."""
    pods = [pod(name, cpu="100m", **using(name)) for name in "abc"]
    world = world_of(2, *map(claim, "abc"), *pods, pod("plain", cpu="100m"), provisioner=provisioner)
    assert bound(world) == ["a", "b", "plain"]
    world.delete("Pod", "a")
    wait(world, 4)
    assert bound(world) == lingering
    wait(world, 10)
    assert bound(world) == ["b", "c", "plain"]


def test_a_shared_volume_counts_once_and_nfs_not_at_all() -> None:
    share = claim("share")
    share["spec"]["volumeName"] = "share"
    pods = [pod(name, cpu="100m", **using("data")) for name in "abc"]
    files = [pod(name, cpu="100m", **using("share")) for name in "xy"]
    world = world_of(1, NFS, share, claim("data"), claim("more"), *pods, *files, pod("z", cpu="100m", **using("more")))
    assert bound(world) == ["a", "b", "c", "x", "y"]


def test_other_drivers_have_no_limit() -> None:
    pods = [pod(name, cpu="100m", **using(name)) for name in "ab"]
    assert bound(world_of(1, *map(claim, "ab"), *pods, provisioner="other.csi")) == ["a", "b"]
