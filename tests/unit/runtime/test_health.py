"""Probes and metrics over real sockets."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest

from reconciler.runtime.health import Server, check, metrics


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
    made = Server(0, {"/readyz": check(probe), "/metrics": metrics(lambda: generate_latest(registry))}, "127.0.0.1")
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
