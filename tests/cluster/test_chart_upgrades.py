"""Releases that become ours, become newer, and go: by Helm, on the real control plane, with pods that kwok runs."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.sources import ROOT

from .control_plane import ControlPlane
from .test_control_plane import ALLOCATABLE, create, get

pytestmark = pytest.mark.cluster

KARPENTERS: Final = Path(__file__).parent / "karpenter_chart"
VALUES: Final = ROOT / "tests/unit/charts/karpenter_values.yaml"
#: Kinds of what a release has of its own. What the controller and the API server make is no part of it.
KINDS: Final = (
    "deployments,services,serviceaccounts,poddisruptionbudgets,clusterroles,clusterrolebindings,roles,rolebindings,"
    "flowschemas,validatingwebhookconfigurations,mutatingwebhookconfigurations,networkpolicies"
)
#: Helm remembers the values, not the name that the chart had.
STAGING: Final = ("--reset-then-reuse-values", "--set", "nameOverride=karpenter")
#: Without a webhook process every write of a NodePool would wait for so long.
QUICK: Final = ("--set", "webhook.timeoutSeconds=1")


@pytest.fixture(scope="module")
def cluster(own_control_plane: ControlPlane) -> ControlPlane:
    """With nodes on which somebody's system pods run, in three zones."""
    create(own_control_plane, *(_node(zone) for zone in "abc"))
    return own_control_plane


def _node(zone: str) -> dict[str, Any]:
    labels = {
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": f"system-{zone}",
        "topology.kubernetes.io/zone": f"test-zone-1{zone}",
        "node-group": "system",
        "eks.amazonaws.com/nodegroup": "system",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"system-{zone}", "labels": labels},
        "spec": {"providerID": f"aws:///test-zone-1{zone}/i-system-{zone}"},
        "status": {"capacity": ALLOCATABLE, "allocatable": ALLOCATABLE},
    }


def objects(cluster: ControlPlane, release: str) -> dict[tuple[str, str], dict[str, Any]]:
    """All that belongs to a release, by kind and name."""
    found = get(cluster, KINDS, "-A", "-l", f"app.kubernetes.io/instance={release}")["items"]
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def uids(found: Mapping[tuple[str, str], Any]) -> dict[tuple[str, str], str]:
    return {name: one["metadata"]["uid"] for name, one in found.items()}


def rolled_out(cluster: ControlPlane, namespace: str, *names: str) -> None:
    for name in names:
        where = ("-n", namespace, "--timeout=60s")
        cluster.kubectl("rollout", "status", f"deployment/{name}", *where)


def images(cluster: ControlPlane, namespace: str, selector: Mapping[str, str]) -> set[str]:
    """Of the pods that are selected."""
    labels = ",".join(f"{key}={value}" for key, value in selector.items())
    pods = get(cluster, "pods", "-n", namespace, "-l", labels)["items"]
    alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    return {container["image"].partition(":")[0] for pod in alive for container in pod["spec"]["containers"]}


