"""The admission webhook as it is deployed: a process of its own, TLS, and reviews that come at a steady rate.

Latency is counted from the moment at which a review was due, not from when the client got round to sending it, so
that a stall shows in every review that it delayed. CPU is that of all the webhook's processes. The load generator
shares the machine.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.nodepools import nodepool
from benchmarks.table import Row, milliseconds, quantile
from tests.sources import ROOT
from tests.unit.webhook.certificates import self_signed
from tests.unit.webhook.reviews import review

_START_SECONDS: Final = 60.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_CONNECTIONS: Final = 8
_BODIES: Final = 2000
#: CPU seconds a review, and what 99 of 100 may take, at the rates that are to be borne with ease.
_CPU_SECONDS, _SLOW_SECONDS, _EASY_RATE = 0.004, 0.01, 150


@dataclass(frozen=True, slots=True)
class Load:
    """One measurement: reviews a second as wanted and as answered, latencies in seconds, CPU seconds a review."""

    rate: int
    answered_per_second: float
    latencies: tuple[float, ...]
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Served:
    """A webhook process that answers."""

    pid: int
    port: int
    trusted: ssl.SSLContext

    def connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.trusted.wrap_socket(plain, server_hostname="127.0.0.1")


@contextmanager
def served() -> Iterator[Served]:
    """Start the webhook with a certificate of its own; stop it afterwards."""
    with tempfile.TemporaryDirectory() as name, socket.socket() as probe:
        folder = Path(name)
        certificate, key = self_signed("benchmark")
        (folder / "tls.crt").write_bytes(certificate)
        (folder / "tls.key").write_bytes(key)
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        files = ("--cert-file", str(folder / "tls.crt"), "--key-file", str(folder / "tls.key"))
        process = subprocess.Popen(
            [sys.executable, "-m", "kerf_webhook", "--bind", f"127.0.0.1:{port}", *files], cwd=ROOT
        )
        try:
            server = Served(process.pid, port, ssl.create_default_context(cadata=certificate.decode()))
            _wait(server, process)
            yield server
        finally:
            process.terminate()
            process.wait(_START_SECONDS)


def _wait(server: Served, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            server.connect().close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and its children, so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / _TICKS
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(cpu_seconds(int(child)) for child in children)


# --- the load ---------------------------------------------------------------------------------------------------
def requests(path: str) -> list[bytes]:
    """Whole HTTP requests, each about another NodePool of 30 requirements."""
    bodies = (json.dumps(review(nodepool(number))).encode() for number in range(_BODIES))
    head = f"POST {path} HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\nContent-Length: "
    return [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies]


def _answer(connection: ssl.SSLSocket, request: bytes) -> None:
    """Send one request, read the whole answer. Raises ConnectionError for anything but an allowed review."""
    connection.sendall(request)
    content = b""
    while b"\r\n\r\n" not in content:
        content += _more(connection)
    head, _, body = content.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    while len(body) < length:
        body += _more(connection)
    if not head.startswith(b"HTTP/1.1 200") or b'"allowed":true' not in body:
        raise ConnectionError(f"unexpected answer: {body[:300]!r}")


def _more(connection: ssl.SSLSocket) -> bytes:
    part = connection.recv(65536)
    if not part:
        raise ConnectionError("the webhook hung up")
    return part


def measure(server: Served, wanted: Sequence[bytes], rate: int, seconds: float) -> Load:
    """Send reviews at a steady rate over a few kept connections. Raises ConnectionError when one goes wrong."""
    number = int(rate * seconds)
    latencies: list[float] = []
    broken: list[Exception] = []
    connections = [server.connect() for _ in range(_CONNECTIONS)]
    before, began = cpu_seconds(server.pid), time.perf_counter() + 0.05

    def drive(first: int) -> None:
        try:
            for i in range(first, number, _CONNECTIONS):
                due = began + i / rate
                time.sleep(max(0.0, due - time.perf_counter()))
                _answer(connections[first], wanted[i % len(wanted)])
                latencies.append(time.perf_counter() - due)
        except (OSError, StopIteration, ValueError) as error:
            broken.append(error)

    threads = [threading.Thread(target=drive, args=(first,)) for first in range(_CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, used = time.perf_counter() - began, cpu_seconds(server.pid) - before
    for connection in connections:
        connection.close()
    if broken:
        raise broken[0]
    return Load(rate, number / took, tuple(latencies), used / number)


def rows(seconds: float = 4.0) -> list[Row]:
    """What `python -m benchmarks` shows: both doors at 50 and 150 reviews a second, and how it bears 500."""
    found: list[Row] = []
    with served() as server:
        for path in ("/validate", "/mutate"):
            wanted = requests(path)
            measure(server, wanted, 50, 1.0)
            for rate in (50, 150, 500):
                found += table(path, measure(server, wanted, rate, seconds))
    return found


def table(path: str, load: Load) -> list[Row]:
    """The rows of one measurement."""
    median, slow = (quantile(load.latencies, share) for share in (0.5, 0.99))
    what = f"{path} at {load.rate}/s over TLS, CPU a review"
    told = f"  p50 / p99 ({load.answered_per_second:.0f}/s answered)"
    spent, took = milliseconds(load.cpu_seconds), f"{milliseconds(median)} / {milliseconds(slow)}"
    if load.rate > _EASY_RATE:
        return [Row(what, spent), Row(told, took)]
    return [
        Row(what, spent, f"≤ {_CPU_SECONDS * 1000:.0f} ms", load.cpu_seconds <= _CPU_SECONDS),
        Row(told, took, f"p99 ≤ {_SLOW_SECONDS * 1000:.0f} ms", slow <= _SLOW_SECONDS),
    ]
