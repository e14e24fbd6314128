"""The chart on an API server that judges all of it, and what `helm test` asks put to processes that run."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.sources import ROOT

from .charts import Helm, Objects
from .control_plane import ControlPlane
from .installation import LEASE, NAMESPACE, Installation
from .test_control_plane import eventually

pytestmark = pytest.mark.cluster

KARPENTERS_VALUES = ROOT / "tests/unit/charts/karpenter_values.yaml"
#: Of the chart's kinds those that no API server knows by itself.
OTHERS = ("ServiceMonitor", "Certificate", "Issuer")
RESTRICTED = "pod-security.kubernetes.io/warn=restricted"


@pytest.fixture(scope="module")
def kerf(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with Installation(own_control_plane, tmp_path_factory.mktemp("kerf")) as installation:
        yield installation


# --- helm test --------------------------------------------------------------------------------------------------
def probe(kerf: Installation, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command of the pod of `helm test`, told of this machine's ports instead of the Service's."""
    pod = yaml.safe_load(kerf.helm("get", "hooks", "kerf", "-n", NAMESPACE))
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    (container,) = pod["spec"]["containers"]
    program, *arguments = container["command"]
    assert program == "python"
    told = {row["name"]: row["value"] for row in container["env"]}
    told["PROBE_METRICS"] = told["PROBE_METRICS"].replace("kerf.kerf.svc:8080", f"127.0.0.1:{kerf.metrics_port}")
    command = (sys.executable, *arguments)
    environment = {**os.environ, **told, **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=180)


def test_what_helm_test_asks_is_answered(kerf: Installation) -> None:
    done = probe(kerf)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.rpartition(": ")[2] for line in done.stdout.splitlines()] == ["ok", "ok"]


@pytest.mark.parametrize("what", ["PROBE_METRICS", "PROBE_WEBHOOK"])
def test_it_fails_when_one_does_not_answer(kerf: Installation, what: str) -> None:
    done = probe(kerf, **{what: "https://127.0.0.1:1/", "PROBE_SECONDS": "1"})
    assert done.returncode == 1
    assert done.stderr.startswith("https://127.0.0.1:1/: ")


def test_it_fails_when_the_webhook_cannot_be_trusted_or_lets_all_pass(kerf: Installation) -> None:
    done = probe(kerf, PROBE_CA="", PROBE_SECONDS="0")
    assert (done.returncode, "CERTIFICATE_VERIFY_FAILED" in done.stderr) == (1, True)
    defaulting = kerf.one("mutatingwebhookconfiguration", "kerf")
    url = defaulting["webhooks"][0]["clientConfig"]["url"].replace("/mutate", "/healthz")
    assert probe(kerf, PROBE_WEBHOOK=url, PROBE_SECONDS="0").returncode == 1


def test_the_notes_say_what_to_do_next_and_what_to_mind(kerf: Installation) -> None:
    """The definitions are there, and a queue; how much the controller may use has not been said."""
    notes = kerf.helm("get", "notes", "kerf", "-n", NAMESPACE)
    assert "helm test kerf -n kerf " in notes
    assert "controller.resources is empty" in notes
    assert "eks.amazonaws.com/role-arn" in notes
    assert not any(word in notes for word in ("definitions are not there", "interruptionQueue", "serviceMonitor"))


# --- rights and priority ----------------------------------------------------------------------------------------
def may(kerf: Installation, role: str, verb: str, kind: str) -> bool:
    who = ("--as", f"{role}er", "--as-group", "system:authenticated")
    return kerf.control_plane.kubectl("auth", "can-i", verb, kind, *who, check=False).stdout.startswith("yes")


