"""What an operator meets: a missing permission, the webhook's certificate, a rolling update, a node that dies.

Two replicas of the controller run with the environment and the ServiceAccount that the chart gives them.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from kerf.kube.client import KubeClient
from kerf.ports import Forbidden
from kerf.runtime.secrets.certificates import LIFETIME, WebhookCertificate

from .control_plane import ControlPlane
from .installation import NAMESPACE, Installation

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
SECRET = "kerf-webhook-cert"
#: From the SIGTERM or the kill -9 until another replica acts: the process ends within a second, and a released lease is
#: taken at the next try (2 s), which leaves one for a busy machine; one that was not released runs out after 15 s.
HANDED_OVER, RUN_OUT = 4.0, 20.0


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Kerf as in a cluster, with a replica that waits, a node class, a pool, and two pods on a node."""
    folder = tmp_path_factory.mktemp("operations")
    with Installation(control_plane, folder, webhook=False, families=("c6a", "m6a")) as installation:
        installation.wait(lambda: installation.holder() != "", 30, "the first replica leads")
        installation.start_controller(name="standby")
        installation.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
        installation.kubectl("scale", "deployment/web", "--replicas=2")
        installation.wait(lambda: len(installation.running()) == 2, 60, "two pods run")
        yield installation
        installation.kubectl("scale", "deployment/web", "--replicas=0")
        installation.kubectl("delete", "nodeclaims", "--all", "--wait=false")
        installation.wait(lambda: not installation.get("nodeclaims"), 60, "all nodes are given back")


def test_who_is_called_at_night_sees_how_it_is_doing(kerf: Installation) -> None:
    """As in the pod, where only the debug port's address is another."""
    url = ("--url", f"http://127.0.0.1:{kerf.debug_port}")
    page = kerf.kerf("status", *url)
    print(f"\n{page}")
    found = json.loads(kerf.kerf("status", *url, "-o", "json"))
    assert found["problems"] == []
    assert found["replica"]["leader"] == kerf.holder()
    counts = found["working"]["counts"]
    assert counts["node_claims"] == len(kerf.get("nodeclaims")) == counts["instances"] > 0
    assert "log-level" not in kerf.tail("controller", 1000)
    assert kerf.kerf("debug", "log-level", "debug", "--for", "3s", *url) == "debug, for 3s\n"
    kerf.wait(lambda: "log level is as it was set" in kerf.tail("controller", 1000), 10, "the level is as it was")
    assert "thread MainThread" in kerf.kerf("debug", "threads", *url)


def test_what_is_told_in_the_log_links_to_events(kerf: Installation) -> None:
    """Lines, to the byte, of the nodes that have come so far; and an event that bears the ID of one of them."""
    lines = [line for line in kerf.tail("controller", 10_000).splitlines() if line.startswith("{")]
    told = {json.loads(line)["message"]: json.loads(line) for line in lines}
    assert all('","message":"' in line or '"caller"' in line for line in lines)
    for message in ("created", "launched", "registered", "initialized"):
        assert told[f"{message} nodeclaim"]["NodeClaim"]["name"], message
    looks = {json.loads(line).get("reconcileID") for line in lines}
    written = kerf.get("events", namespace="")
    ours = {event["metadata"].get("annotations", {}).get("kerf.sh/reconcile-id") for event in written}
    assert (ours - {None}) & looks


def test_when_the_leader_dies_the_other_replica_acts(kerf: Installation) -> None:
    leader = kerf.holder()
    kerf.kill_controller()
    before = {c["metadata"]["name"] for c in kerf.get("nodeclaims")}
    kerf.kubectl("scale", "deployment/web", "--replicas=10")
    seconds = kerf.wait(
        lambda: bool({c["metadata"]["name"] for c in kerf.get("nodeclaims")} - before), RUN_OUT, "the other one acts"
    )
    print(f"\nthe other replica acted after {seconds:.1f} s")
    assert kerf.holder() != leader
    kerf.start_controller()
    kerf.wait(lambda: kerf.readiness()[0] == 200, 30, "the new replica is ready")


def test_a_rolling_update_hands_the_lease_over(kerf: Installation) -> None:
    """There is work when it begins, and the other replica's own counter says that it did some of it."""
    assert "kerf_errors_total" in kerf.metrics()
    assert kerf.metric("kerf_actions_total") == 0
    leader = kerf.holder()
    kerf.kubectl("scale", "deployment/web", "--replicas=30")
    begun = time.monotonic()
    leaving = kerf.ask_to_stop("standby")
    kerf.wait(lambda: kerf.metric("kerf_actions_total") > 0, HANDED_OVER, "the other replica acts")
    print(f"\nthe other replica acted {time.monotonic() - begun:.1f} s after the SIGTERM")
    assert kerf.holder() not in ("", leader)
    assert leaving.wait(5) == 0
    kerf.wait(lambda: len(kerf.running()) == 30, 60, "all pods run")


