"""Liveness, readiness and metrics over plain HTTP, on two ports, as Karpenter has them.

Source: operations reference §5.1.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client.exposition import CONTENT_TYPE_LATEST

#: What a path answers: status, content type, body.
Answer = tuple[int, str, bytes]
_TEXT = "text/plain; charset=utf-8"


def check(passed: Callable[[], str], remark: Callable[[], str] = lambda: "") -> Callable[[], Answer]:
    """A probe: `passed` says what is missing, or nothing; `remark` what is worth knowing although nothing is."""

    def answer() -> Answer:
        if missing := passed():
            return 503, _TEXT, f"{missing}\n".encode()
        said = remark()
        return 200, _TEXT, f"ok\n{said}\n".encode() if said else b"ok\n"

    return answer


def metrics(text: Callable[[], bytes]) -> Callable[[], Answer]:
    """What is written in Prometheus' text format."""
    return lambda: (200, CONTENT_TYPE_LATEST, text())


class Server:
    """A small HTTP server in threads of its own. Port 0 takes any free one; `port` says which."""

    def __init__(self, port: int, routes: Mapping[str, Callable[[], Answer]], host: str = "") -> None:
        self._server = ThreadingHTTPServer((host, port), _handler(routes))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name=f"http-{self.port}", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(routes: Mapping[str, Callable[[], Answer]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        #: A client that says nothing does not keep a thread.
        timeout = 30

        def do_GET(self) -> None:
            route = routes.get(self.path.partition("?")[0].rstrip("/") or "/")
            status, type_, body = route() if route is not None else (404, _TEXT, b"not found\n")
            self.send_response(status)
            self.send_header("Content-Type", type_)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Probes are not worth a line."""

    return Handler
