"""Volumes keep pods in their zone, and are attached where the pods run."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.sandbox.weather import Weather
from kerf.sandbox.world import World

from .sandbox_world import deployment, node, places, pod, wait


def storage_class(mode: str, *zones: str) -> dict[str, Any]:
    allowed = {"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": list(zones)}]}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "gp3"},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": mode,
        "allowedTopologies": [allowed] if zones else [],
    }


def claim(name: str) -> dict[str, Any]:
    spec = {"storageClassName": "gp3", "accessModes": ["ReadWriteOnce"]}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def using(name: str) -> dict[str, Any]:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


def world_of(*manifests: dict[str, Any]) -> World:
    world = World(weather=Weather(detach_seconds=5, pod_stop_seconds=1), zones=("a-1a", "a-1b"))
    for manifest in (node("one", "a-1a"), node("two", "a-1b"), *manifests):
        world.apply(manifest)
    wait(world, 10)
    return world


def zone_of_volume(world: World) -> str:
    (volume,) = world.objects("PersistentVolume")
    term = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]
    zone: str = term["matchExpressions"][0]["values"][0]
    return zone


def test_volume_is_made_where_its_first_consumer_runs() -> None:
    selector = {"topology.kubernetes.io/zone": "a-1b"}
    world = world_of(storage_class("WaitForFirstConsumer"), claim("data"))
    assert world.objects("PersistentVolume") == []
    world.apply(pod("a", volumes=using("data")["volumes"], nodeSelector=selector))
    wait(world, 1)
    assert zone_of_volume(world) == "a-1b"
    world.delete("Pod", "a")
    wait(world, 10)
    world.apply(pod("b", **using("data")))
    wait(world, 1)
    assert places(world) == {"b": "two"}


def test_volume_that_binds_at_once_decides_the_zone() -> None:
    world = world_of(storage_class("Immediate", "a-1b"), claim("data"))
    assert zone_of_volume(world) == "a-1b"
    world.apply(pod("a", **using("data")))
    wait(world, 1)
    assert places(world) == {"a": "two"}


@pytest.mark.parametrize("manifests", [(), (claim("data"),)], ids=["no claim", "no class"])
def test_pod_waits_for_its_volume(manifests: tuple[dict[str, Any], ...]) -> None:
    world = world_of(*manifests, pod("a", **using("data")))
    assert places(world) == {"a": ""}
    world.apply(storage_class("Immediate"))
    if not manifests:
        world.apply(claim("data"))
    wait(world, 1)
    assert places(world)["a"] != ""


def test_attachment_goes_when_the_last_pod_has_gone() -> None:
    world = world_of(storage_class("WaitForFirstConsumer"), claim("data"), pod("a", **using("data")))
    (attachment,) = world.objects("VolumeAttachment")
    assert attachment["spec"]["nodeName"] == places(world)["a"]
    world.delete("Pod", "a")
    wait(world, 5)
    assert len(world.objects("VolumeAttachment")) == 1
    wait(world, 5)
    assert world.objects("VolumeAttachment") == []


def test_stateful_set_brings_claims_that_stay() -> None:
    template = {"metadata": {"name": "data"}, "spec": claim("x")["spec"]}
    manifest = {**deployment("db", 2), "kind": "StatefulSet"}
    manifest["spec"]["volumeClaimTemplates"] = [template]
    world = world_of(storage_class("WaitForFirstConsumer"), manifest)
    wait(world, 20)
    before = places(world)
    assert [c["metadata"]["name"] for c in world.objects("PersistentVolumeClaim")] == ["data-db-0", "data-db-1"]
    world.delete("Pod", "db-0")
    wait(world, 20)
    assert places(world) == before


def test_ephemeral_claim_lives_with_its_pod() -> None:
    volume = {"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": claim("x")["spec"]}}}
    world = world_of(storage_class("WaitForFirstConsumer"), pod("a", volumes=[volume]))
    assert [c["metadata"]["name"] for c in world.objects("PersistentVolumeClaim")] == ["a-tmp"]
    assert places(world)["a"] != ""
    world.delete("Pod", "a")
    wait(world, 10)
    assert (world.objects("PersistentVolumeClaim"), world.objects("PersistentVolume")) == ([], [])


def phases(world: World) -> dict[str, str]:
    return {c["metadata"]["name"]: c.get("status", {}).get("phase", "") for c in world.objects("PersistentVolumeClaim")}


def test_a_claim_is_bound_to_the_volume_it_names_and_lost_with_it() -> None:
    """The annotation tells a claim that is bound from one that only names a volume."""
    named = claim("data")
    named["spec"]["volumeName"] = "pv"
    world = world_of(named, pod("a", **using("data")))
    assert (phases(world)["data"], places(world)) == ("", {"a": ""})
    spec = {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}}
    world.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": spec})
    wait(world, 1)
    (bound,) = world.objects("PersistentVolumeClaim")
    assert bound["metadata"]["annotations"] == {"pv.kubernetes.io/bind-completed": "yes"}
    assert phases(world)["data"] == "Bound"
    assert places(world)["a"] != ""
    world.delete("PersistentVolume", "pv")
    wait(world, 1)
    assert phases(world)["data"] == "Lost"


def test_a_volume_of_the_old_plugin_is_written_as_such() -> None:
    world = world_of({**storage_class("Immediate"), "provisioner": "kubernetes.io/aws-ebs"}, claim("data"))
    (volume,) = world.objects("PersistentVolume")
    assert "csi" not in volume["spec"]
    assert volume["spec"]["awsElasticBlockStore"]["volumeID"].startswith("vol-")
