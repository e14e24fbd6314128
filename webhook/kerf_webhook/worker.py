"""A gunicorn worker whose threads never wait for a client.

One loop accepts, completes TLS handshakes, reads requests and sends answers, all without blocking. Threads get complete
requests and return complete answers. So connections that are silent or slow cost a file descriptor and some memory, and
reviews of other clients are answered meanwhile. gunicorn's own threaded worker keeps a thread for each of them.
"""

from __future__ import annotations

import errno
import socket
import ssl
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any, Final

from gunicorn.workers.gthread import ThreadWorker

from .connections import Connection, Stage, Table, held
from .requests import BadRequest, Outbox, answer, complete

#: How often deadlines are checked, and how long the loop sleeps at most.
TURN_SECONDS: Final = 1.0
#: How long a worker that stops keeps idle connections open for a request that is already on its way.
STOP_SECONDS: Final = 2.0
LINGER_SECONDS: Final = 2.0
#: One event handles so many accepts, or reads, at most, so that each connection gets its turn.
_ACCEPTS: Final = 16
_READS: Final = 8
_CHUNK: Final = 64 * 1024
_AGAIN: Final = (BlockingIOError, ssl.SSLWantReadError)
_OUT_OF_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


@dataclass(frozen=True, slots=True)
class _Exchange:
    """The part of a gunicorn connection that a response needs."""

    sock: Outbox
    client: tuple[Any, ...]
    server: tuple[Any, ...]


