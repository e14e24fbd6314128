"""Argo CD on the control plane: its application-controller and its repo-server, which share a Redis.

    with ArgoCd(control_plane, folder) as argocd:
        argocd.refresh("node-pools")

There is neither its API server nor its user interface: commands and buttons of people are the annotations and fields
that these would write. The repo-server reads Git repositories on disk by `file://`.
"""

from __future__ import annotations

import json
import os
import socket
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from .argocd_programs import ARGO_CD, DEFINITIONS, REDIS, find_argocd
from .control_plane import ControlPlane
from .processes import Component, free_ports, wait_until

NAMESPACE: Final = "argocd"
#: Seconds after which it compares again by itself; its own default is two minutes and up to one more.
RESYNC: Final = "20"

Json = dict[str, Any]

_BASE: Final = f"""
apiVersion: v1
kind: Namespace
metadata: {{name: {NAMESPACE}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: argocd-cm, namespace: {NAMESPACE}, labels: {{app.kubernetes.io/part-of: argocd}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: argocd-rbac-cm, namespace: {NAMESPACE}, labels: {{app.kubernetes.io/part-of: argocd}}}}
---
apiVersion: v1
kind: Secret
metadata: {{name: argocd-secret, namespace: {NAMESPACE}, labels: {{app.kubernetes.io/part-of: argocd}}}}
stringData: {{server.secretkey: only-for-tests}}
"""
_PROJECT: Final = f"""
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {{name: default, namespace: {NAMESPACE}}}
spec:
  sourceRepos: ["*"]
  destinations: [{{namespace: "*", server: "*"}}]
  clusterResourceWhitelist: [{{group: "*", kind: "*"}}]
"""


