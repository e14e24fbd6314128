"""The process as a whole, against a scripted API server on a real socket: how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from kerf.cli.operating import debug_port
from kerf.model import kinds
from kerf.runtime.leadership.leases import KARPENTER
from tests.sources import ROOT
from tests.unit.kube.api_double import ApiDouble, Handler, Route

LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
#: Nothing of AWS is reached; the process runs all the same.
NOWHERE = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_DEFAULT_REGION": "us-west-2",
}


class Cluster(dict[str, Route]):
    """An API server that keeps leases and says its version. What is in it is listed, and never changes."""

    def __init__(self) -> None:
        super().__init__()
        self.leases: dict[str, dict[str, Any]] = {}
        self.objects: dict[str, list[dict[str, Any]]] = {kind.path(): [] for kind in kinds.WATCHED}
        self["GET /version"] = lambda _: (200, {"major": "1", "minor": "36"})
        for space in ("kerf", "kube-system", "karpenter"):
            path = LEASES.format(space)
            self[f"GET {path}/{KARPENTER}"] = self._read
            self[f"POST {path}"] = self[f"PUT {path}/{KARPENTER}"] = self._write

    def __missing__(self, call: str) -> Route:
        path = call.removeprefix("GET ")
        return self._list if path in self.objects else lambda _: (404, {"reason": "NotFound"})

    def _list(self, request: Handler) -> tuple[int, Any] | None:
        if "watch" not in request.query:
            return 200, {"metadata": {"resourceVersion": "1"}, "items": self.objects[request.path.partition("?")[0]]}
        request.begin_stream()
        request.double.ended.wait(60)
        return None

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


@contextmanager
def started(*command: str, stderr: int | None = None) -> Iterator[subprocess.Popen[str]]:
    """The process, as this command starts it. It does not outlive its test."""
    settings = {
        "CLUSTER_NAME": "test",
        "SYSTEM_NAMESPACE": "kerf",
        "METRICS_PORT": "0",
        "HEALTH_PROBE_PORT": "0",
        "DEBUG_PORT": "0",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    }
    environment = {**os.environ, **NOWHERE, **settings}
    command = (sys.executable, *command)
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def until_stopped(cluster: Cluster, kubeconfig: Path, *flags: str) -> list[dict[str, Any]]:
    """What a controller says that is asked to stop as soon as it has the lease, and does so."""
    command = "-c", "from kerf.cli.main import main; main()", "run", "--kubeconfig", str(kubeconfig), *flags
    with started(*command) as process:
        until = time.monotonic() + 60
        while "kerf" not in cluster.leases:
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return lines(told)


def test_who_is_asked_to_stop_gives_the_lease_up(cluster: Cluster, kubeconfig: Path) -> None:
    said = until_stopped(cluster, kubeconfig)
    assert any(line["message"] == "stopping" for line in said)
    assert cluster.leases["kerf"]["seen"][-1] == ""


def test_lines_that_libraries_print_become_records_of_the_log(
    cluster: Cluster, kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printing = "if event == 'socket.connect': os.write(1, b'a banner of a solver\\n')"
    (tmp_path / "sitecustomize.py").write_text(
        f"import os, sys\ndef printing(event, words):\n    {printing}\nsys.addaudithook(printing)\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    said = until_stopped(cluster, kubeconfig)
    assert {"standard output"} == {line.get("library") for line in said if "a banner" in line["message"]}


def test_who_is_called_at_night_finds_a_status_a_louder_log_and_stacks(cluster: Cluster, kubeconfig: Path) -> None:
    command = "-c", "from kerf.cli.main import main; main()", "run", "--kubeconfig", str(kubeconfig)
    with started(*command, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        first = _next(process.stdout, "effective settings")
        assert first["settings"]["CLUSTER_NAME"] == {"value": "test", "from": "environment"}
        url = f"http://127.0.0.1:{_next(process.stdout, 'serving')['debug']}"
        _next(process.stdout, "leading")
        found = json.loads(debug_port.ask(url, "/status"))
        assert found["replica"]["leader"] == found["replica"]["identity"] != ""
        assert "Instance" in {row["name"] for row in found["working"]["sources"] if row["stale"]}  # no AWS here
        debug_port.ask(url, "/debug/log-level", {"level": "debug"}, method="PUT")
        assert _next(process.stdout, "log level changed")["caller"].startswith("process/log_level.py:")
        process.send_signal(signal.SIGUSR1)
        assert any("most recent call first" in line for line in process.stdout)
        assert process.poll() is None


def _next(lines: IO[str], message: str) -> dict[str, Any]:
    """The next line of the log that says so."""
    for line in lines:
        if line.startswith("{") and (found := json.loads(line))["message"] == message:
            return dict(found)
    raise AssertionError(f"nothing says {message!r}")


def test_settings_that_need_a_word_are_confirmed_at_start(cluster: Cluster, kubeconfig: Path) -> None:
    cluster.objects |= {kind.path(): [] for kind in (*kinds.WORKLOADS, *kinds.DEVICES)}
    row = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    config = json.dumps({"podTopologySpread": {"defaultConstraints": [row]}})
    special = "--ignore-dra-requests=false", "--scheduler-config", config
    said = until_stopped(cluster, kubeconfig, *special)
    (confirmed,) = [line["constraints"] for line in said if "constraints" in line]
    assert confirmed == [{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
    assert any("resource claims" in line["message"] for line in said)


def test_who_does_not_finish_in_time_keeps_the_lease_until_it_runs_out(cluster: Cluster, kubeconfig: Path) -> None:
    """A request is under way whose effect nobody knows: another that begins at once might work against it."""
    meta = {"name": "default", "uid": "u", "resourceVersion": "1", "generation": 1}
    cluster.objects[kinds.NODE_CLASS.path()] = [{"metadata": meta, "spec": {"role": "r"}}]
    asked, answer = threading.Event(), threading.Event()

    def silence(request: Handler) -> None:
        asked.set()
        answer.wait(60)

    cluster[f"PATCH {kinds.NODE_CLASS.path('', 'default')}"] = silence
    with started("-m", "tests.unit.runtime.run_process", str(kubeconfig), "", "5") as process:
        assert asked.wait(60)
        renewed = cluster.leases["kerf"]["spec"]["renewTime"]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    answer.set()
    assert process.returncode == 0
    assert "" not in cluster.leases["kerf"]["seen"]
    assert cluster.leases["kerf"]["spec"]["renewTime"] > renewed  # it was ours while we waited


@pytest.mark.parametrize(("message", "thread"), [("leading", "lead"), ("only watching", "karpenter")])
def test_a_thread_that_dies_takes_the_process_with_it(
    cluster: Cluster, kubeconfig: Path, message: str, thread: str
) -> None:
    """A process of which a part is missing would hold the lease and never act, or act and never look: better anew."""
    theirs = {"holderIdentity": "karpenter-7c9d_5b0f", "leaseDurationSeconds": 15}
    cluster.leases["kube-system"] = {"metadata": {"name": KARPENTER, "resourceVersion": "1"}, "spec": theirs}
    with started("-m", "tests.unit.runtime.run_process", str(kubeconfig), message) as process:
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    (said,) = [line for line in lines(told) if line["level"] == "ERROR" and "thread" in line]
    assert said["thread"] == thread
    assert cluster.leases["kerf"]["seen"][-1] == ""
