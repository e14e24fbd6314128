"""Is the control plane for tests really one? Each test here is a promise on which the cluster tests build."""

from __future__ import annotations

import base64
import http.server
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .binaries import kubernetes_version
from .certificates import CertificateAuthority
from .control_plane import ControlPlane
from .objects import NotReadError
from .stages import COMPLETES_AFTER, NOT_READY, STOPPED_LABEL, STOPS_AFTER

pytestmark = pytest.mark.cluster

ALLOCATABLE = {"cpu": "4", "memory": "16Gi", "pods": "110"}
TAINT = {"key": "kerf.test/dedicated", "value": "yes", "effect": "NoSchedule"}
TOLERATION = {"key": TAINT["key"], "operator": "Exists"}
WAIT_SECONDS = 30.0


def create(cluster: ControlPlane, *objects: dict[str, Any]) -> None:
    listing = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    cluster.kubectl("create", "-f", "-", input=json.dumps(listing))


def get(cluster: ControlPlane, *what: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(cluster.kubectl("get", *what, "-o", "json").stdout)
    return answer


def eventually(holds: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "did not come true in time"
        time.sleep(0.2)


def node(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": "test-zone-1a", "pool": name}},
        "spec": {"providerID": f"aws:///test-zone-1a/i-{name}", "taints": [TAINT]},
        "status": {
            "capacity": ALLOCATABLE,
            "allocatable": ALLOCATABLE,
            "addresses": [{"type": "InternalIP", "address": "10.0.7.7"}],
        },
    }


def pod_template(app: str, pool: str, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "example.test/pause", "resources": {"requests": {"cpu": "100m"}}}]
    placed = {"nodeSelector": {"pool": pool}, "tolerations": [TOLERATION], "containers": containers}
    return {"metadata": {"labels": {"app": app}, "annotations": annotations or {}}, "spec": {**placed, **spec}}


def workload(kind: str, app: str, pool: str, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    template = pod_template(app, pool, annotations)
    selector = {"matchLabels": {"app": app}}
    body = {"selector": selector, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": app}, "spec": body}


def pods(cluster: ControlPlane, app: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = get(cluster, "pods", "-l", f"app={app}")["items"]
    return items


def running(cluster: ControlPlane, app: str) -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in pods(cluster, app)
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]


def ready_status(cluster: ControlPlane, name: str) -> str | None:
    conditions = get(cluster, "node", name)["status"].get("conditions", [])
    return next((str(condition["status"]) for condition in conditions if condition["type"] == "Ready"), None)


def evict(cluster: ControlPlane, pod: str) -> str:
    """Ask for an eviction; return the server's refusal, or nothing."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "default"}}
    url = f"/api/v1/namespaces/default/pods/{pod}/eviction"
    return cluster.kubectl("create", "--raw", url, "-f", "-", "-v=8", input=json.dumps(eviction), check=False).stderr


@pytest.fixture(scope="module")
def pool(control_plane: ControlPlane) -> str:
    """The name of a Ready node, which its `pool` label carries too."""
    create(control_plane, node("first"))
    control_plane.kubectl("wait", "node/first", "--for=condition=Ready", "--timeout=30s")
    return "first"


@pytest.mark.parametrize("kinds", ["namespaces", "namespace", "ns", "services,endpointslices", "events"])
def test_objects_are_those_that_kubectl_reads(control_plane: ControlPlane, kinds: str) -> None:
    found = control_plane.objects.list(kinds, namespace="")
    names = [[one["apiVersion"], one["kind"], one["metadata"]["name"]] for one in found]
    read = get(control_plane, kinds, "--all-namespaces")["items"]
    assert sorted(names) == sorted([one["apiVersion"], one["kind"], one["metadata"]["name"]] for one in read)


def test_objects_are_those_of_the_namespace_and_the_selector(control_plane: ControlPlane) -> None:
    labelled = {"selector": "component=apiserver"}
    assert [one["metadata"]["name"] for one in control_plane.objects.list("services", **labelled)] == ["kubernetes"]
    assert not control_plane.objects.list("services", namespace="kube-public", **labelled)
    assert not control_plane.objects.list("services", selector="component=none")


def test_what_is_not_there_is_said(control_plane: ControlPlane) -> None:
    with pytest.raises(NotReadError, match="no kind gadgets"):
        control_plane.objects.list("gadgets")
    with pytest.raises(NotReadError, match=r'404 .*services \\"none\\" not found'):
        control_plane.objects.read("service", "none")


def test_is_the_pinned_version(control_plane: ControlPlane) -> None:
    versions = json.loads(control_plane.kubectl("version", "-o", "json").stdout)
    assert versions["serverVersion"]["gitVersion"] == kubernetes_version()


def test_node_becomes_ready_as_it_was_registered(control_plane: ControlPlane, pool: str) -> None:
    seen = get(control_plane, "node", pool)
    asked = node(pool)
    assert seen["status"]["allocatable"] == seen["status"]["capacity"] == ALLOCATABLE
    assert seen["metadata"]["labels"].items() >= asked["metadata"]["labels"].items()
    assert seen["spec"]["providerID"] == asked["spec"]["providerID"]
    eventually(lambda: get(control_plane, "node", pool)["spec"]["taints"] == [TAINT])
    assert asked["status"]["addresses"][0] in seen["status"]["addresses"]
    lease = get(control_plane, "lease", pool, "-n", "kube-node-lease")
    assert lease["metadata"]["ownerReferences"][0]["name"] == pool


def test_budget_blocks_eviction_and_deletion_takes_its_time(control_plane: ControlPlane, pool: str) -> None:
    create(control_plane, workload("Deployment", "web", pool, {STOPS_AFTER: "3"}, replicas=3))
    eventually(lambda: len(running(control_plane, "web")) == 3)
    assert {pod["spec"]["nodeName"] for pod in pods(control_plane, "web")} == {pool}
    assert len({pod["status"]["podIP"] for pod in pods(control_plane, "web")}) == 3
    budget = {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 0}
    create(
        control_plane,
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": budget},
    )
    victim = running(control_plane, "web")[0]
    eventually(lambda: get(control_plane, "pdb", "web")["status"].get("expectedPods") == 3)
    assert "429 Too Many Requests" in evict(control_plane, victim)

    control_plane.kubectl("delete", "pdb", "web")
    began = time.monotonic()
    assert "429 Too Many Requests" not in evict(control_plane, victim)
    assert victim in [pod["metadata"]["name"] for pod in pods(control_plane, "web")]  # it stops, and is still there
    control_plane.kubectl("wait", f"pod/{victim}", "--for=delete", "--timeout=20s")
    assert time.monotonic() - began > 1.5
    eventually(lambda: len(running(control_plane, "web")) == 3)
    control_plane.kubectl("delete", "deployment", "web")
    eventually(lambda: pods(control_plane, "web") == [])


def test_daemonset_pod_lands_on_the_node(control_plane: ControlPlane, pool: str) -> None:
    create(control_plane, workload("DaemonSet", "agent", pool))
    eventually(lambda: len(running(control_plane, "agent")) == 1)
    assert pods(control_plane, "agent")[0]["spec"]["nodeName"] == pool


def test_job_completes_when_told_to(control_plane: ControlPlane, pool: str) -> None:
    template = pod_template("batch", pool, {COMPLETES_AFTER: "1"}, restartPolicy="Never")
    create(
        control_plane,
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "batch"}, "spec": {"template": template}},
    )
    control_plane.kubectl("wait", "job/batch", "--for=condition=Complete", "--timeout=30s")


def test_evicted_job_pod_fails_and_is_replaced(control_plane: ControlPlane, pool: str) -> None:
    template = pod_template("steady", pool, restartPolicy="Never")
    create(
        control_plane,
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "steady"}, "spec": {"template": template}},
    )
    eventually(lambda: len(running(control_plane, "steady")) == 1)
    first = running(control_plane, "steady")
    evict(control_plane, first[0])
    eventually(lambda: len(running(control_plane, "steady")) == 1 and running(control_plane, "steady") != first)
    control_plane.kubectl("delete", "job", "steady", "--timeout=20s")


def test_a_kubelet_can_be_unhealthy_or_gone(control_plane: ControlPlane) -> None:
    create(control_plane, node("second"))
    eventually(lambda: ready_status(control_plane, "second") == "True")
    control_plane.kubectl("annotate", "node", "second", f"{NOT_READY}=true")
    eventually(lambda: ready_status(control_plane, "second") == "False")
    control_plane.kubectl("annotate", "node", "second", f"{NOT_READY}-")
    eventually(lambda: ready_status(control_plane, "second") == "True")

    control_plane.kubectl("label", "node", "second", f"{STOPPED_LABEL}=true")
    create(control_plane, workload("Deployment", "waiting", "second", replicas=1))
    eventually(lambda: any("nodeName" in pod["spec"] for pod in pods(control_plane, "waiting")))
    time.sleep(2)
    assert running(control_plane, "waiting") == []
    control_plane.kubectl("label", "node", "second", f"{STOPPED_LABEL}-")
    eventually(lambda: len(running(control_plane, "waiting")) == 1)
    control_plane.kubectl("delete", "deployment/waiting", "node/second")


def test_service_account_has_only_the_rights_it_was_given(control_plane: ControlPlane, tmp_path: Path) -> None:
    control_plane.kubectl("create", "serviceaccount", "nobody")
    config = control_plane.service_account_kubeconfig("default", "nobody", tmp_path / "nobody.kubeconfig")
    listing = control_plane.kubectl("--kubeconfig", str(config), "get", "nodes", check=False)
    assert "Forbidden" in listing.stderr
    assert "system:serviceaccount:default:nobody" in listing.stderr

    control_plane.kubectl("create", "clusterrole", "see-nodes", "--verb=list", "--resource=nodes")
    binding = ("create", "clusterrolebinding", "see-nodes", "--clusterrole=see-nodes")
    control_plane.kubectl(*binding, "--serviceaccount=default:nobody")
    eventually(lambda: control_plane.kubectl("--kubeconfig", str(config), "get", "nodes", check=False).returncode == 0)


def test_webhook_on_the_loopback_interface_is_called(control_plane: ControlPlane, tmp_path: Path) -> None:
    with refusing_webhook(tmp_path) as (url, ca_bundle):
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        webhook = {
            "name": "refuse.kerf.test",
            "clientConfig": {"url": url, "caBundle": ca_bundle},
            "rules": [rule],
            "objectSelector": {"matchLabels": {"refuse": "me"}},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
        create(control_plane, {**kind, "metadata": {"name": "refuse"}, "webhooks": [webhook]})
        eventually(lambda: "refused by the test" in create_marked_config_map(control_plane))
        control_plane.kubectl("delete", "validatingwebhookconfiguration", "refuse")


def test_restarts_lose_nothing(control_plane: ControlPlane, pool: str) -> None:
    before = get(control_plane, "node", pool)["metadata"]["uid"]
    control_plane.restart_apiserver()
    control_plane.restart_etcd()
    assert get(control_plane, "node", pool)["metadata"]["uid"] == before
    create(control_plane, workload("Deployment", "later", pool, replicas=2))
    eventually(lambda: len(running(control_plane, "later")) == 2, seconds=60)
    control_plane.check()


def create_marked_config_map(cluster: ControlPlane) -> str:
    """Create a config map that the webhook selects, as a dry run; return the error, if any."""
    metadata = {"name": "marked", "labels": {"refuse": "me"}}
    config_map = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    return cluster.kubectl("create", "--dry-run=server", "-f", "-", input=config_map, check=False).stderr


class _Refusal(http.server.BaseHTTPRequestHandler):
    """Answers every admission review with no."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        verdict = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": "refused by the test"}}
        body = json.dumps(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": verdict}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the base class
        """Say nothing."""


@contextmanager
def refusing_webhook(folder: Path) -> Iterator[tuple[str, str]]:
    """Serve `_Refusal` over TLS; yield its URL and the CA bundle as webhook configurations want it."""
    authority = CertificateAuthority(folder)
    pair = authority.server("webhook")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Refusal)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        bundle = base64.b64encode(authority.certificate.read_bytes()).decode()
        yield f"https://127.0.0.1:{server.server_address[1]}/", bundle
    finally:
        server.shutdown()
        server.server_close()
