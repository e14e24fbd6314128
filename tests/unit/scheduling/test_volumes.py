"""Volumes pin zones, offer alternatives, or cannot be had."""

from __future__ import annotations

from typing import Any

import pytest

from api import labels
from api.v1.meta import decode
from reconciler.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from tests.unit.scheduling import worlds as w


def claim(name: str = "c", volume: str = "", storage_class: str | None = None) -> PersistentVolumeClaim:
    done = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    meta = {"name": name, "namespace": "default", "annotations": done}
    spec = {"volumeName": volume, "storageClassName": storage_class}
    return decode(PersistentVolumeClaim, {"metadata": meta, "spec": spec})


def volume(name: str, *zones: str, key: str = labels.ZONE, **spec: Any) -> PersistentVolume:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [z]}]} for z in zones]
    required = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    return decode(PersistentVolume, {"metadata": {"name": name}, "spec": {**required, **spec}})


def storage_class(name: str, mode: str = "WaitForFirstConsumer", *zones: str) -> StorageClass:
    topologies = [{"matchLabelExpressions": [{"key": labels.ZONE, "values": list(zones)}]}] if zones else []
    manifest = {"metadata": {"name": name}, "volumeBindingMode": mode, "allowedTopologies": topologies}
    return decode(StorageClass, manifest)


def using(name: str = "p", volumes: tuple[str, ...] = ("c",), **spec: Any) -> Any:
    rows = [{"name": v, "persistentVolumeClaim": {"claimName": v}} for v in volumes]
    return w.pod(name, volumes=rows, **spec)


def test_a_bound_volume_pins_the_zone() -> None:
    (new,) = w.solved(w.pool(), claim(volume="v"), volume("v", "z3"), using()).new_nodes
    assert new.zones == ("z3",)
    elsewhere = using(nodeSelector={labels.ZONE: "z1"})
    assert w.solved(w.pool(), claim(volume="v"), volume("v", "z3"), elsewhere).unplaced


def test_allowed_topologies_of_a_class_that_waits() -> None:
    waits = storage_class("s", "WaitForFirstConsumer", "z2")
    (new,) = w.solved(w.pool(), claim(storage_class="s"), waits, using()).new_nodes
    assert new.zones == ("z2",)


def test_a_local_volume_does_not_pin_the_host() -> None:
    pinned = volume("v", "old-node", key=labels.HOSTNAME)
    local = volume("v", "old-node", key=labels.HOSTNAME, local={"path": "/x"})
    assert w.solved(w.pool(), claim(volume="v"), pinned, using()).unplaced
    assert w.solved(w.pool(), claim(volume="v"), local, using()).new_nodes


def test_two_volumes_meet_in_the_only_zone_they_share() -> None:
    both = [claim("a", "va"), claim("b", "vb"), volume("va", "z1", "z2"), volume("vb", "z2", "z3")]
    (new,) = w.solved(w.pool(), both, using(volumes=("a", "b"))).new_nodes
    assert new.zones == ("z2",)


def test_anti_affine_pods_with_alternatives_take_different_zones() -> None:
    objects = [claim(n, f"v{n}") for n in "ab"] + [volume(f"v{n}", "z1", "z2") for n in "ab"]
    shun = w.between("podAntiAffinity", labels.ZONE)
    pods = [using(n, (n,), labels={"app": "web"}, affinity=shun) for n in "ab"]
    assert w.counts(w.solved(w.pool(), objects, pods)) == [1, 1]


@pytest.mark.parametrize(
    "objects",
    [
        [],
        [claim()],
        [claim(storage_class="s")],
        [claim(storage_class="s"), storage_class("s", "Immediate")],
        [claim(volume="lost")],
    ],
)
def test_a_volume_that_cannot_be_had_stops_only_its_pod(objects: list[Any]) -> None:
    solution = w.solved(w.pool(), objects, using(), w.pod("other"))
    assert list(solution.unplaced) == ["default/p"]
