"""A tiny API server on a real socket that answers from a script, and notes what it was asked."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubernetes.client import Configuration

#: Answers a request; writes to the handler itself, or returns (status, body).
Route = Callable[["Handler"], "tuple[int, Any] | None"]


class Handler(BaseHTTPRequestHandler):
    """One request. `query` and `body` are parsed; `stream` sends lines as the API server's watches do."""

    protocol_version = "HTTP/1.1"
    double: ApiDouble
    query: Mapping[str, str]
    body: Any

    def any_method(self) -> None:
        parts = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.body = json.loads(raw) if raw and "json" in self.headers.get("Content-Type", "") else raw or None
        self.double.requests.append((self.command, parts.path, dict(self.headers), self.body))
        answer = self.double.routes[f"{self.command} {parts.path}"](self)
        if answer is not None:
            self._answer(*answer)

    def _answer(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def stream(self, raw: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))
        self.wfile.flush()

    def end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Tests are quiet."""


for _method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
    setattr(Handler, f"do_{_method}", Handler.any_method)


class ApiDouble:
    """A context manager. `routes` maps `METHOD /path` to what answers it; `ended` is set when a test is over."""

    def __init__(self) -> None:
        self.routes: dict[str, Route] = {}
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.ended = threading.Event()

    def __enter__(self) -> ApiDouble:
        handler = type("BoundHandler", (Handler,), {"double": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def serve_tls(self, context: ssl.SSLContext) -> None:
        """From now on. A handshake that fails is the client's to tell."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)

    def configuration(self) -> Configuration:
        configuration = Configuration()
        configuration.host = f"http://127.0.0.1:{self._server.server_address[1]}"
        return configuration
