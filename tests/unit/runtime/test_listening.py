"""Metrics and probes are answered while other clients keep connections open, and threads have a bound."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from kerf.runtime.process import listening
from kerf.runtime.process.health import TEXT, Answer, Server
from kerf.sockets import loopback


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(0, {"/healthz": lambda: (200, TEXT, b"ok")}, loopback)
    yield made
    made.close()


def plain(server: Server, content: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    connection.sendall(content)
    return connection


def status(server: Server, path: str = "/healthz") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", path)
    found = connection.getresponse().status
    connection.close()
    return found


def threads() -> int:
    return sum("process_request_thread" in one.name for one in threading.enumerate())


@pytest.mark.parametrize("content", [b"", b"GET /hea", b"GET /healthz HTTP/1.1\r\nX: "])
def test_a_probe_is_answered_among_silent_connections(
    server: Server, content: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    others = [plain(server, content) for _ in range(3 * listening.CONNECTIONS)]
    for _ in range(5):
        began = time.monotonic()
        assert status(server) == 200
        assert time.monotonic() - began < 1
    assert threads() <= listening.CONNECTIONS + 5
    for one in others:
        one.close()
    assert capfd.readouterr().err == ""


def test_a_slow_request_has_a_total_time(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "WAIT_SECONDS", 0.3)
    slow, began = plain(server, b"GET /healthz HTTP/1.1\r\nX: "), time.monotonic()
    while still_open(slow) and time.monotonic() - began < 10:
        time.sleep(0.05)
    assert time.monotonic() - began < 5


def still_open(connection: socket.socket) -> bool:
    """Sends one more byte of the request."""
    try:
        connection.sendall(b"x")
    except OSError:
        return False
    return True


def test_clients_that_do_not_read_their_answer_keep_no_scrape_out(capfd: pytest.CaptureFixture[str]) -> None:
    server = Server(0, {"/metrics": lambda: (200, TEXT, bytes(8_000_000))}, loopback)
    others = [plain(server, b"GET /metrics HTTP/1.1\r\n\r\n") for _ in range(2 * listening.REQUESTS)]
    for _ in range(3):
        assert status(server, "/metrics") == 200
    for one in others:
        one.close()
    server.close()
    assert capfd.readouterr().err == ""


def test_so_many_answers_are_worked_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, over = threading.Semaphore(0), threading.Event()

    def long() -> Answer:
        begun.release()
        over.wait(10)
        return 200, TEXT, b"ok"

    server = Server(0, {"/long": long}, loopback)
    others = [plain(server, b"GET /long HTTP/1.1\r\n\r\n") for _ in range(listening.REQUESTS)]
    for _ in others:
        assert begun.acquire(timeout=10)
    assert status(server, "/long") == 503
    over.set()
    for one in others:
        assert one.recv(100).startswith(b"HTTP/1.1 200")
    assert status(server, "/long") == 200
    server.close()