def test_the_certificate_of_the_webhook_is_made_announced_and_renewed(kerf: Installation) -> None:
    kerf.wait(lambda: all(_bundles(kerf)), 30, "the configurations know a CA")
    first = _secret(kerf)
    assert set(_bundles(kerf)) == {first["ca.crt"]}
    certificate = x509.load_pem_x509_certificate(base64.b64decode(first["tls.crt"]))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert f"kerf-webhook.{NAMESPACE}.svc" in names.get_values_for_type(x509.DNSName)
    kube = KubeClient.from_kubeconfig(kerf.account())
    keeper = WebhookCertificate(kube, namespace=NAMESPACE, service="kerf-webhook", secret=SECRET, configuration="kerf")
    assert not keeper.keep(datetime.now(UTC))
    assert keeper.keep(datetime.now(UTC) + LIFETIME - timedelta(days=30))
    second = _secret(kerf)
    assert second["tls.crt"] != first["tls.crt"]
    assert set(_bundles(kerf)) == {second["ca.crt"]}
    assert base64.b64decode(first["ca.crt"]) in base64.b64decode(second["ca.crt"])
    others = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}
    with kerf.refused([others]), pytest.raises(Forbidden):
        kube.request("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets")


def test_without_leave_to_evict_a_drain_waits_and_says_why(kerf: Installation) -> None:
    rules = kerf.rules()
    kept = [rule for rule in rules if "pods/eviction" not in rule["resources"]]
    assert len(kept) < len(rules)
    with kerf.allowed_only(kept):
        claim, running = _busiest(kerf), kerf.running()
        kerf.kubectl("delete", "nodeclaim", claim, "--wait=false")
        kerf.wait(lambda: bool(kerf.events("FailedEvictPod")), 20, "an event tells of the missing permission")
        assert "pods/eviction" in kerf.events("FailedEvictPod")[0]
        time.sleep(2)
        assert kerf.running() == running
        assert claim in {c["metadata"]["name"] for c in kerf.get("nodeclaims")}
    took = kerf.wait(lambda: claim not in {c["metadata"]["name"] for c in kerf.get("nodeclaims")}, 60, "drained")
    print(f"\ndrained {took:.1f} s after the permission was given back")


def test_what_is_deleted_after_an_uninstall_waits_until_it_is_released(kerf: Installation) -> None:
    """The controllers are stopped here: the fixture wants the chart later. Nodes run on."""
    admin = ("--kubeconfig", str(kerf.control_plane.kubeconfig))
    assert kerf.kerf("release", "--yes", *admin, code=1) == ""
    stopped = [name for name in ("controller", "standby") if kerf.stop_controller(name) is not None]
    claim, running = _busiest(kerf), kerf.running()
    kerf.kubectl("delete", "nodeclaim", claim, "--wait=false")
    time.sleep(2)
    told = kerf.kerf("release", *admin)
    assert f"would remove karpenter.sh/termination from nodeclaim/{claim}, which waits for its deletion" in told
    assert claim in {c["metadata"]["name"] for c in kerf.get("nodeclaims")}
    print(f"\n{kerf.kerf('release', '--yes', *admin)}")
    assert claim not in {c["metadata"]["name"] for c in kerf.get("nodeclaims")}
    assert kerf.running() == running
    for name in stopped:
        kerf.start_controller(name=name)


# --- aids -------------------------------------------------------------------------------------------------------
def _busiest(kerf: Installation) -> str:
    """The claim whose node has the most pods."""
    nodes = [p["spec"].get("nodeName", "") for p in kerf.get("pods", selector="app=web")]
    claims = {c["status"].get("nodeName", ""): c["metadata"]["name"] for c in kerf.get("nodeclaims")}
    return str(claims[max(sorted(set(nodes)), key=nodes.count)])


def _secret(kerf: Installation) -> dict[str, str]:
    data: dict[str, str] = kerf.one("secret", SECRET, NAMESPACE)["data"]
    return data


def _bundles(kerf: Installation) -> list[str]:
    """The CA bundle of each webhook of the chart, empty where there is none."""
    kinds = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
    return [
        hook["clientConfig"].get("caBundle", "")
        for kind in kinds
        for configuration in kerf.get(kind)
        if configuration["metadata"]["name"] == "kerf"
        for hook in configuration["webhooks"]
    ]