def at_commit(commit: str, folder: Path) -> Path:
    """The charts of a commit."""
    done = subprocess.run(("git", "archive", commit, "charts"), cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "charts"


def first_commit() -> str:
    """The one with which there was a chart; skips where the history does not go back so far."""
    log = ("git", "log", "--format=%H", "--diff-filter=A", "--", "charts/kerf/Chart.yaml")
    done = subprocess.run(log, cwd=ROOT, capture_output=True, text=True, check=False)
    if not done.stdout.split():
        pytest.skip("there is no history of the chart here")
    return done.stdout.split()[-1]


# --- from Karpenter ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("release", "namespace", "given", "again"),
    [
        ("karpenter", "kube-system", ("--values", str(VALUES)), ("--values", str(VALUES))),
        ("karpenter", "karpenter", ("--set", "settings.clusterName=test"), ("--reset-then-reuse-values",)),
        ("staging", "karpenter", ("--set", "settings.clusterName=test"), STAGING),
    ],
    ids=["in kube-system with values", "in a namespace of its own", "under another name"],
)
def test_a_release_of_karpenter_becomes_ours_in_place_and_goes_back(
    cluster: ControlPlane, release: str, namespace: str, given: tuple[str, ...], again: tuple[str, ...]
) -> None:
    """With the values that it had; the objects stay, the pods are replaced, and only what is ours comes or goes."""
    where = ("-n", namespace)
    cluster.helm("install", release, str(KARPENTERS), *where, "--create-namespace", *given)
    full = release if release == "karpenter" else f"{release}-karpenter"
    rolled_out(cluster, namespace, full)
    before = objects(cluster, release)
    cluster.helm("upgrade", release, str(ROOT / "charts/kerf"), *where, *again, *QUICK)
    rolled_out(cluster, namespace, full, f"{full}-webhook")
    after = objects(cluster, release)
    gone = {("ClusterRole", f"{full}-core"), ("ClusterRoleBinding", f"{full}-core")}
    gone |= {("PodDisruptionBudget", "karpenter")} if full != "karpenter" else set()
    assert {name: uid for name, uid in uids(before).items() if name not in gone}.items() <= uids(after).items()
    assert gone & after.keys() == set()
    selector = after["Service", full]["spec"]["selector"]
    assert selector == before["Service", full]["spec"]["selector"]
    wanted = {"kerf/controller"} | ({"example.com/proxy"} if str(VALUES) in again else set())
    assert images(cluster, namespace, selector) == wanted
    cluster.helm("rollback", release, "1", *where)
    rolled_out(cluster, namespace, full)
    assert uids(objects(cluster, release)).keys() == before.keys()
    assert images(cluster, namespace, selector) == {"public.ecr.aws/karpenter/controller"}
    cluster.helm("uninstall", release, *where, "--wait")
    assert objects(cluster, release) == {}


def test_the_defaults_of_karpenters_chart_are_not_taken_along(cluster: ControlPlane) -> None:
    """As `--reuse-values` would: the image is one of them."""
    cluster.helm("install", "karpenter", str(KARPENTERS), "--set", "settings.clusterName=test")
    refused = cluster.helm("upgrade", "karpenter", str(ROOT / "charts/kerf"), "--reuse-values", check=False)
    assert "this is Karpenter's program" in refused.stderr
    cluster.helm("uninstall", "karpenter", "--wait")


# --- of ours ----------------------------------------------------------------------------------------------------
def test_the_first_chart_becomes_the_present_one_and_goes_without_a_trace(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    where = ("-n", "kerf", "--create-namespace")
    first = at_commit(first_commit(), tmp_path)
    cluster.helm("install", "kerf", str(first / "kerf"), *where, "--set", "settings.clusterName=test")
    rolled_out(cluster, "kerf", "kerf")
    before = objects(cluster, "kerf")
    cluster.helm("upgrade", "kerf", str(ROOT / "charts/kerf"), *where, "--reset-then-reuse-values", *QUICK)
    rolled_out(cluster, "kerf", "kerf", "kerf-webhook")
    assert uids(before).items() <= uids(objects(cluster, "kerf")).items()
    cluster.helm("uninstall", "kerf", "-n", "kerf", "--wait")
    assert objects(cluster, "kerf") == {}


def test_definitions_stay_when_their_release_goes_and_are_taken_up_again(cluster: ControlPlane, tmp_path: Path) -> None:
    """Also those that the first chart installed, which went with it."""
    first, present = at_commit(first_commit(), tmp_path) / "kerf-crd", ROOT / "charts/kerf-crd"
    names = sorted(file.stem.partition("_")[2] + "." + file.stem.partition("_")[0] for file in present.glob("files/*"))
    cluster.helm("upgrade", "--install", "definitions", str(first))
    cluster.helm("upgrade", "definitions", str(present))
    before = {name: get(cluster, "crd", name)["metadata"]["uid"] for name in names}
    told = cluster.helm("uninstall", "definitions", "--wait").stdout
    assert all(name in told for name in names)
    cluster.helm("install", "definitions", str(present), "--set", "additionalAnnotations.example\\.com/owner=platform")
    for name in names:
        metadata = get(cluster, "crd", name)["metadata"]
        assert metadata["uid"] == before[name]
        assert metadata["annotations"]["example.com/owner"] == "platform"
    cluster.helm("upgrade", "definitions", str(present), "--set", "additionalAnnotations=null")
    cluster.helm("uninstall", "definitions", "--wait")
    assert [one["metadata"]["name"] for one in get(cluster, "crd")["items"] if one["metadata"]["name"] in names] == []
