"""An HTTP server of few threads: a bound of connections, and a bound of the time that each may wait.

A full server accepts a new connection in place of the one that has waited longest for its client. So a probe of the
kubelet is answered while others keep connections open.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

#: Open connections of one server, and how many requests it works on at once.
CONNECTIONS: Final = 64
REQUESTS: Final = 16
#: How long a connection waits for a whole request, be it idle or slow.
WAIT_SECONDS: Final = 30.0


class Listener(ThreadingHTTPServer):
    """`handler` calls `begin` before it works on a request, `write` before it writes the answer, then `end`."""

    daemon_threads = True

    def __init__(self, listening: socket.socket, handler: type[BaseHTTPRequestHandler]) -> None:
        self._lock = threading.RLock()
        #: The time since when each connection waits for its client, in seconds from anywhere, the oldest first.
        self._waiting: dict[Any, float] = {}
        self._working: set[Any] = set()
        #: Connections whose client reads the answer, the oldest first. An answer can be large.
        self._writing: dict[Any, None] = {}
        super().__init__(listening.getsockname(), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start the thread of a connection. A server that is busy with as many requests closes it instead."""
        with self._lock:
            if len(self._waiting) + len(self._working) + len(self._writing) >= CONNECTIONS:
                oldest = next(iter((*self._waiting, *self._writing)), None)
                if oldest is None:
                    self.shutdown_request(request)
                    return
                self._drop(oldest)
            self._waiting[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._waiting.pop(request, None)
            self._working.discard(request)
            self._writing.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Drop connections that have waited too long. The server's loop calls it twice a second."""
        late = time.monotonic() - WAIT_SECONDS
        with self._lock:
            for request in [one for one, since in self._waiting.items() if since < late]:
                self._drop(request)

    def begin(self, request: Any) -> bool:
        """A request is complete. False: the server works on too many."""
        with self._lock:
            if request not in self._waiting:
                return False
            if len(self._working) + len(self._writing) >= REQUESTS:
                if not self._writing:
                    return False
                self._drop(next(iter(self._writing)))
            del self._waiting[request]
            self._working.add(request)
            return True

    def write(self, request: Any) -> None:
        """The answer is there. From now on the client may be the one that is slow."""
        with self._lock:
            self._working.discard(request)
            self._writing[request] = None

    def end(self, request: Any) -> None:
        """The answer is written; the connection waits for the next request."""
        with self._lock:
            self._working.discard(request)
            if request in self._writing:
                del self._writing[request]
                self._waiting[request] = time.monotonic()

    def _drop(self, request: Any) -> None:
        self._waiting.pop(request, None)
        self._writing.pop(request, None)
        with suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)  # its thread reads the end, and closes it
