"""The processes of the benchmark: the feed's server, and controllers as `kerf run` starts them; what they use."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.feed.specimens import CLUSTER
from benchmarks.feed.store import Write
from benchmarks.scrape import series
from benchmarks.usage import Usage, usage
from kerf.telemetry.turns import Turn
from tests.cluster.processes import free_ports
from tests.sources import ROOT

Json = dict[str, Any]
_PATIENCE: Final = 120.0


class Server:
    """The feed in a process of its own; a context manager."""

    def __init__(self, nodes: int, pods: int) -> None:
        given = json.dumps({"nodes": nodes, "pods": pods})
        command = [sys.executable, "-m", "benchmarks.feed.server", given]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the feed ended with exit code {self._process.wait()}")
        self.told: Json = json.loads(line)
        self.url: str = self.told["server"]

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, command: str, **query: object) -> Any:
        """The answer to a command under /feed/."""
        text = "&".join(f"{name}={value}" for name, value in query.items())
        return msgspec.json.decode(fetch(f"{self.url}/feed/{command}?{text}"))

    def writes(self, start: int = 0) -> list[Write]:
        """The write log from an index on."""
        return msgspec.convert(self.ask("writes", **{"from": start}), list[Write])


class Controller:
    """`kerf run` against the feed. `name` is also its bearer token, by which the feed tells replicas apart."""

    def __init__(self, server: Server, folder: Path, name: str = "controller") -> None:
        self.name, self._log = name, folder / f"{name}.log"
        metrics, probes = free_ports(2)
        self._metrics, self._probes = f"http://127.0.0.1:{metrics}", f"http://127.0.0.1:{probes}"
        ports = ("--metrics-port", str(metrics), "--health-probe-port", str(probes))
        where = ("--kubeconfig", str(kubeconfig(server, folder, name)))
        command = (sys.executable, "-m", "kerf.cli.main", "run", *where, *ports, "--enable-profiling")
        settings = {"CLUSTER_NAME": CLUSTER, "SYSTEM_NAMESPACE": "kerf", "INTERRUPTION_QUEUE": CLUSTER}
        environment = {**os.environ, **server.told["environment"], **settings}
        self.started = time.time()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Controller:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def turns(self, since: float = 0.0) -> list[Turn]:
        """What the loop's latest turns took, as the process itself says."""
        found = msgspec.json.decode(fetch(f"{self._metrics}/debug/turns"), type=list[Turn])
        return [turn for turn in found if turn.ended >= since]

    def scrape(self) -> tuple[float, int]:
        """Read the metrics as Prometheus would; the seconds that it took, and how many series there were."""
        began = time.perf_counter()
        text = fetch(f"{self._metrics}/metrics")
        return time.perf_counter() - began, len(series(text))

    @property
    def ready(self) -> bool:
        """Whether everything has been listed."""
        with contextlib.suppress(OSError):
            return fetch(f"{self._probes}/readyz") == b"ok\n"
        return False

    def usage(self) -> Usage:
        return usage(self.pid)

    def wait(self, reached: Callable[[], bool], what: str, seconds: float = _PATIENCE) -> None:
        """Wait until it is so. Raises RuntimeError, with the end of the log, when the process ends or time is over."""
        end = time.monotonic() + seconds
        while not reached():
            if self._process.poll() is not None or time.monotonic() > end:
                tail = self._log.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"{self.name}: not within {seconds:.0f} s: {what}\n{tail}")
            time.sleep(0.1)


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:
        body: bytes = answer.read()
        return body


def kubeconfig(server: Server, folder: Path, name: str) -> Path:
    """A kubeconfig of the feed; `name` is the token."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "feed", "cluster": {"server": server.url}}],
        "users": [{"name": name, "user": {"token": name}}],
        "contexts": [{"name": "feed", "context": {"cluster": "feed", "user": name}}],
        "current-context": "feed",
    }
    path = folder / f"{name}.kubeconfig"
    path.write_text(json.dumps(document))
    return path
