"""Karpenter's controller with its KWOK provider, which makes nodes out of nothing: a peer for whole clusters.

It is the program that Karpenter's own module has, of the version that `karpenter/go.mod` pins. Its types and prices
come from a file of ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.peers.controller import Peer, PeerController
from benchmarks.peers.karpenter import SOURCES, Target
from tests.cluster.control_plane import ControlPlane

Json = dict[str, Any]
MODULE: Final = "sigs.k8s.io/karpenter"
TARGET: Final = Target(f"{MODULE}/kwok", "karpenter-kwok", "Karpenter's controller")
#: The second folder has the kind of the provider itself.
KWOK: Final = Peer(SOURCES, MODULE, TARGET, ("pkg/apis/crds", "kwok/apis/crds"))
GROUP, NODE_CLASS_KIND = "karpenter.kwok.sh", "KWOKNodeClass"
#: What the provider holds back of each type's resources.
_KEPT_CPU_MILLIS, _KEPT_MEMORY_MIB = 100, 10


def instance_types(rows: Iterable[Json]) -> list[Json]:
    """A catalogue (see `benchmarks.workloads`) as the provider reads it: pods can have of each type what they can have
    by the catalogue."""
    return [_instance_type(row) for row in rows]


def _instance_type(row: Json) -> Json:
    room = row["allocatable"]
    resources = {
        "cpu": f"{room['cpu'] + _KEPT_CPU_MILLIS}m",
        "memory": f"{room['memory'] + _KEPT_MEMORY_MIB}Mi",
        "pods": str(room["pods"]),
    }
    return {
        "name": row["name"],
        "architecture": row["arch"],
        "operatingSystems": [row["os"]],
        "resources": resources,
        "offerings": [_offering(one) for one in row["offerings"]],
    }


def _offering(one: Json) -> Json:
    found = {"karpenter.sh/capacity-type": one["capacityType"], "topology.kubernetes.io/zone": one["zone"]}
    requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in found.items()]
    return {"Price": one["price"], "Available": one["available"], "Requirements": requirements}


def kwok_controller(cluster: ControlPlane, folder: Path, rows: Sequence[Json]) -> PeerController:
    """The controller, which sells the types of a catalogue (see `benchmarks.workloads`)."""
    types = folder / "instance-types.json"
    types.write_text(json.dumps(instance_types(rows)))
    return PeerController(cluster, folder, KWOK, {"INSTANCE_TYPES_FILE_PATH": str(types)})


def node_class(boot_seconds: int) -> Json:
    """Each node appears `boot_seconds` after its claim was launched."""
    spec = {"nodeRegistrationDelay": f"{boot_seconds}s"}
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": NODE_CLASS_KIND, "metadata": {"name": "default"}, "spec": spec}
