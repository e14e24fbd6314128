"""Kerf as Argo CD installs it: `manifests/argocd/` on a control plane, out of two Git repositories on disk."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tests.gitops.repositories import commit, git, repository
from tests.sources import ROOT

from .argocd import NAMESPACE, ArgoCd
from .control_plane import ControlPlane
from .flux_installation import MANIFESTS as FLUX
from .flux_installation import copy_manifests, nested
from .installation import NAMESPACE as KERF
from .installation import Installation

MANIFESTS: Final = ROOT / "manifests/argocd"
#: In the order of their waves.
APPLICATIONS: Final = ("kerf-crd", "kerf-controller", "node-classes", "node-pools")
#: Of the platform's repository.
CLASSES, POOLS = "clusters/my-cluster/node-classes", "clusters/my-cluster/node-pools"
_CONTROLLER: Final = "argocd/applications/2-controller.yaml"
_VERSION: Final = "v0.1.0"
_ZONES: Final = ("us-east-1a", "us-east-1b")


class ArgoCdInstallation(Installation):
    """A running Kerf that Argo CD has installed; a context manager. `platform` is the user's repository.

    The controller makes the certificate of its webhook, for a Service whose pods do not run here; `serve_webhook`
    commits the values of a webhook that answers, and starts it.
    """

    def __init__(self, control_plane: ControlPlane, folder: Path) -> None:
        super().__init__(control_plane, folder, webhook=False, values={"webhook.deletionGuard": "true"})
        self.platform, self._charts = folder / "platform", folder / "kerf"
        self.argocd = ArgoCd(control_plane, folder)
        #: EC2NodeClasses that existed before the pods of the controller were Ready.
        self.too_early: list[str] = []

    def __enter__(self) -> ArgoCdInstallation:
        self.argocd.__enter__()
        super().__enter__()
        self.too_early = [one["metadata"]["name"] for one in self.get("ec2nodeclasses")]
        for zone in _ZONES:
            self.kubectl("create", "-f", "-", input_=json.dumps(_system_node(zone)))
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.argocd.__exit__(None, None, None)

    def _install_charts(self, values: Mapping[str, str]) -> None:
        for chart in ("kerf", "kerf-crd"):
            shutil.copytree(ROOT / "charts" / chart, self._charts / "charts" / chart)
        repository(self._charts, {})
        git(self._charts, "tag", _VERSION)
        copy_manifests(MANIFESTS / "applications", self.platform / "argocd/applications")
        for name, folder in (("node-classes", CLASSES), ("node-pools", POOLS)):
            copy_manifests(FLUX / name, self.platform / folder)
        self._address(self.platform / "argocd/applications")
        self._write_values(values)
        for folder in (CLASSES, POOLS):
            self._list_resources(folder)
        repository(self.platform, {})
        apply = ("apply", "-n", NAMESPACE, "-f")
        self.kubectl(*apply, str(MANIFESTS / "argocd-cm.yaml"), "--server-side", "--field-manager=kerf")
        outer = self._folder / "outer"
        outer.mkdir()
        shutil.copy(MANIFESTS / "kerf.yaml", outer)
        self._address(outer)
        self.kubectl(*apply, str(outer))
        self.wait(self._deployed, 180, "Argo CD has applied the chart")

    def _deployed(self) -> bool:
        return self.control_plane.kubectl("get", "deployment/kerf", "-n", KERF, check=False).returncode == 0

    def _address(self, folder: Path) -> None:
        """Replace the addresses of the example by those on disk."""
        for path in folder.glob("*.yaml"):
            text = path.read_text()
            for name, place in (("platform", self.platform), ("kerf", self._charts)):
                text = text.replace(f"https://example.com/{name}.git", place.as_uri())
            path.write_text(text)

    def _write_values(self, values: Mapping[str, str]) -> None:
        path = self.platform / _CONTROLLER
        application = yaml.safe_load(path.read_text())
        application["spec"]["source"]["helm"]["valuesObject"] = nested(values)
        path.write_text(yaml.safe_dump(application))

    def _list_resources(self, folder: str) -> None:
        """The kustomization.yaml that the guide asks for names every file of the folder."""
        place = self.platform / folder
        names = sorted(path.name for path in place.glob("*.yaml") if path.name != "kustomization.yaml")
        (place / "kustomization.yaml").write_text(yaml.safe_dump({"resources": names}))

    # --- the repository -----------------------------------------------------------------------------------------
    def commit(self, path: str, text: str | None) -> str:
        """Give a file of a NodePool or EC2NodeClass this text, or delete it, and push; the commit."""
        if text is None:
            (self.platform / path).unlink()
        else:
            (self.platform / path).write_text(text)
        for folder in (CLASSES, POOLS):
            self._list_resources(folder)
        pushed = commit(self.platform)
        for name in APPLICATIONS[2:]:
            self.argocd.refresh(name, "normal")
        return pushed

    def text(self, path: str) -> str:
        return (self.platform / path).read_text()

    def serve_webhook(self) -> None:
        """Commit the values of a webhook outside the cluster, and start it once Argo CD has applied them."""
        self._webhook = True
        self._write_values(self._chart_values())
        commit(self.platform)

        def applied() -> bool:
            (one,) = (x for x in self.get("validatingwebhookconfigurations") if x["metadata"]["name"] == "kerf")
            return all("url" in webhook["clientConfig"] for webhook in one["webhooks"])

        self.wait(applied, 120, "Argo CD has applied the address of the webhook")
        self.start_webhook()

    def synced(self, application: str, revision: str, seconds: float = 120) -> None:
        """Wait until this commit of the repository is applied."""
        try:
            self.wait(lambda: self.argocd.synced(application, revision), seconds, f"{application} is at {revision}")
        except AssertionError as late:
            late.add_note(json.dumps(self.argocd.application(application).get("status", {}), indent=1))
            raise


def _system_node(zone: str) -> dict[str, Any]:
    """A node that is not of Kerf, for the pods of the controller and its webhook."""
    name = f"system-{zone}"
    size = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": zone,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [{"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"}]},
        "status": {"capacity": size, "allocatable": size},
    }
