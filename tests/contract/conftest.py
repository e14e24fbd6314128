"""The clusters and accounts on which ports' contracts are tried, and the list of what only the real side covers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kerf.kube.client import KubeClient
from tests.cluster.conftest import control_plane as control_plane
from tests.cluster.control_plane import ControlPlane
from tests.cluster.moto_aws import MotoAws

from . import sides
from .cloud_accounts import Account, MotoAccount, SandboxAccount
from .kube_clusters import Cluster, RealCluster, SandboxCluster

CRDS = Path(__file__).resolve().parents[2] / "api" / "kerf_api" / "crds"
HERE = Path(__file__).parent
_LIST = pytest.StashKey[list[str]]()


# --- the clusters and accounts ----------------------------------------------------------------------------------
@pytest.fixture(scope="session")
def served(control_plane: ControlPlane) -> ControlPlane:
    """The control plane with our definitions."""
    control_plane.kubectl("apply", *(part for path in sorted(CRDS.glob("*.yaml")) for part in ("-f", str(path))))
    control_plane.kubectl("wait", "--for=condition=Established", "crd", "--all")
    return control_plane


@pytest.fixture(scope="session")
def real_cluster(served: ControlPlane) -> RealCluster:
    return RealCluster(KubeClient.from_kubeconfig(str(served.kubeconfig)))


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


@pytest.fixture(scope="module")
def aws() -> Iterator[MotoAws]:
    """An AWS with few instance types, for what only the real adapter can be asked."""
    with MotoAws(families=("c5", "m5")) as running:
        yield running


@pytest.fixture
def real(aws: MotoAws) -> MotoAccount:
    """The real adapter on it, with full shelves."""
    return MotoAccount(aws)


@pytest.fixture(scope="package")
def moto() -> Iterator[MotoAws]:
    """An AWS with many instance types, one for all the tests of the Cloud port that both sides get."""
    with MotoAws() as running:
        yield running


@pytest.fixture(params=["sandbox", "aws"])
def account(request: pytest.FixtureRequest) -> Account:
    if request.param == "sandbox":
        return SandboxAccount()
    return MotoAccount(request.getfixturevalue("moto"))


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    """A launch group that no other test uses; a client token has at most 64 characters."""
    name: str = request.node.originalname
    return name[5:60]


# --- what only the real side covers -----------------------------------------------------------------------------
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{sides.MARKER}(why): a contract case that has no twin in the sandbox")


@pytest.hookimpl(tryfirst=True)  # before a tier's choice leaves some of them out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mine = [item for item in items if item.path.parent == HERE]
    config.stash[_LIST] = sides.report(sides.reasons(mine), sides.on_both(mine)) if mine else []


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist hands its list over; all workers have the same."""
    output: Any = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["contract"] = session.config.stash.get(_LIST, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    if told := (getattr(node, "workeroutput", None) or {}).get("contract"):
        node.config.stash[_LIST] = told


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if lines := config.stash.get(_LIST, []):
        terminalreporter.section("contract")
        for line in lines:
            terminalreporter.line(line)