class ArgoCd:
    """A context manager. Raises ArgoCdUnavailable from the constructor when there is none and none can be built."""

    def __init__(self, control_plane: ControlPlane, folder: Path) -> None:
        self._programs = find_argocd()
        self._control_plane, self._folder = control_plane, folder / "argocd"
        self._ends = ExitStack()

    def __enter__(self) -> Self:
        kubectl = self._control_plane.kubectl
        kubectl("create", "-f", str(self._programs / DEFINITIONS))
        # A CRD of this instant has no conditions, which kubectl takes for an error.
        waiting = ("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        wait_until(lambda: kubectl(*waiting, check=False).returncode == 0, lambda: "Argo CD's CRDs are not served")
        kubectl("apply", "--server-side", "--field-manager=argocd", "-f", "-", input=_BASE)
        kubectl("apply", "-f", "-", input=_PROJECT)
        for component in self._components():
            component.start(self._control_plane.process_group)
            self._ends.callback(component.stop)
            component.wait_ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ends.close()

    def _components(self) -> tuple[Component, ...]:
        redis, repo, repo_metrics, metrics = free_ports(4)
        cache = ("--redis", f"127.0.0.1:{redis}")
        server = ["--address", "127.0.0.1", "--port", str(repo), "--metrics-port", str(repo_metrics), "--disable-tls"]
        # By default it asks Git for the newest commit only every three minutes.
        server += ["--revision-cache-expiration", "2s"]
        controller = ["--repo-server", f"127.0.0.1:{repo}", "--repo-server-plaintext", "--metrics-port", str(metrics)]
        controller += ["--app-resync", RESYNC, "--app-resync-jitter", "0"]
        return (
            self._component(REDIS, "", f"127.0.0.1:{redis}", port=redis),
            self._component(ARGO_CD, "argocd-repo-server", *cache, *server, port=repo),
            self._component(ARGO_CD, "argocd-application-controller", *cache, *controller, health=metrics),
        )

    def _component(self, program: str, name: str, *flags: str, port: int = 0, health: int = 0) -> Component:
        plane, folder = self._control_plane, self._folder
        for made in ("tmp", "tls", "ssh", "gpg", "plugins"):
            (folder / made).mkdir(parents=True, exist_ok=True)
        environment = {
            "HOME": str(folder),
            "TMPDIR": str(folder / "tmp"),
            "PATH": f"{self._programs}:{plane.binaries}:/usr/bin:/bin",
            "KUBECONFIG": str(plane.kubeconfig),
            "ARGOCD_BINARY_NAME": name,
            "ARGOCD_FAKE_IN_CLUSTER": "true",
            "ARGOCD_GPG_ENABLED": "false",
            "ARGOCD_TLS_DATA_PATH": str(folder / "tls"),
            "ARGOCD_SSH_DATA_PATH": str(folder / "ssh"),
            "ARGOCD_PLUGINSOCKFILEPATH": str(folder / "plugins"),
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        own = ("--namespace", NAMESPACE) if name.endswith("controller") else ()
        command = [str(self._programs / program), *flags, *own]
        log = self._folder / f"{name or program}.log"
        ready = (lambda: _healthy(health)) if health else (lambda: _listening(port))
        return Component(name or program, command, log, environment, ready)

    # --- actions of people --------------------------------------------------------------------------------------
    def refresh(self, name: str, how: str = "hard") -> None:
        """As `argocd app get --hard-refresh`: render and compare again, whatever the cache has; "normal" as a push."""
        self._annotate(name, f"argocd.argoproj.io/refresh={how}")

    def approve_deletions(self, name: str, at: str) -> None:
        """The word that a sync with `Prune=confirm` waits for; `at` is a time as in the guide."""
        self._annotate(name, f"argocd.argoproj.io/deletion-approved={at}")

    def end_sync(self, name: str) -> None:
        """As `argocd app terminate-op`, if a sync is under way."""
        if "operation" in self.application(name):
            patch = json.dumps({"status": {"operationState": {"phase": "Terminating"}}})
            self._control_plane.kubectl("patch", "application", name, "-n", NAMESPACE, "--type=merge", "-p", patch)

    def _annotate(self, name: str, annotation: str) -> None:
        self._control_plane.kubectl("annotate", "application", name, "-n", NAMESPACE, "--overwrite", annotation)

    # --- state --------------------------------------------------------------------------------------------------
    def application(self, name: str) -> Json:
        """The Application; empty when there is none."""
        done = self._control_plane.kubectl(
            *("get", "application", name, "-n", NAMESPACE, "-o", "json", "--ignore-not-found")
        )
        found: Json = json.loads(done.stdout or "{}")
        return found

    def refreshed(self, name: str) -> bool:
        """Whether no refresh is asked for any more."""
        return "argocd.argoproj.io/refresh" not in self.application(name)["metadata"].get("annotations", {})

    def health(self, name: str) -> str:
        """Healthy, Progressing, …; empty before the first comparison."""
        status: str = self.application(name).get("status", {}).get("health", {}).get("status", "")
        return status

    def synced(self, name: str, revision: str = "") -> bool:
        """Whether the live objects are those of Git, at that commit if one is named, and no sync is under way."""
        status = self.application(name).get("status", {})
        sync = status.get("sync", {})
        ended = status.get("operationState", {}).get("phase") == "Succeeded"
        return ended and sync.get("status") == "Synced" and revision in ("", sync.get("revision"))

    def sync(self, name: str) -> Json:
        """The latest sync: `phase`, `message`, `syncResult` with a row for each object; empty before the first."""
        state: Json = self.application(name).get("status", {}).get("operationState", {})
        return state

    def messages(self, name: str) -> str:
        """The texts that its page shows: of its conditions, of its latest sync, and of each object of that."""
        status = self.application(name).get("status", {})
        state = status.get("operationState", {})
        rows = [*status.get("conditions", ()), state, *(state.get("syncResult") or {}).get("resources", ())]
        return "\n".join(row.get("message", "") for row in rows)

    def differences(self, name: str) -> list[str]:
        """The objects that are not as in Git, as kind/name."""
        rows = self.application(name).get("status", {}).get("resources", [])
        return [f"{row['kind']}/{row['name']}" for row in rows if row.get("status") != "Synced"]


def _listening(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2):
        return True
    return False


def _healthy(port: int) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2) as answer:
        return bool(answer.status == 200)
    return False
