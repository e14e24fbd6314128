"""Requests as bytes: what gunicorn and the worker make of headers before the gate reads them."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from kerf.cli.gate.claims import LONGEST_TOKEN
from kerf.sockets import listening
from tests.sources import ROOT, python_path
from tests.unit.gate.served import LONG_TOKEN
from tests.unit.gate.worlds import SECRET

#: For a machine that stalls.
WAIT_SECONDS = 60.0


@pytest.fixture(scope="module")
def ports() -> Iterator[tuple[int, int]]:
    """Of the page, and of its probes and metrics."""
    with listening("127.0.0.1", 0) as one, listening("127.0.0.1", 0) as other:
        number, health = (int(free.getsockname()[1]) for free in (one, other))
    command = [sys.executable, "-m", "tests.unit.gate.served", str(number), str(health)]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": python_path()})
    try:
        until = time.monotonic() + WAIT_SECONDS
        while b"200 OK" not in answer(number, "Authorization: Bearer admin-token"):
            assert time.monotonic() < until
            time.sleep(0.1)
        yield number, health
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=WAIT_SECONDS) == 0


def answer(port: int, *headers: str, path: str = "/") -> bytes:
    """The bytes of the answer to a request with these headers; empty while nothing listens."""
    head = [f"GET {path} HTTP/1.1", f"Host: localhost:{port}", "Connection: close", *headers]
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS) as connection:
            connection.sendall("\r\n".join((*head, "", "")).encode("latin-1"))
            return b"".join(iter(lambda: connection.recv(65536), b""))
    except ConnectionError:
        return b""


@pytest.mark.parametrize(
    ("headers", "status", "text"),
    [
        (["Authorization: Bearer admin-token"] * 2, 400, b"Authorization: sent 2 times: send it once"),
        (["authorization: Bearer admin-token", "AUTHORIZATION: Bearer none-token"], 400, b"sent 2 times"),
        (["Authorization: Bearer admin-token", "X-Remote-User: a", "X-Remote-User: a"], 400, b"X-Remote-User: sent 2"),
        (["Authorization: Bearer admin-token", "X_Remote_User: a", "X-Remote-User: b"], 400, b"X_REMOTE_USER"),
        (["Authorization: Bearer admin-token", "X-Remote-Extra-Team_name: a"], 400, b"X-REMOTE-EXTRA-TEAM_NAME"),
        (["Authorization: Bearer admin-token", "X-Remote-Extra-Team%5Fname: a"], 200, b"node-a"),
        (["Authorization: Bearer admin-token", *["X-Remote-Group: a"] * 256], 200, b"node-a"),
        (["Authorization: Bearer admin-token", *["A: b"] * 500], 431, b"at most 421 headers"),
        ([f"Authorization: Bearer {LONG_TOKEN}"], 200, b"node-a"),
        ([f"Authorization: Bearer {LONG_TOKEN}y"], 401, b"a token has at most 16384 characters"),
        ([f"Authorization: Bearer {LONG_TOKEN}{'y' * 100}"], 431, b"headers of 16448 bytes each"),
        (["X-Remote-User: ann"], 401, b"Authorization: missing"),
    ],
)
def test_headers(ports: tuple[int, int], headers: list[str], status: int, text: bytes) -> None:
    found = answer(ports[0], *headers)
    assert found.startswith(f"HTTP/1.1 {status} ".encode()), found[:200]
    assert text in found
    assert (b"node-a" in found) is (status == 200)


@pytest.mark.parametrize(
    ("path", "status", "place"),
    [
        ("//nodes//x", 308, "/nodes/x"),
        ("//", 200, ""),
        ("//evil.example/nodes", 404, ""),
        ("//evil.example//", 404, ""),
        ("/nodes/../x", 404, ""),
    ],
)
def test_addresses_that_are_no_page(ports: tuple[int, int], path: str, status: int, place: str) -> None:
    """A redirect leads to this page, never to a host that the address names."""
    found = answer(ports[0], "Authorization: Bearer admin-token", path=path)
    head, _, body = found.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode()), head
    assert body
    location = re.search(rb"(?im)^location: (.*?)\r?$", head)
    assert (location[1].decode() if location else "") == (f"http://localhost:{ports[0]}{place}" if place else "")


def test_a_proxys_extra_header_reaches_the_worker_with_its_signs(ports: tuple[int, int]) -> None:
    """Without a certificate it is ignored; a header with such a name is no error."""
    extra = "X-Remote-Extra-Acme.com%2Fproject: a"
    assert b"200 OK" in answer(ports[0], "Authorization: Bearer admin-token", extra)


def test_metrics_have_a_port_of_their_own_and_hold_no_name(ports: tuple[int, int]) -> None:
    answer(ports[0], "Authorization: Bearer admin-token")
    answer(ports[0], "Authorization: Bearer stranger-token")
    answer(ports[0], "Authorization: Bearer nobody")
    answer(ports[0], "Authorization: Bearer a", "Authorization: Bearer b")
    answer(ports[0], f"Authorization: Bearer {LONG_TOKEN}{'y' * 100}")
    text = answer(ports[1], path="/metrics").decode()
    for code in (200, 400, 401, 403, 431):
        assert f'kerf_page_requests_total{{code="{code}"}}' in text, text
    for kind in ("TokenReview", "SubjectAccessReview"):
        for outcome in ("allowed", "denied"):
            assert f'kerf_page_reviews_total{{kind="{kind}",outcome="{outcome}"}}' in text, text
    assert "kerf_page_views_duration_seconds_count 1.0" in text
    assert not {"ann", "shop", SECRET} & set(re.findall(r"\w+", text))
    assert b"404" in answer(ports[0], "Authorization: Bearer admin-token", path="/metrics")[:20]


def test_the_longest_token_is_the_documented_one() -> None:
    assert f"{LONGEST_TOKEN:,} characters" in (ROOT / "docs/ui.md").read_text(encoding="utf-8")
