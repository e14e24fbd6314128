"""`kerf status` and `kerf why` on the real control plane: each kind of trouble is named with its cause; exit code 1."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from .control_plane import ControlPlane
from .installation import LEASE, NAMESPACE, Installation

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
ROLE = "KarpenterNodeRole-not-there"


@pytest.fixture(scope="module")
def kerf(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """By itself, for it is asked whether all is well. A machine that stalls may cost the controller its lease."""
    folder = tmp_path_factory.mktemp("status")
    with Installation(own_control_plane, folder, webhook=False, kept_running=True) as installation:
        yield installation


def status(kerf: Installation, code: int, *arguments: str) -> str:
    return kerf.kerf("status", "--url", f"http://127.0.0.1:{kerf.debug_port}", *arguments, code=code)


def problems(kerf: Installation) -> list[dict[str, Any]]:
    """Of the controller, as JSON; an exit code of 1 goes with them."""
    try:
        found = json.loads(status(kerf, 1, "-o", "json"))
    except AssertionError:
        return []
    rows: list[dict[str, Any]] = found["problems"]
    return rows


def printed(kerf: Installation, *arguments: str) -> str:
    """Whether or not there is a problem."""
    try:
        return status(kerf, 1, *arguments)
    except AssertionError:
        return status(kerf, 0, *arguments)


def admin(kerf: Installation) -> tuple[str, str]:
    return "--kubeconfig", str(kerf.control_plane.kubeconfig)


def named(rows: list[dict[str, Any]], words: str) -> bool:
    return any(words in f"{row['object']}: {row['text']}" for row in rows)


def test_a_role_that_iam_does_not_have(kerf: Installation) -> None:
    stage = (HERE / "workloads.yaml").read_text(encoding="utf-8")
    kerf.kubectl("apply", "-f", "-", input_=stage.replace("role: KarpenterNodeRole", f"role: {ROLE}"))
    took = kerf.wait(lambda: named(problems(kerf), "RoleNotFound"), 60, "the missing role is named")
    page = status(kerf, 1)
    assert "! ec2nodeclass/default: is not Ready: InstanceProfileReady is False: RoleNotFound: iam:" in page
    assert "NoSuchEntity" in page
    assert "EnsureInstanceProfile fails" not in page
    assert "fix: create the role in IAM, or correct spec.role" in page
    kerf.wait(lambda: "RoleNotFound" in status(kerf, 1).partition("! nodepool/")[2], 20, "the NodePool repeats it")
    told = kerf.kerf("why", "nodepool", "general", *admin(kerf), "--cluster-name", "kerf-e2e")
    assert "InstanceProfileReady is False: RoleNotFound" in told
    print(f"\nthe missing role was named after {took:.1f} s")
    kerf.aws.client("iam").create_role(RoleName=ROLE, AssumeRolePolicyDocument="{}")
    kerf.wait(lambda: not problems(kerf), 180, "all is well when the role is there")


def test_a_healthy_cluster_has_a_short_page(kerf: Installation) -> None:
    kerf.kubectl("scale", "deployment/web", "--replicas=4")
    kerf.wait(lambda: len(kerf.running()) == 4, 180, "the pods run")
    page = status(kerf, 0)
    assert page.startswith("all is well\n")
    assert len(page.splitlines()) <= 12


def test_an_eviction_that_is_forbidden(kerf: Installation) -> None:
    kept = [rule for rule in kerf.rules() if "pods/eviction" not in rule["resources"]]
    claim = kerf.get("nodeclaims")[0]
    name, node = claim["metadata"]["name"], claim["status"]["nodeName"]
    with kerf.allowed_only(kept):
        kerf.kubectl("delete", "nodeclaim", name, "--wait=false")
        kerf.wait(lambda: named(problems(kerf), "EvictPod is forbidden"), 30, "the forbidden eviction is named")
        kerf.wait(lambda: "attempts]" in status(kerf, 1), 30, "the attempts are counted")
        page = status(kerf, 1)
        assert 'cannot create resource "pods/eviction"' in page
        assert "fix: give Kerf's account the rules of the chart's ClusterRole" in page

        def drained() -> dict[str, Any]:
            (one,) = [one for one in kerf.get("nodeclaims") if one["metadata"]["name"] == name]
            return next((c for c in one["status"]["conditions"] if c["type"] == "Drained"), {})

        kerf.wait(lambda: drained().get("reason") == "EvictionFailed", 20, "the condition says so")
        assert 'cannot create resource "pods/eviction"' in drained()["message"]
        told = kerf.kerf("why", "node", node, *admin(kerf), "--cluster-name", "kerf-e2e")
        assert "cannot be evicted: EvictPod is forbidden: " in told
        assert "is being evicted" not in told
        told = kerf.kerf("why", "nodeclaim", name, *admin(kerf), "--cluster-name", "kerf-e2e")
        assert "cannot be evicted: EvictPod is forbidden: " in told
    kerf.wait(lambda: name not in {c["metadata"]["name"] for c in kerf.get("nodeclaims")}, 90, "drained")
    kerf.wait(lambda: len(kerf.running()) == 4 and not problems(kerf), 120, "all is well again")


def test_pods_that_no_node_can_take(kerf: Installation) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "huge", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "c", "resources": {"requests": {"cpu": "9000"}}}]},
    }
    kerf.kubectl("apply", "-f", "-", input_=json.dumps(pod))
    kerf.wait(lambda: named(problems(kerf), "pod/default/huge: has no place"), 90, "the pod is named with the cause")
    assert "fix: kerf why pod default/huge shows the cause and what helps" in status(kerf, 1)
    seen = kerf.kerf("status", *admin(kerf), code=1)
    assert "! pod/default/huge: has no place: the kube-scheduler reports: 0/" in seen
    assert "source    the API server: --kubeconfig or --context names the cluster" in seen
    kerf.kubectl("delete", "pod", "huge", "--wait=false")
    kerf.wait(lambda: not problems(kerf), 60, "all is well without it")


def test_a_controller_that_is_gone_and_one_in_a_crash_loop(kerf: Installation) -> None:
    """No kubelet runs the chart's pods here: their status is written as a kubelet would."""
    kerf.stop_controller()
    page = status(kerf, 1, *admin(kerf))
    assert "! deployment/kerf/kerf: 0 of" in page
    assert f"! lease/{NAMESPACE}/{LEASE}: no replica has it: nothing is decided" in page
    assert "source    the API server: no controller answers at" in page
    name = next(p["metadata"]["name"] for p in kerf.get("pods", namespace=NAMESPACE, selector=_CONTROLLER))
    ended = {"exitCode": 2, "reason": "Error", "finishedAt": _ago(seconds=30), "message": "CLUSTER_NAME is required"}
    row = {
        "name": "controller",
        "image": "kerf",
        "imageID": "",
        "ready": False,
        "restartCount": 6,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting"}},
        "lastState": {"terminated": ended},
    }
    patch = {"status": {"phase": "Running", "containerStatuses": [row]}}
    where = ("-n", NAMESPACE, "--subresource=status", "--type=merge")
    kerf.kubectl("patch", "pod", name, *where, "-p", json.dumps(patch))
    page = status(kerf, 1, *admin(kerf))
    assert (
        f"! pod/{NAMESPACE}/{name}: container controller is waiting: CrashLoopBackOff: back-off 5m0s restarting" in page
    )
    assert "last ended with exit code 2 (Error)" in page
    assert "CLUSTER_NAME is required; 6 restarts" in page
    assert f"fix: kubectl logs -n {NAMESPACE} {name} -c controller --previous" in page
    found = json.loads(status(kerf, 1, "-o", "json", *admin(kerf)))
    assert {row["code"] for row in found["problems"]} >= {"NotRunning", "NoLeader"}


def test_permissions_that_the_caller_lacks_are_named(kerf: Installation) -> None:
    """The controller's own account may list neither Deployments nor events."""
    kerf.stop_controller()
    asked = ("-n", NAMESPACE, "--kubeconfig", str(kerf.account()))
    with kerf.refused([_may(("apps",), "deployments"), _may(("",), "events")]):
        page = printed(kerf, *asked)
    assert f"not checked: Kerf's Deployment: needs permission to list deployments in namespace {NAMESPACE}" in page
    assert "not checked: actions that fail: needs permission to list events in all namespaces" in page


_CONTROLLER = "app.kubernetes.io/component=controller"


def _may(groups: tuple[str, ...], resource: str) -> dict[str, Any]:
    return {"apiGroups": list(groups), "resources": [resource], "verbs": ["list"]}


def _ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
