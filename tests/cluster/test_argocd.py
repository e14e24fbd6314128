"""The guides' commands on a real API server, with Argo CD's kind and somebody else's settings for it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.sources import ROOT, python_path

from .api_server import with_definitions
from .control_plane import ControlPlane

pytestmark = pytest.mark.cluster

#: What of an installed Argo CD the commands need: its namespace, its kind, and settings that somebody else keeps.
ARGO_CD: Final = """
apiVersion: v1
kind: Namespace
metadata: {name: argocd}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: argocd}
data: {url: https://argocd.example.com, resource.customizations.health.example.com_Thing: "return {}"}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: applications.argoproj.io}
spec:
  group: argoproj.io
  scope: Namespaced
  names: {kind: Application, listKind: ApplicationList, plural: applications, singular: application}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """One of its own: on the shared one charts have left their definitions, or expect to find them."""
    with ControlPlane() as found, with_definitions(found):
        found.kubectl("apply", "--server-side", "--field-manager=argocd", "-f", "-", input=ARGO_CD)
        found.kubectl("wait", "--for=condition=Established", "crd/applications.argoproj.io", "--timeout=30s")
        found.kubectl("apply", "-n", "argocd", "-f", str(ROOT / "manifests/argocd/applications"))
        yield found


def commands(page: str) -> list[str]:
    """The commands of a page of the documentation."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return re.findall(r"^\$ (.*)$", "".join(blocks), re.MULTILINE)


def run(cluster: ControlPlane, folder: Path, command: str) -> str:
    """What a command prints, run at the root of the repository by an administrator of the cluster."""
    kerf = folder / "kerf"
    kerf.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kerf.cli.main "$@"\n')
    kerf.chmod(0o755)
    path = f"{folder}:{cluster.binaries}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "KUBECONFIG": str(cluster.kubeconfig), "PYTHONPATH": python_path()}
    done = subprocess.run(["/bin/sh", "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("page", ["gitops.md", "gitops-argocd.md"])
def test_its_commands_work(cluster: ControlPlane, tmp_path: Path, page: str) -> None:
    found = commands(page)
    assert len(found) >= 3
    printed = {command: run(cluster, tmp_path, command) for command in found}
    assert [text for command, text in printed.items() if command.startswith("kubectl diff")] in ([], [""])


def test_settings_of_others_stay(cluster: ControlPlane, tmp_path: Path) -> None:
    """Twice over, whoever keeps the rest of the ConfigMap."""
    command = commands("gitops-argocd.md")[0]
    run(cluster, tmp_path, command)
    run(cluster, tmp_path, command)
    cluster.kubectl("apply", "--server-side", "--field-manager=argocd", "-f", "-", input=ARGO_CD)
    keys = cluster.kubectl(
        "get", "configmap/argocd-cm", "-n", "argocd", "-o", "go-template={{range $k, $_ := .data}}{{$k}} {{end}}"
    )
    assert {"url", "resource.customizations.health.example.com_Thing"} < set(keys.stdout.split())
    assert "resource.customizations.health.karpenter.sh_NodePool" in keys.stdout.split()
