"""The server of the page: threads on the loopback address, without TLS."""

from __future__ import annotations

from typing import Final

from flask import Flask
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from kerf.sockets import listening

HOST: Final = "127.0.0.1"
#: Seconds that a client may take for the next part of its request.
_TIMEOUT: Final = 30


class _Handler(WSGIRequestHandler):
    """Without log lines and versions in headers."""

    timeout = _TIMEOUT

    def log(self, *_: object) -> None:
        """Requests of one person on the same machine are not logged."""

    def version_string(self) -> str:
        return "kerf"


def bound(port: int) -> tuple[int, int]:
    """A descriptor that listens on the loopback address, and its port; 0 asks for a free one. Raises OSError."""
    socket = listening(HOST, port)
    found = int(socket.getsockname()[1])
    return socket.detach(), found


def hosts(port: int) -> tuple[str, ...]:
    """The names by which a browser of this machine may ask."""
    return f"{HOST}:{port}", f"localhost:{port}"


def server(app: Flask, descriptor: int, port: int) -> BaseWSGIServer:
    """The server on a descriptor that listens; `serve_forever` runs it, `shutdown` ends it."""
    return make_server(HOST, port, app, threaded=True, request_handler=_Handler, fd=descriptor)
