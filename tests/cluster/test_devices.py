"""Devices by claim on the real control plane: its kube-scheduler allocates, the test publishes what a driver would."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .control_plane import ControlPlane
from .installation import Installation

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
DRIVER = "gpu.example.com"


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder, claims = tmp_path_factory.mktemp("devices"), {"settings.ignoreDRARequests": "false"}
    with Installation(control_plane, folder, webhook=False, families=("c6a",), values=claims) as installation:
        yield installation


def devices(node: str) -> dict[str, Any]:
    """Two GPUs of a node."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    two = [{"name": f"gpu-{i}", "capacity": {"memory": {"value": "24Gi"}}} for i in range(2)]
    return {"driver": DRIVER, "pool": pool, "devices": two}


def publish(kerf: Installation, node: str) -> None:
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-gpus"},
        "spec": {**devices(node), "nodeName": node},
    }
    kerf.kubectl("apply", "-f", "-", input_=json.dumps(body))


def initialized(kerf: Installation) -> list[str]:
    """The reasons of the claims' conditions Initialized, sorted."""
    found = (c for one in kerf.get("nodeclaims") for c in one.get("status", {}).get("conditions", []))
    return sorted(c["reason"] for c in found if c["type"] == "Initialized")


def names(kerf: Installation) -> set[str]:
    """The nodes of the claims; others may be left of another test."""
    found = (one.get("status", {}).get("nodeName") for one in kerf.get("nodeclaims"))
    return {name for name in found if name}


def test_nodes_come_with_the_devices_that_pods_claim(kerf: Installation) -> None:
    """The first of a type by what the annotation says, later ones by what is seen of it."""
    said = json.dumps([{"instanceTypes": ["c6a.xlarge"], "slices": [devices("gpus")]}])
    kerf.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
    kerf.kubectl("annotate", "ec2nodeclass", "--all", f"kerf.sh/device-templates={said}")
    kerf.kubectl("apply", "-f", str(HERE / "devices.yaml"))
    kerf.kubectl("scale", "deployment/trainer", "--replicas=2")
    kerf.wait(lambda: initialized(kerf) == ["DRADriverPoolsNotPublished"], 120, "the node waits for its driver")
    (claim,) = kerf.get("nodeclaims")
    assert claim["metadata"]["annotations"]["karpenter.sh/requested-dra-drivers"] == DRIVER
    (first,) = names(kerf)
    publish(kerf, first)
    kerf.wait(lambda: len(kerf.running("trainer")) == 2, 90, "2 pods run")
    assert initialized(kerf) == ["Initialized"]
    kerf.kubectl("annotate", "ec2nodeclass", "--all", "kerf.sh/device-templates-")
    kerf.kubectl("scale", "deployment/trainer", "--replicas=3")
    kerf.wait(lambda: len(names(kerf)) == 2, 120, "a second node joins")
    (second,) = names(kerf) - {first}
    publish(kerf, second)
    kerf.wait(lambda: len(kerf.running("trainer")) == 3, 90, "3 pods run")
    given = [
        (result["pool"], result["device"])
        for one in kerf.get("resourceclaims")
        for result in one["status"]["allocation"]["devices"]["results"]
    ]
    assert len(given) == len(set(given)) == 3
    assert {one["instance_type"] for one in kerf.running_instances()} == {"c6a.xlarge"}


def test_they_go_when_the_pods_have_gone(kerf: Installation) -> None:
    kerf.kubectl("scale", "deployment/trainer", "--replicas=0")
    kerf.wait(lambda: not kerf.get("nodeclaims") and not kerf.running_instances(), 120, "nothing is left")
    kerf.kubectl("delete", "resourceslices", "--all")
