"""Karpenter's controller with its KWOK provider, which makes nodes out of nothing: a peer for whole clusters.

It is the program that Karpenter's own module has, of the version that `karpenter/go.mod` pins; its CustomResource-
Definitions are read from that module, too. Its types and prices come from a file of ours.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.peers.karpenter import CACHE, SOURCES, PeerUnavailable, Target, build, fingerprint, on_stderr
from tests.cluster.control_plane import ControlPlane
from tests.cluster.processes import Component, free_ports

Json = dict[str, Any]
MODULE: Final = "sigs.k8s.io/karpenter"
TARGET: Final = Target(f"{MODULE}/kwok", "karpenter-kwok", "Karpenter's controller")
NAMESPACE: Final = "kube-system"
GROUP, NODE_CLASS_KIND = "karpenter.kwok.sh", "KWOKNodeClass"
#: Where the module has the kinds that the controller wants to be served.
_CRDS: Final = ("pkg/apis/crds", "kwok/apis/crds")
#: What the provider holds back of each type's resources.
_KEPT_CPU_MILLIS, _KEPT_MEMORY_MIB = 100, 10


def find_program(announce: Callable[[str], None] = on_stderr) -> Path:
    """Return the controller, building it first if need be. Raises PeerUnavailable when it cannot be built here."""
    folder = CACHE / f"kwok-{fingerprint(SOURCES)}"
    if not folder.is_dir():
        build(SOURCES, folder, shutil.which("go"), announce, TARGET)
    return folder / TARGET.program


def crd_folders() -> list[Path]:
    """Where Go keeps the module's CustomResourceDefinitions. Raises PeerUnavailable."""
    go = shutil.which("go")
    if go is None:
        raise PeerUnavailable("no Go toolchain to ask for Karpenter's module")
    command = [go, "list", "-m", "-f", "{{.Dir}}", MODULE]
    asked = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True, check=False)
    if asked.returncode != 0 or not asked.stdout.strip():
        raise PeerUnavailable(f"Go does not have {MODULE}: {asked.stderr.strip()}")
    return [Path(asked.stdout.strip()) / name for name in _CRDS]


def instance_types(rows: Iterable[Json]) -> list[Json]:
    """A catalogue (see `benchmarks.workloads`) as the provider reads it: pods can have of each type what they can have
    by the catalogue."""
    return [_instance_type(row) for row in rows]


def _instance_type(row: Json) -> Json:
    room = row["allocatable"]
    resources = {
        "cpu": f"{room['cpu'] + _KEPT_CPU_MILLIS}m",
        "memory": f"{room['memory'] + _KEPT_MEMORY_MIB}Mi",
        "pods": str(room["pods"]),
    }
    return {
        "name": row["name"],
        "architecture": row["arch"],
        "operatingSystems": [row["os"]],
        "resources": resources,
        "offerings": [_offering(one) for one in row["offerings"]],
    }


def _offering(one: Json) -> Json:
    found = {"karpenter.sh/capacity-type": one["capacityType"], "topology.kubernetes.io/zone": one["zone"]}
    requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in found.items()]
    return {"Price": one["price"], "Available": one["available"], "Requirements": requirements}


class KwokController:
    """The controller on a control plane, as administrator; a context manager.

    Each node appears `boot_seconds` after its claim was launched. The log goes into `folder`.
    """

    def __init__(self, cluster: ControlPlane, folder: Path, rows: Sequence[Json], boot_seconds: int = 1) -> None:
        self._cluster, self._folder, self._boot_seconds = cluster, folder, boot_seconds
        self._types = folder / "instance-types.json"
        self._types.write_text(json.dumps(instance_types(rows)))
        self._component: Component | None = None

    @property
    def pid(self) -> int:
        """Raises ComponentFailed when it does not run."""
        assert self._component is not None
        self._component.check()
        assert self._component.pid is not None
        return self._component.pid

    def __enter__(self) -> KwokController:
        program = find_program()
        for folder in crd_folders():
            self._cluster.kubectl("apply", "--server-side", "-f", str(folder))
        self._cluster.kubectl("wait", "--for=condition=Established", "crd", "--all")
        self._cluster.kubectl("apply", "-f", "-", input=json.dumps(self._node_class()))
        self._component = self._made(program)
        self._component.start(self._cluster.process_group)
        self._component.wait_ready()
        return self

    def __exit__(self, *_: object) -> None:
        if self._component is not None:
            self._component.stop()

    def _node_class(self) -> Json:
        spec = {"nodeRegistrationDelay": f"{self._boot_seconds}s"}
        kind = {"apiVersion": f"{GROUP}/v1alpha1", "kind": NODE_CLASS_KIND}
        return {**kind, "metadata": {"name": "default"}, "spec": spec}

    def _made(self, program: Path) -> Component:
        metrics, health = free_ports(2)
        own = {
            "KUBECONFIG": str(self._cluster.kubeconfig),
            "INSTANCE_TYPES_FILE_PATH": str(self._types),
            "SYSTEM_NAMESPACE": NAMESPACE,
            "LEADER_ELECTION_NAMESPACE": NAMESPACE,
            "KARPENTER_SERVICE": "karpenter",
            "KUBERNETES_MIN_VERSION": "1.19.0-0",
            "METRICS_PORT": str(metrics),
            "HEALTH_PROBE_PORT": str(health),
        }
        environment, log = {**os.environ, **own}, self._folder / "karpenter.log"
        return Component(TARGET.program, [str(program)], log, environment, lambda: _ready(health))


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
