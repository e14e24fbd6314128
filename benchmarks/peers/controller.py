"""A controller of Karpenter's as a peer for whole clusters: built from its module, and run on a control plane.

The CustomResourceDefinitions are read from the module too, of the version that the `go.mod` beside the sources pins.
"""

from __future__ import annotations

import os
import shutil
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.peers.karpenter import CACHE, PeerUnavailable, Target, build, fingerprint, on_stderr
from tests.cluster.control_plane import ControlPlane
from tests.cluster.processes import Component, free_ports
from tests.go_build import GoBuildFailed, module_folder

NAMESPACE: Final = "kube-system"


@dataclass(frozen=True, slots=True)
class Peer:
    """A controller: the folder with the `go.mod` that pins it, its Go module, its program, and the module's folders of
    CustomResourceDefinitions."""

    sources: Path
    module: str
    target: Target
    crds: tuple[str, ...]

    def find_program(self, announce: Callable[[str], None] = on_stderr) -> Path:
        """Return the program, building it first if need be. Raises PeerUnavailable when it cannot be built here."""
        folder = CACHE / f"{self.target.program}-{fingerprint(self.sources)}"
        if not folder.is_dir():
            build(self.sources, folder, shutil.which("go"), announce, self.target)
        return folder / self.target.program

    def crd_folders(self) -> list[Path]:
        """Where Go keeps the module's CustomResourceDefinitions. Raises PeerUnavailable."""
        go = shutil.which("go")
        if go is None:
            raise PeerUnavailable(f"no Go toolchain to ask for {self.module}")
        try:
            folder = module_folder(go, self.sources, self.module)
        except GoBuildFailed as failure:
            raise PeerUnavailable(f"Go does not have {self.module}: {failure}") from None
        return [folder / name for name in self.crds]


class PeerController:
    """A peer on a control plane, as administrator; a context manager.

    `settings` are environment variables of its own. The log goes into `folder`.
    """

    def __init__(self, cluster: ControlPlane, folder: Path, peer: Peer, settings: Mapping[str, str]) -> None:
        self._cluster, self._folder, self._peer, self._settings = cluster, folder, peer, settings
        self._component: Component | None = None

    @property
    def pid(self) -> int:
        """Raises ComponentFailed when it does not run."""
        assert self._component is not None
        self._component.check()
        assert self._component.pid is not None
        return self._component.pid

    def __enter__(self) -> PeerController:
        program = self._peer.find_program()
        for folder in self._peer.crd_folders():
            self._cluster.kubectl("apply", "--server-side", "-f", str(folder))
        self._cluster.kubectl("wait", "--for=condition=Established", "crd", "--all")
        self._component = self._made(program)
        self._component.start(self._cluster.process_group)
        self._component.wait_ready()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._component is not None:
            self._component.stop()

    def _made(self, program: Path) -> Component:
        metrics, health = free_ports(2)
        own = {
            "KUBECONFIG": str(self._cluster.kubeconfig),
            "SYSTEM_NAMESPACE": NAMESPACE,
            "LEADER_ELECTION_NAMESPACE": NAMESPACE,
            "KARPENTER_SERVICE": "karpenter",
            "KUBERNETES_MIN_VERSION": "1.19.0-0",
            "METRICS_PORT": str(metrics),
            "HEALTH_PROBE_PORT": str(health),
        }
        environment, log = {**os.environ, **own, **self._settings}, self._folder / "karpenter.log"
        return Component(self._peer.target.program, [str(program)], log, environment, lambda: _ready(health))


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
