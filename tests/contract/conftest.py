"""The clusters on which the contract of the Kube port is tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.conftest import control_plane as control_plane
from tests.cluster.control_plane import ControlPlane

from .kube_clusters import Cluster, RealCluster, SandboxCluster

CRDS = Path(__file__).resolve().parents[2] / "api" / "crds"


@pytest.fixture(scope="session")
def real_cluster(control_plane: ControlPlane) -> RealCluster:
    client = pytest.importorskip("reconciler.kube.client")
    control_plane.kubectl("apply", *(part for path in sorted(CRDS.glob("*.yaml")) for part in ("-f", str(path))))
    control_plane.kubectl("wait", "--for=condition=Established", "crd", "--all")
    return RealCluster(client.KubeClient.from_kubeconfig(str(control_plane.kubeconfig)))


@pytest.fixture(params=["sandbox", pytest.param("real", marks=pytest.mark.cluster)])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    if request.param == "sandbox":
        return SandboxCluster()
    real: Cluster = request.getfixturevalue("real_cluster")
    return real


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses, short enough for a label."""
    text: str = request.node.originalname
    return text.removeprefix("test_").replace("_", "-")[:45].strip("-")
