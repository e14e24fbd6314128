"""Liveness, readiness and metrics over plain HTTP, on two ports, as Karpenter has them; and what else is asked for.

Source: operations reference §5.1.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler
from types import MappingProxyType
from urllib.parse import parse_qsl

from prometheus_client.exposition import CONTENT_TYPE_LATEST

from kerf.runtime.process.listening import WAIT_SECONDS, Listener
from kerf.sockets import everywhere

#: What a path answers: status, content type, body.
Answer = tuple[int, str, bytes]
#: A method and a path; and what answers a query.
Asked = tuple[str, str]
Route = Callable[[Mapping[str, str]], Answer]
TEXT, JSON = "text/plain; charset=utf-8", "application/json"
_LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})


def check(passed: Callable[[], str], remark: Callable[[], str] = lambda: "") -> Callable[[], Answer]:
    """A probe: `passed` says what is missing, or nothing; `remark` what is worth knowing although nothing is."""

    def answer() -> Answer:
        if missing := passed():
            return 503, TEXT, f"{missing}\n".encode()
        said = remark()
        return 200, TEXT, f"ok\n{said}\n".encode() if said else b"ok\n"

    return answer


def metrics(text: Callable[[], bytes]) -> Callable[[], Answer]:
    """What is written in Prometheus' text format."""
    return lambda: (200, CONTENT_TYPE_LATEST, text())


class Server:
    """A small HTTP server in threads of its own. Port 0 takes any free one; `port` says which.

    `listen` makes its sockets for a port; by default one that takes IPv6 and IPv4 on all addresses.
    """

    def __init__(
        self,
        port: int,
        routes: Mapping[str, Callable[[], Answer]],
        listen: Callable[[int], tuple[socket.socket, ...]] = everywhere,
        *,
        asked: Mapping[Asked, Route] = MappingProxyType({}),
        local: bool = False,
        token: str = "",
    ) -> None:
        """`asked` are routes by method that are given the query. `local`: only who names this host is answered, so
        that no web page of another origin is (by a name that it has made point here). `token`: a request needs it, as
        `Authorization: Bearer TOKEN`; empty: none."""
        plain = {("GET", path): _without_query(route) for path, route in routes.items()}
        handler = _handler({**plain, **asked}, local=local, token=token)
        self._listeners = tuple(Listener(one, handler) for one in listen(port))
        for one in self._listeners:
            threading.Thread(target=one.serve_forever, name=f"http-{self.port}", daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._listeners[0].server_address[1])

    @property
    def addresses(self) -> tuple[str, ...]:
        """On which it listens; `::` stands for all of IPv6 and IPv4."""
        return tuple(str(one.server_address[0]) for one in self._listeners)

    def close(self) -> None:
        for one in self._listeners:
            one.shutdown()
            one.server_close()


def _without_query(route: Callable[[], Answer]) -> Route:
    return lambda query: route()


class _Handler(BaseHTTPRequestHandler):
    """Answers by the routes of a subclass, see `_handler`."""

    routes: Mapping[Asked, Route]
    local: bool
    token: str

    protocol_version = "HTTP/1.1"
    #: The longest wait for the client's next bytes; for a whole request, and in all, the listener has bounds.
    timeout = WAIT_SECONDS
    server: Listener

    def handle(self) -> None:
        # A client that hangs up early (a scraper whose time is over) is not worth a line in the log.
        with suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        self._answer("GET")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def _answer(self, method: str) -> None:
        if not self.server.begin(self.request):
            self.close_connection = True
            self._write(503, TEXT, b"too many requests at once\n")
            return
        try:
            found = self._found(method)
            self.server.write(self.request)
            self._write(*found)
        finally:
            self.server.end(self.request)

    def _found(self, method: str) -> Answer:
        path, _, query = self.path.partition("?")
        route = self.routes.get((method, path.rstrip("/") or "/"))
        if self.local and self.headers.get("Host", "").rpartition(":")[0] not in _LOCAL:
            return 403, TEXT, b"only who names this host is answered\n"
        if self.token and not self._has_token():
            return 401, TEXT, b"the debug port needs its token: Authorization: Bearer TOKEN (DEBUG_TOKEN_FILE)\n"
        if route is None:
            return 404, TEXT, b"not found\n"
        return route(dict(parse_qsl(query)))

    def _has_token(self) -> bool:
        given = self.headers.get("Authorization", "")
        return compare_digest(given.encode(errors="replace"), f"Bearer {self.token}".encode())

    def _write(self, status: int, type_: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", type_)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Probes are not worth a line."""


def _handler(routes: Mapping[Asked, Route], *, local: bool, token: str) -> type[_Handler]:
    """The library makes a handler for each connection, from a class alone: so each server has a class of its own."""
    return type("_HandlerOfServer", (_Handler,), {"routes": routes, "local": local, "token": token})