def test_the_clusters_own_roles_hold_our_kinds(kerf: Installation) -> None:
    roles = ("admin", "edit", "view")
    for role in roles:
        kerf.kubectl("create", "clusterrolebinding", f"{role}er", f"--clusterrole={role}", f"--user={role}er")
    eventually(lambda: may(kerf, "view", "list", "nodepools.karpenter.sh"))
    kinds = ("nodepools", "nodeclaims", "nodeoverlays", "ec2nodeclasses", "capacitybuffers")
    assert {(role, kind) for role in roles for kind in kinds if may(kerf, role, "update", kind)} == {
        *(("admin", kind) for kind in kinds),
        ("edit", "capacitybuffers"),
    }
    assert [kind for kind in kinds if not may(kerf, "view", "watch", kind)] == []


def test_requests_of_the_controller_go_before_those_of_workloads(kerf: Installation) -> None:
    schemas = {one["metadata"]["uid"]: one["metadata"]["name"] for one in kerf.get("flowschemas")}
    config = yaml.safe_load(kerf.account().read_text(encoding="utf-8"))
    token = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
    context = ssl.create_default_context(cafile=str(kerf.control_plane.ca_file))
    told = {}
    for path in ("/api/v1/pods?limit=1", f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{LEASE}"):
        request = urllib.request.Request(kerf.control_plane.server + path, headers=token)
        with urllib.request.urlopen(request, context=context) as answer:
            told[path] = schemas[answer.headers["X-Kubernetes-PF-FlowSchema-UID"]]
    assert list(told.values()) == ["kerf-requests", "kerf-leases"]


# --- what is rendered, judged by the API server -----------------------------------------------------------------
def everything(helm: Helm) -> Objects:
    """With all that may be asked for, in a namespace of its own."""
    values = {**yaml.safe_load(KARPENTERS_VALUES.read_text(encoding="utf-8")), "networkPolicy": {"enabled": True}}
    found = helm.template(values=values, release="everything", namespace="everything")
    return {(kind, name): one for (kind, name), one in found.items() if kind not in OTHERS}


def test_every_object_is_valid_and_a_second_apply_changes_nothing(kerf: Installation, helm: Helm) -> None:
    kerf.kubectl("create", "namespace", "everything")
    text = yaml.safe_dump_all(everything(helm).values())
    apply = ("apply", "--server-side", "--field-manager=argocd-controller", "--validate=strict", "-f", "-")
    kerf.kubectl(*apply, input_=text)
    before = versions(kerf, text)
    kerf.kubectl(*apply, input_=text)
    assert versions(kerf, text) == before
    assert len(before) == len(everything(helm))
    kerf.kubectl("delete", "--wait=false", "-f", "-", input_=text)


def versions(kerf: Installation, text: str) -> dict[tuple[str, str], str]:
    """Generations of what is specified; of what has none, what is in it."""
    items: list[dict[str, Any]] = json.loads(kerf.kubectl("get", "-f", "-", "-o", "json", input_=text))["items"]
    return {
        (one["kind"], one["metadata"]["name"]): str(one["metadata"].get("generation") or one.get("rules") or "")
        for one in items
    }


def test_pods_keep_to_the_strictest_pod_security_standard(kerf: Installation, helm: Helm) -> None:
    """The webhook's and the tests', too; and the API server does warn of a pod that does not."""
    kerf.kubectl("create", "namespace", "restricted")
    kerf.kubectl("label", "namespace", "restricted", RESTRICTED)
    objects = helm.template(release="restricted", namespace="restricted")
    pods = [one for (kind, _), one in objects.items() if kind in ("Deployment", "Pod")]
    assert len(pods) == 3
    assert "PodSecurity" not in warned(kerf, pods)
    for one in pods:
        spec = one["spec"].get("template", one)["spec"]
        del spec["securityContext"]
    assert "PodSecurity" in warned(kerf, pods)


def warned(kerf: Installation, pods: list[Any]) -> str:
    text = yaml.safe_dump_all(pods)
    return kerf.control_plane.kubectl("apply", "--dry-run=server", "-f", "-", input=text).stderr


def test_lint_finds_nothing(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(ROOT / "charts/kerf"), "--set=settings.clusterName=test")
    assert "0 chart(s) failed" in helm("lint", "--strict", str(ROOT / "charts/kerf-crd"))
