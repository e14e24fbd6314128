"""Probes and metrics over real sockets."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest

from kerf.runtime.process.health import TEXT, Answer, Server, check, metrics
from kerf.sockets import loopback


class Probe:
    missing = ""

    def __call__(self) -> str:
        return self.missing


@pytest.fixture
def probe() -> Probe:
    return Probe()


@pytest.fixture
def server(probe: Probe) -> Iterator[Server]:
    registry = CollectorRegistry()
    Counter("seen", "Seen.", registry=registry).inc()
    made = Server(0, {"/readyz": check(probe), "/metrics": metrics(lambda: generate_latest(registry))}, loopback)
    yield made
    made.close()


def get(server: Server, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    connection.request("GET", path)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_a_probe_passes_or_says_what_is_missing(server: Server, probe: Probe) -> None:
    assert get(server, "/readyz?verbose")[0] == 200
    probe.missing = "Pod"
    status, body = get(server, "/readyz")
    assert status == 503
    assert b"Pod" in body


def test_metrics_and_unknown_paths(server: Server) -> None:
    assert b"seen_total 1.0" in get(server, "/metrics")[1]
    assert get(server, "/debug")[0] == 404


def test_who_hangs_up_before_the_answer_is_nothing_to_tell_of(capfd: pytest.CaptureFixture[str]) -> None:
    """A scraper whose time is over; a traceback for each would fill the log."""
    hung_up, answered = threading.Event(), threading.Event()

    def late() -> Answer:
        hung_up.wait(5)
        answered.set()
        return 200, TEXT, bytes(8_000_000)

    server = Server(0, {"/metrics": late, "/livez": lambda: (200, TEXT, b"ok")}, loopback)
    with socket.create_connection(("127.0.0.1", server.port)) as scraper:
        # Closed with a reset: what is written afterwards fails at once.
        scraper.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        scraper.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    hung_up.set()
    assert answered.wait(5)
    assert get(server, "/livez") == (200, b"ok")
    for thread in [one for one in threading.enumerate() if "process_request_thread" in one.name]:
        thread.join(5)
    server.close()
    assert capfd.readouterr().err == ""
