"""The process as a whole, against a scripted API server on a real socket: how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.runtime.leases import KARPENTER
from tests.unit.kube.api_double import ApiDouble, Handler, Route

ROOT = Path(__file__).parents[3]
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
#: Nothing of AWS is reached; the process runs all the same.
NOWHERE = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_DEFAULT_REGION": "us-west-2",
}


class Cluster(dict[str, Route]):
    """An API server that keeps leases and says its version. It has nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.leases: dict[str, dict[str, Any]] = {}
        self["GET /version"] = lambda _: (200, {"major": "1", "minor": "36"})
        for space in ("kerf", "kube-system", "karpenter"):
            path = LEASES.format(space)
            self[f"GET {path}/{KARPENTER}"] = self._read
            self[f"POST {path}"] = self[f"PUT {path}/{KARPENTER}"] = self._write

    def __missing__(self, call: str) -> Route:
        return lambda _: (404, {"reason": "NotFound"})

    def _read(self, request: Handler) -> tuple[int, Any]:
        found = self.leases.get(request.path.split("/")[5])
        return (404, {"reason": "NotFound"}) if found is None else (200, found)

    def _write(self, request: Handler) -> tuple[int, Any]:
        space = request.path.split("/")[5]
        version = len(self.leases.get(space, {}).get("seen", ())) + 1
        meta = {**request.body["metadata"], "resourceVersion": str(version)}
        seen = (*self.leases.get(space, {}).get("seen", ()), request.body["spec"]["holderIdentity"])
        self.leases[space] = {**request.body, "metadata": meta, "seen": seen}
        return 200, self.leases[space]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def kubeconfig(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    with ApiDouble() as api:
        api.routes = cluster
        known = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": api.configuration().host}}],
            "users": [{"name": "c", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        }
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(known))
        yield path


def end(kubeconfig: Path, message: str) -> tuple[int, list[dict[str, Any]]]:
    """How the process ends in whose log there is no place for a line: exit code and the other lines."""
    flags = ["--system-namespace=kerf", "--aws-endpoint-url=http://127.0.0.1:9"]
    command = [sys.executable, "-m", "tests.unit.runtime.run_process", str(kubeconfig), message, *flags]
    environment = {**os.environ, **NOWHERE}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("message", "thread"), [("leading", "lead"), ("only watching", "karpenter")])
def test_a_thread_that_dies_takes_the_process_with_it(
    cluster: Cluster, kubeconfig: Path, message: str, thread: str
) -> None:
    """A process of which a part is missing would hold the lease and never act, or act and never look: better anew."""
    theirs = {"holderIdentity": "karpenter-7c9d_5b0f", "leaseDurationSeconds": 15}
    cluster.leases["kube-system"] = {"metadata": {"name": KARPENTER, "resourceVersion": "1"}, "spec": theirs}
    code, lines = end(kubeconfig, message)
    assert code == 1
    (told,) = [line for line in lines if line["level"] == "ERROR" and line.get("thread")]
    assert told["thread"] == thread
    assert cluster.leases["kerf"]["seen"][-1] == ""
