"""What the real kube-scheduler counts of pods: host ports of sidecars, and requests of a pod that is being resized."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .control_plane import ControlPlane
from .installation import Installation

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
#: Consolidation looks at the nodes several times meanwhile.
QUIET_SECONDS = 15.0


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("facts")
    with Installation(control_plane, folder, webhook=False, families=("c6a",)) as installation:
        installation.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
        installation.kubectl("apply", "-f", str(HERE / "facts_of_pods.yaml"))
        yield installation


def hosts(kerf: Installation, app: str) -> list[str]:
    """The nodes of an app's pods that run, sorted."""
    pods = kerf.get("pods", selector=f"app={app}")
    return sorted(pod["spec"]["nodeName"] for pod in pods if pod["status"].get("phase") == "Running")


def gone(kerf: Installation) -> bool:
    return not kerf.get("nodeclaims") and not kerf.running_instances()


def test_pods_whose_sidecars_have_the_same_host_port_get_a_node_each(kerf: Installation) -> None:
    kerf.kubectl("scale", "deployment/mesh", "--replicas=3")
    kerf.wait(lambda: len(hosts(kerf, "mesh")) == 3, 150, "3 pods run")
    assert len(set(hosts(kerf, "mesh"))) == 3
    kerf.kubectl("scale", "deployment/mesh", "--replicas=0")
    kerf.wait(lambda: gone(kerf), 120, "nothing is left")


def test_what_a_resize_has_not_freed_yet_is_not_free(kerf: Installation) -> None:
    """One pod is resized from 1500m to 200m, and its kubelet has not acted on it: another of 1 CPU gets a node."""
    kerf.kubectl("scale", "deployment/resized", "--replicas=1")
    kerf.wait(lambda: len(hosts(kerf, "resized")) == 1, 150, "the pod runs")
    (pod,) = (one["metadata"]["name"] for one in kerf.get("pods", selector="app=resized"))
    before = {"cpu": "1500m", "memory": "64Mi"}
    rows = [
        {"op": "add", "path": "/status/containerStatuses/0/resources", "value": {"requests": before}},
        {"op": "add", "path": "/status/containerStatuses/0/allocatedResources", "value": before},
    ]
    kerf.kubectl("patch", "pod", pod, "--subresource=status", "--type=json", f"--patch={json.dumps(rows)}")
    smaller = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "200m"}}}]}}
    kerf.kubectl("patch", "pod", pod, "--subresource=resize", f"--patch={json.dumps(smaller)}")
    kerf.kubectl("scale", "deployment/beside", "--replicas=1")
    kerf.wait(lambda: len(hosts(kerf, "beside")) == 1, 150, "the other pod runs")
    before_quiet = kerf.running("beside")
    time.sleep(QUIET_SECONDS)
    assert kerf.running("beside") == before_quiet
    assert hosts(kerf, "beside") != hosts(kerf, "resized")
    kerf.kubectl("scale", "deployment/resized", "deployment/beside", "--replicas=0")
    kerf.wait(lambda: gone(kerf), 120, "nothing is left")
