"""What a node can attach, and volumes that cannot be had: behaviours 138 to 140 of the catalogue (§11)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.storage import PersistentVolume
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.test_catalogue_volumes import claim, ephemeral, in_zones, using, waiting

EBS = "ebs.csi.aws.com"


def attaching(node: str, count: int, driver: str = EBS) -> Any:
    """What a node says that it can attach."""
    return c.made("CSINode", node, spec={"drivers": [{"name": driver, "allocatable": {"count": count}}]})


def roomy(name: str = "n") -> Any:
    return w.node(name, cpu="64", memory="64Gi")


def provisioned(name: str, provisioner: str, *, default: bool = False, made: str = "2026-01-01T00:00:00Z") -> Any:
    notes = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    meta = {"annotations": notes, "creationTimestamp": made}
    more = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    return c.made("StorageClass", name, metadata=meta, **more)


def test_138_a_node_attaches_so_many_volumes() -> None:
    """Ten, at two for each of six pods: five there, one on a new node. One claim of all counts once; NFS never."""
    claims = [claim(f"c{i}{j}", storage_class="s") for i in range(6) for j in range(2)]
    pods = [using(f"p{i}", f"c{i}0", f"c{i}1") for i in range(6)]
    done = c.run(w.pool(), roomy(), attaching("n", 10), waiting("s"), claims, pods)
    assert (len(done.placed), len(done.nodes)) == (5, 1)
    shared = [using(f"p{i}", "c") for i in range(100)]
    done = c.run(w.pool(), roomy(), attaching("n", 1), waiting("s"), claim("c", storage_class="s"), shared)
    assert (len(done.placed), done.nodes) == (100, ())
    nfs = [c.made("PersistentVolume", f"v{i}", spec={"nfs": {"server": "x", "path": "/"}}) for i in range(3)]
    bound = [claim(f"c{i}", f"v{i}") for i in range(3)]
    done = c.run(w.pool(), roomy(), attaching("n", 1), nfs, bound, [using(f"p{i}", f"c{i}") for i in range(3)])
    assert (len(done.placed), done.nodes) == (3, ())


def test_139_how_the_driver_of_a_volume_is_found() -> None:
    """By a named class, the default one, the newest default one; in-tree names count as their CSI driver."""
    old = provisioned("old", "other.csi", default=True)
    new = provisioned("new", "kubernetes.io/aws-ebs", default=True, made="2026-01-01T01:00:00Z")
    for name, limited in (("new", True), (None, True), ("old", False)):
        pods: list[Pod] = [ephemeral(f"p{i}", name) for i in range(3)]
        done = c.run(w.pool(), roomy(), attaching("n", 1), old, new, pods)
        assert len(done.placed) == (1 if limited else 3)
    in_tree = [
        c.made("PersistentVolume", f"v{i}", spec={"awsElasticBlockStore": {"volumeID": f"vol-{i}"}}) for i in range(2)
    ]
    bound = [claim(f"c{i}", f"v{i}") for i in range(2)]
    done = c.run(w.pool(), roomy(), attaching("n", 1), in_tree, bound, [using(f"p{i}", f"c{i}") for i in range(2)])
    assert len(done.placed) == 1


def _dying(value: Any) -> Any:
    return msgspec.structs.replace(value, metadata=msgspec.structs.replace(value.metadata, deletion_timestamp=w.NOW))


@pytest.mark.parametrize("why", ["immediate", "claim goes", "volume goes", "lost", "not bound yet"])
def test_140_volumes_that_cannot_be_had(why: str) -> None:
    """Its pod waits, and no node is made. (The provider supports every provisioner and topology key.)"""
    volume: PersistentVolume = in_zones("v", "z1")
    bound = claim(volume="v")
    unbound = msgspec.structs.replace(bound, metadata=msgspec.structs.replace(bound.metadata, annotations={}))
    immediate = c.made("StorageClass", "s", provisioner=EBS, volumeBindingMode="Immediate")
    lost = c.made("PersistentVolumeClaim", "c", "default", spec={"storageClassName": "w"}, status={"phase": "Lost"})
    objects: dict[str, list[Any]] = {
        "immediate": [immediate, claim(storage_class="s")],
        "claim goes": [_dying(bound), volume],
        "volume goes": [bound, _dying(volume)],
        "lost": [lost, waiting("w")],
        "not bound yet": [unbound, volume],
    }
    done = c.run(w.pool(), objects[why], using())
    assert (done.pending, done.nodes) == (["p"], ())
