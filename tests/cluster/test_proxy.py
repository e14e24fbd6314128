"""The proxy between the controller and its servers: what passes, and what each decision does to a request."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import IncompleteRead, RemoteDisconnected
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from .certificates import CertificateAuthority
from .proxy import PASS, Answer, Cut, Decision, Delay, Lose, Pass, Proxy, Request

LINES = 20
BETWEEN_LINES = 0.1
LOST = (ConnectionResetError, RemoteDisconnected)
PODS, WATCH = "/api/v1/namespaces/default/pods", "/api/v1/pods?watch=true&resourceVersion=7"


class Server(ThreadingHTTPServer):
    """Tells what it was asked, and keeps it in mind; a watch is a line every tenth of a second."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[str] = []
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.server.seen.append(f"{self.command} {self.path}")
        self.send_response(200)
        if "watch=true" in self.path:
            self._lines()
            return
        told = json.dumps({"path": self.path, "body": body, "token": self.headers.get("Authorization")}).encode()
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def _lines(self) -> None:
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # whoever watched has gone
            for number in range(LINES):
                line = f"{number}\n".encode()
                self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
                self.wfile.flush()
                time.sleep(BETWEEN_LINES)
            self.wfile.write(b"0\r\n\r\n")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running
        running.shutdown()


@pytest.fixture
def proxy(server: Server, tmp_path: Path) -> Iterator[Proxy]:
    authority = CertificateAuthority(tmp_path)
    with Proxy(kube=server.url, ca_file=authority.certificate, aws=server.url) as running:
        yield running


def _ask(url: str, body: bytes | None = None, **headers: str) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=5) as answer:
        return json.load(answer)


def test_a_request_passes_as_it_is(proxy: Proxy) -> None:
    told = _ask(f"{proxy.kube_url}{PODS}?labelSelector=a%3Db", b'{"kind": "Pod"}', Authorization="Bearer abc")
    assert told == {"path": f"{PODS}?labelSelector=a%3Db", "body": '{"kind": "Pod"}', "token": "Bearer abc"}


def test_a_request_passes_with_another_body(proxy: Proxy) -> None:
    proxy.rule = lambda _: Pass(b"another, and longer")
    assert _ask(proxy.kube_url + PODS, b"one")["body"] == "another, and longer"


@pytest.mark.parametrize(
    ("path", "operation"),
    [
        ("/api/v1/nodes/a", "POST nodes"),
        ("/api/v1/namespaces/kerf", "POST namespaces"),
        ("/api/v1/namespaces/default/pods/a/eviction", "POST pods/eviction"),
        ("/apis/karpenter.sh/v1/nodeclaims/a/status", "POST nodeclaims/status"),
        ("/apis/coordination.k8s.io/v1/namespaces/kerf/leases/leader", "POST leases"),
        ("/version", "POST /version"),
    ],
)
def test_what_is_asked_of_the_api_server_has_a_name(proxy: Proxy, path: str, operation: str) -> None:
    assert _operations(proxy, proxy.kube_url + path, b"{}") == [("kube", operation)]


def test_what_is_asked_of_aws_has_a_name(proxy: Proxy) -> None:
    assert _operations(proxy, proxy.aws_url, b"Action=CreateFleet&Version=2016-11-15") == [("aws", "CreateFleet")]
    target = {"X-Amz-Target": "AmazonSQS.DeleteMessage"}
    assert _operations(proxy, proxy.aws_url, b"{}", **target) == [("aws", "DeleteMessage")]


def _operations(proxy: Proxy, url: str, body: bytes, **headers: str) -> list[tuple[str, str]]:
    seen: list[Request] = []

    def rule(request: Request) -> Decision:
        seen.append(request)
        return PASS

    proxy.rule = rule
    _ask(url, body, **headers)
    return [(request.port, request.operation) for request in seen]


@pytest.mark.parametrize("after", [False, True])
def test_another_answer_is_given_before_or_after_the_effect(proxy: Proxy, server: Server, after: bool) -> None:
    proxy.rule = lambda _: Answer(429, b"slowly", {"Retry-After": "3"}, after=after)
    with pytest.raises(urllib.error.HTTPError) as refused:
        _ask(proxy.kube_url + PODS, b"{}")
    assert (refused.value.code, refused.value.headers["Retry-After"], refused.value.read()) == (429, "3", b"slowly")
    assert server.seen == ([f"POST {PODS}"] if after else [])


@pytest.mark.parametrize("after", [False, True])
def test_a_request_is_lost_before_or_after_the_effect(proxy: Proxy, server: Server, after: bool) -> None:
    seen_by_then: list[list[str]] = []
    proxy.rule = lambda _: Lose(after=after, first=lambda: seen_by_then.append(list(server.seen)))
    with pytest.raises(LOST):
        _ask(proxy.kube_url + PODS, b"{}")
    assert seen_by_then == [[f"POST {PODS}"] if after else []]
    assert server.seen == seen_by_then[0]


def test_a_request_waits(proxy: Proxy, server: Server) -> None:
    proxy.rule = lambda _: Delay(0.5, Answer(500))
    begun = time.monotonic()
    with pytest.raises(urllib.error.HTTPError):
        _ask(proxy.kube_url + PODS)
    assert time.monotonic() - begun >= 0.5
    assert server.seen == []


def test_a_watch_comes_line_by_line(proxy: Proxy) -> None:
    with urllib.request.urlopen(proxy.kube_url + WATCH, timeout=5) as watch:
        assert watch.readline() == b"0\n"
        begun = time.monotonic()
        assert watch.read().split()[-1] == b"%d" % (LINES - 1)
        assert time.monotonic() - begun > 0.5 * LINES * BETWEEN_LINES, "the lines were held back"


def test_a_watch_is_cut_in_the_middle(proxy: Proxy) -> None:
    proxy.rule = lambda request: Cut(0.25) if request.is_watch else PASS
    with (
        urllib.request.urlopen(proxy.kube_url + WATCH, timeout=5) as watch,
        pytest.raises((IncompleteRead, ConnectionResetError)),
    ):
        watch.read()


def test_a_watch_falls_silent(proxy: Proxy) -> None:
    proxy.rule = lambda _: Cut(0.25, silent=True)
    with urllib.request.urlopen(proxy.kube_url + WATCH, timeout=1) as watch, pytest.raises(TimeoutError):
        watch.read()


def test_open_watches_of_a_kind_fall_silent(proxy: Proxy) -> None:
    with urllib.request.urlopen(proxy.kube_url + WATCH, timeout=1) as watch:
        assert watch.readline() == b"0\n"
        assert proxy.silence_watches("GET nodes") == 0
        assert watch.readline() == b"1\n"
        assert proxy.silence_watches("GET pods") == 1
        with pytest.raises(TimeoutError):  # neither a line nor an end comes
            watch.read()
    with urllib.request.urlopen(proxy.kube_url + WATCH, timeout=5) as another:
        assert another.read().split()[-1] == b"%d" % (LINES - 1)


def test_all_watches_are_broken_at_once(proxy: Proxy) -> None:
    with urllib.request.urlopen(proxy.kube_url + WATCH, timeout=5) as watch:
        assert watch.readline() == b"0\n"
        proxy.break_watches()
        with pytest.raises((IncompleteRead, ConnectionResetError)):
            watch.read()


def test_without_its_server_the_proxy_hangs_up(proxy: Proxy, server: Server) -> None:
    server.shutdown()
    server.server_close()
    with pytest.raises(LOST):
        _ask(proxy.kube_url + PODS)
