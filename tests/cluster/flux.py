"""Flux on the control plane: the real kustomize-controller, and tests that play the controllers beside it.

    with Flux(control_plane, folder, {"fleet": tree}) as flux:
        flux.publish("fleet")

What a person would do with the `flux` command is done on the objects themselves, by the same annotation.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from kubernetes import client, config

from .control_plane import ControlPlane
from .flux_programs import DEFINITIONS, PROGRAM, find_flux
from .flux_releases import DEFINITION, Releases
from .flux_sources import Sources
from .processes import Component, free_ports

NAMESPACE: Final = "flux-system"
REQUESTED: Final = "reconcile.fluxcd.io/requestedAt"
GROUP, VERSION, PLURAL = "kustomize.toolkit.fluxcd.io", "v1", "kustomizations"

#: The lines in which kustomize-controller says that it changed an object.
_CHANGE: Final = re.compile(r"\S+ (?:created|configured|deleted)$", re.MULTILINE)

Json = dict[str, Any]


class Flux:
    """A context manager. `trees` are the folders that GitRepositories stand for, by name.

    Raises FluxUnavailable from the constructor when there is no kustomize-controller and none can be built.
    """

    def __init__(self, control_plane: ControlPlane, folder: Path, trees: Mapping[str, Path]) -> None:
        self._programs = find_flux()
        self._control_plane, self._folder, self._trees = control_plane, folder, trees
        self._log = folder / f"{PROGRAM}.log"
        self._ends = ExitStack()

    def __enter__(self) -> Self:
        api_client = config.new_client_from_config(str(self._control_plane.kubeconfig))  # type: ignore[no-untyped-call]
        self._api = client.CustomObjectsApi(api_client)
        self._ends.callback(api_client.close)
        kubectl = self._control_plane.kubectl
        for definitions in (self._programs / DEFINITIONS, DEFINITION):
            kubectl("create", "-f", str(definitions))
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        kubectl("create", "namespace", NAMESPACE)
        self._sources = self._ends.enter_context(Sources(self._api, self._folder / "artifacts", NAMESPACE))
        self.releases = Releases(self._control_plane, self._api, NAMESPACE, self._trees)
        controller = self._controller()
        controller.start(self._control_plane.process_group)
        self._ends.callback(controller.stop)
        controller.wait_ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ends.close()

    def _controller(self) -> Component:
        """As `flux install` starts it, with the rights of an administrator and the gate that our guide asks for."""
        metrics, health = free_ports(2)
        flags = (
            "--watch-all-namespaces=true",
            "--feature-gates=CancelHealthCheckOnNewRevision=true",
            f"--metrics-addr=127.0.0.1:{metrics}",
            f"--health-addr=127.0.0.1:{health}",
            # Who waits for another one looks again after half a minute by default.
            "--requeue-dependency=1s",
        )
        plane = self._control_plane
        environment = {"HOME": str(plane.folder), "TMPDIR": str(plane.folder), "KUBECONFIG": str(plane.kubeconfig)}
        environment |= {"RUNTIME_NAMESPACE": NAMESPACE, "PATH": "/usr/bin:/bin"}
        command, url = [str(self._programs / PROGRAM), *flags], f"http://127.0.0.1:{health}/readyz"
        return Component(PROGRAM, command, self._log, environment, lambda: _answers(url))

    # --- what people do ---------------------------------------------------------------------------------------------
    def publish(self, name: str) -> str:
        """What the folder holds now is the newest commit of the GitRepository; its revision."""
        return self._sources.publish(name, self._trees[name])

    def request(self, name: str, at: str) -> None:
        """As `flux reconcile kustomization`; `at` is any text that is another one each time."""
        annotation = f"{REQUESTED}={at}"
        self._control_plane.kubectl("annotate", "kustomization", name, "-n", NAMESPACE, "--overwrite", annotation)

    # --- what is there ----------------------------------------------------------------------------------------------
    def kustomization(self, name: str) -> Json:
        found = self._api.get_namespaced_custom_object(GROUP, VERSION, NAMESPACE, PLURAL, name)
        assert isinstance(found, dict)
        return found

    def done(self, name: str, revision: str) -> bool:
        """Whether all of that revision is applied and healthy."""
        found = self.kustomization(name)
        status = found.get("status", {})
        judged = status.get("observedGeneration") == found["metadata"]["generation"]
        applied = judged and status.get("lastAppliedRevision") == revision
        return bool(applied and self.condition(name)["status"] == "True")

    def condition(self, name: str, type_: str = "Ready") -> Json:
        """Empty when it is not there."""
        rows: list[Json] = self.kustomization(name).get("status", {}).get("conditions", [])
        return next((row for row in rows if row["type"] == type_), {})

    def changes(self) -> Counter[str]:
        """The objects that were created, configured or deleted, each with that word; how often each, by Flux's log.

        Its events do not say it always. A step has 25 of them, then one in five minutes, and it spends one each second
        while it waits for another step: after half a minute of that there is no event of what it applies.
        """
        found: Counter[str] = Counter()
        for line in self._log.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("{"):
                row = json.loads(line)
                applied = [f"{one} {change}" for one, change in row.get("output", {}).items()]
                said = "\n".join([*applied, row["msg"], row.get("error", "")])
                found.update(_CHANGE.findall(said))
        return found


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False