class Worker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """Serves the doors of `self.app.doors`, in the order of the listeners."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._tables = [Table(door) for door in self.app.doors]
        #: Complete requests by client address: each address has its turn, and a share of the threads.
        self._ready: OrderedDict[str, deque[tuple[Connection, Any]]] = OrderedDict()
        self._working: dict[str, int] = {}
        self._most_per_client = max(1, self.cfg.threads // 2)
        self._checked = 0.0
        self._certificate_failed = False

    def init_process(self) -> None:
        self._dropped = self.app.dropped
        super().init_process()

    # --- the loop -----------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Serve until the process is asked to stop, then finish the requests that have come."""
        self.poller.register(self.method_queue.fileno(), EVENT_READ, self.method_queue.run_callbacks)
        for listener, table in zip(self.sockets, self._tables, strict=True):
            listener.setblocking(False)
            self.poller.register(listener, EVENT_READ, partial(self._accept, table))
        self.notify()
        while self.alive and self.is_parent_alive():
            self._turn()
        self._stop()

    def _turn(self) -> None:
        self.wait_for_and_dispatch_events(timeout=TURN_SECONDS)
        now = time.monotonic()
        if now - self._checked >= TURN_SECONDS:
            self._checked = now
            self.notify()
            self._expire(now)

    def _expire(self, now: float) -> None:
        for table in self._tables:
            for connection in [one for one in table if one.deadline <= now and one.stage is not Stage.WORK]:
                if connection.stage in (Stage.HANDSHAKE, Stage.READ, Stage.ANSWER):
                    self._dropped("slow")
                self._close(connection)

    def _stop(self) -> None:
        now = time.monotonic()
        for listener, table in zip(self.sockets, self._tables, strict=True):
            self.poller.unregister(listener)
            for connection in table:
                connection.deadline = min(connection.deadline, now + self._patience(connection))
        until = now + float(self.cfg.graceful_timeout)
        while any(len(table) for table in self._tables) and time.monotonic() < until:
            self._turn()
        self.tpool.shutdown(wait=False)
        self.poller.close()
        self.method_queue.close()
        for listener in self.sockets:
            listener.close()

    def _patience(self, connection: Connection) -> float:
        return STOP_SECONDS if connection.stage in (Stage.IDLE, Stage.HANDSHAKE) else float(self.cfg.graceful_timeout)

    # --- connections --------------------------------------------------------------------------------------------
    def _accept(self, table: Table, listener: Any) -> None:
        for _ in range(_ACCEPTS):
            try:
                sock, address = listener.accept()
            except OSError as error:
                if error.errno in _OUT_OF_FILES and (least := table.least()) is not None:
                    self._crowded(least)
                return
            self._open(Connection(sock, address, listener.getsockname(), table))

    def _open(self, connection: Connection) -> None:
        sock, table, context = connection.sock, connection.table, connection.table.door.context
        if (surplus := table.surplus(connection.client)) is not None:
            self._crowded(surplus)
        if table.full(connection.client):
            self._dropped("crowded")
            sock.close()
            return
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                connection.sock = self._context(context).wrap_socket(
                    sock, server_side=True, do_handshake_on_connect=False
                )
        except (OSError, ValueError):
            sock.close()
            return
        limits = table.door.limits
        connection.stage = Stage.READ if context is None else Stage.HANDSHAKE
        seconds = limits.request_seconds if context is None else limits.handshake_seconds
        connection.deadline = time.monotonic() + seconds
        table.add(connection)
        self._watch(connection, EVENT_READ)

    def _context(self, make: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
        """The TLS context. Raises OSError; the log has one line when that begins."""
        try:
            context = make()
        except OSError as error:
            if not self._certificate_failed:
                self.log.error("the certificate cannot be read: %s", error)
            self._certificate_failed = True
            raise
        self._certificate_failed = False
        return context

    def _watch(self, connection: Connection, events: int) -> None:
        if events == connection.events:
            return
        if not events:
            self.poller.unregister(connection.sock)
        elif not connection.events:
            self.poller.register(connection.sock, events, partial(self._happened, connection))
        else:
            self.poller.modify(connection.sock, events, partial(self._happened, connection))
        connection.events = events

    def _close(self, connection: Connection) -> None:
        if connection.events:
            self.poller.unregister(connection.sock)
            connection.events = 0
        connection.table.remove(connection)
        connection.sock.close()

    def _crowded(self, connection: Connection) -> None:
        self._dropped("crowded")
        self._close(connection)

    def _happened(self, connection: Connection, sock: Any) -> None:
        """An event of one connection."""
        if connection.sock.fileno() < 0:
            return  # closed by an earlier event of the same turn
        with self._boundary(connection):
            if connection.stage is Stage.HANDSHAKE:
                self._handshake(connection)
            elif connection.stage is Stage.ANSWER:
                self._send(connection)
            elif connection.stage is Stage.LINGER:
                self._discard(connection)
            elif connection.stage is Stage.WORK:
                self._watch(connection, 0)  # the next request, or the end, comes after the answer
            else:
                self._read(connection)

    @contextmanager
    def _boundary(self, connection: Connection) -> Iterator[None]:
        """A failure ends this connection, and no other. A client that hangs up is not worth a line of the log."""
        try:
            yield
        except OSError:
            self._close(connection)
        except Exception:
            self.log.exception("a connection failed")
            self._close(connection)

    def _handshake(self, connection: Connection) -> None:
        try:
            connection.sock.do_handshake()  # type: ignore[attr-defined]
        except ssl.SSLWantReadError:
            return self._watch(connection, EVENT_READ)
        except ssl.SSLWantWriteError:
            return self._watch(connection, EVENT_WRITE)
        except OSError:
            self._dropped("handshake")
            return self._linger(connection)  # OpenSSL has written an alert
        self._watch(connection, EVENT_READ)
        self._expect(connection)
        return None

    def _expect(self, connection: Connection) -> None:
        """A request begins, and with it its time."""
        connection.deadline = time.monotonic() + connection.table.door.limits.request_seconds
        connection.table.move(connection, Stage.READ)

    # --- requests -----------------------------------------------------------------------------------------------
    def _read(self, connection: Connection) -> None:
        for _ in range(_READS):
            try:
                data = connection.sock.recv(_CHUNK)
            except _AGAIN:
                break
            if not data:
                return self._close(connection)
            if connection.stage is Stage.IDLE:
                self._expect(connection)
            connection.inbox += data
            connection.table.buffered += len(data)
            if self._take(connection):
                return None
        self._shed(connection.table)
        return None

    def _take(self, connection: Connection) -> bool:
        """Start on the request in the inbox, if it is complete."""
        before = held(connection)
        try:
            request = complete(connection, connection.table.door.limits, self.cfg)
        except BadRequest as bad:
            connection.table.buffered += held(connection) - before
            self._refuse(connection, bad.status, str(bad))
            return True
        if request is None:
            connection.table.buffered += held(connection) - before
            return False
        connection.table.move(connection, Stage.WORK)
        connection.table.buffered += held(connection) - before
        respond = connection.table.door.respond
        if respond is not None:
            self._reply(connection, answer(*respond(request.path)), False)
        else:
            self._ready.setdefault(connection.client, deque()).append((connection, request))
            self._dispatch()
            self._shed(connection.table)
        return True

    def _shed(self, table: Table) -> None:
        """Free memory: the largest incomplete requests first, then the last complete ones of the busiest address."""
        while table.buffered > table.door.limits.buffered_bytes:
            if (largest := table.largest()) is not None and held(largest):
                self._crowded(largest)
            elif self._ready:
                busiest = max(self._ready, key=lambda client: len(self._ready[client]))
                connection, _ = self._ready[busiest].pop()
                if not self._ready[busiest]:
                    del self._ready[busiest]
                self._dropped("crowded")
                self._refuse(connection, HTTPStatus.SERVICE_UNAVAILABLE, "too many requests")
            else:
                return

    def _refuse(self, connection: Connection, status: HTTPStatus, text: str) -> None:
        """Answer a request that no thread gets, and end the connection."""
        self.app.refused(status)
        with self._boundary(connection):
            self._reply(connection, answer(status, {"error": text}), False)

    def _dispatch(self) -> None:
        """Hand complete requests to free threads, by turns of the client addresses."""
        for client in list(self._ready):
            if sum(self._working.values()) >= self.cfg.threads:
                return
            if self._working.get(client, 0) >= self._most_per_client:
                continue
            waiting = self._ready.pop(client)
            connection, request = waiting.popleft()
            if waiting:
                self._ready[client] = waiting
            self._working[client] = self._working.get(client, 0) + 1
            done = self.tpool.submit(self._work, connection, request)
            done.add_done_callback(partial(self.method_queue.defer, self._done, connection))

    def _work(self, connection: Connection, request: Any) -> tuple[bytes, bool]:
        """Answer one request, in a thread: the bytes that are left to send, and whether the connection stays open.

        The loop leaves the socket of a request at work alone, so the thread may send. That saves the way by the loop.
        """
        sock = connection.sock
        outbox = Outbox(sock.getpeercert() if isinstance(sock, ssl.SSLSocket) else None, request.headers)
        try:
            keep = self.handle_request(request, _Exchange(outbox, connection.address, connection.server))
            content = outbox.content()
            with suppress(OSError):  # the loop sends the rest, or meets the same error
                content = content[connection.sock.send(content[:_CHUNK]) :]
            return content, bool(keep)
        except Exception:
            self.log.exception("a request failed: %s %s", request.method, request.path)
            self.app.refused(HTTPStatus.INTERNAL_SERVER_ERROR)
            return answer(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "internal error"}), False

    def _done(self, connection: Connection, done: Future[tuple[bytes, bool]]) -> None:
        left = self._working[connection.client] - 1
        if left:
            self._working[connection.client] = left
        else:
            del self._working[connection.client]
        self._dispatch()
        with self._boundary(connection):
            self._reply(connection, *done.result())

    # --- answers ------------------------------------------------------------------------------------------------
    def _reply(self, connection: Connection, content: bytes, keep: bool) -> None:
        before = held(connection)
        connection.outbox, connection.keep = memoryview(content), keep
        connection.deadline = time.monotonic() + connection.table.door.limits.answer_seconds
        connection.table.move(connection, Stage.ANSWER)
        connection.expected = 0
        connection.table.buffered += held(connection) - before
        self._send(connection)

    def _send(self, connection: Connection) -> None:
        while connection.outbox:
            try:
                sent = connection.sock.send(connection.outbox[:_CHUNK])
            except ssl.SSLWantReadError:
                return self._watch(connection, EVENT_READ)
            except (BlockingIOError, ssl.SSLWantWriteError):
                return self._watch(connection, EVENT_WRITE)
            connection.outbox = connection.outbox[sent:]
        self._watch(connection, EVENT_READ)
        if not connection.keep:
            return self._linger(connection)
        if connection.inbox:
            self._expect(connection)
            self._take(connection)
            return None
        idle = connection.table.door.limits.idle_seconds if self.alive else STOP_SECONDS
        connection.deadline = time.monotonic() + idle
        return connection.table.move(connection, Stage.IDLE)

    def _linger(self, connection: Connection) -> None:
        connection.sock.shutdown(socket.SHUT_WR)
        connection.deadline = time.monotonic() + LINGER_SECONDS
        connection.table.move(connection, Stage.LINGER)

    def _discard(self, connection: Connection) -> None:
        """Drop bytes that come after the last answer; else the client may get a reset in place of the answer."""
        for _ in range(_READS):
            try:
                if not connection.sock.recv(_CHUNK):
                    return self._close(connection)
            except _AGAIN:
                return None
        return None
