"""Where pods are told their node, the controller's account may write a pod's `status.nominatedNodeName` and no more."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from kerf.kube.client import KubeClient
from kerf.model.kinds import Ref
from kerf.ports import PortError

from .control_plane import ControlPlane
from .installation import Installation

pytestmark = pytest.mark.cluster

POLICY: Final = "kerf-pod-status"
POD: Final = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "told", "labels": {"app": "told"}, "annotations": {"a": "b"}},
    "spec": {
        "schedulerName": "nobody",
        "containers": [
            {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": "1"}}}
        ],
    },
}
WAITS: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}

STATUSES: Final = (
    {"phase": "Running"},
    {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]},
    {"conditions": [{**WAITS, "message": "all is well"}]},
    {"conditions": None},
    {"nominatedNodeName": "node-c", "message": "told"},
    {"containerStatuses": [{"name": "main", "ready": True, "image": "", "imageID": "", "restartCount": 0}]},
)
METADATA: Final = (
    {"labels": {"app": "other"}},
    {"labels": {"team": "x"}},
    {"annotations": None},
    {"annotations": {"a": "c"}},
    {"finalizers": ["example.com/stays"]},
)


class Told:
    """A pod that waits, and the controller's account."""

    def __init__(self, kerf: Installation) -> None:
        self.kerf = kerf
        self._account = KubeClient.from_kubeconfig(kerf.account())

    def now(self) -> dict[str, Any]:
        return self.kerf.one("pod", "told")

    def patched(self, patch: dict[str, Any]) -> str:
        """Patch its status as the controller does; why that was refused, empty when it was not."""
        try:
            self._account.patch(Ref("Pod", "default", "told"), patch, subresource="status")
        except PortError as refusal:
            return str(refusal)
        return ""

    def patched_by_others(self, patch: dict[str, Any], *flags: str) -> None:
        text = json.dumps(patch)
        self.kerf.kubectl("patch", "pod", "told", "--subresource=status", "--type=merge", "-p", text, *flags)


@pytest.fixture(scope="module")
def told(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    values, folder = {"settings.nominatePods": "true"}, tmp_path_factory.mktemp("status")
    with Installation(control_plane, folder, webhook=False, controller=False, values=values) as kerf:
        kerf.kubectl("create", "-f", "-", input_=json.dumps(POD))
        pod = Told(kerf)
        pod.patched_by_others({"status": {"conditions": [WAITS]}})
        attempts = itertools.count()  # an attempt that is let through makes the same status no change
        kerf.wait(
            lambda: POLICY in pod.patched({"status": {"reason": f"attempt-{next(attempts)}"}}),
            30,
            "the policy is followed",
        )
        pod.patched_by_others({"status": {"reason": None}})
        yield pod
        kerf.kubectl("delete", "pod", "told", "--wait=false")


def test_the_api_server_understands_the_expressions(told: Told) -> None:
    def checked() -> dict[str, Any]:
        policy = told.kerf.one("validatingadmissionpolicy", POLICY)
        return dict(policy.get("status", {}))

    told.kerf.wait(lambda: "typeChecking" in checked(), 30, "the expressions are checked")
    assert checked()["typeChecking"] == {}


def test_a_pod_is_told_its_node_and_another(told: Told) -> None:
    for name in ("node-a", "node-b", None):
        assert told.patched({"status": {"nominatedNodeName": name}}) == ""
        assert told.now()["status"].get("nominatedNodeName") == name


@pytest.mark.parametrize("status", STATUSES, ids=json.dumps)
def test_no_other_field_of_the_status_is_written(told: Told, status: dict[str, Any]) -> None:
    before = told.now()
    assert "of a pod's status this account may change nominatedNodeName alone" in told.patched({"status": status})
    assert told.now() == before
    told.patched_by_others({"status": status}, "--dry-run=server")


@pytest.mark.parametrize("metadata", METADATA, ids=json.dumps)
def test_no_metadata_is_written_with_the_status(told: Told, metadata: dict[str, Any]) -> None:
    before = told.now()
    patch = {"metadata": metadata, "status": {"nominatedNodeName": "node-c"}}
    assert "of a pod's metadata this account may change nothing" in told.patched(patch)
    assert told.now() == before
