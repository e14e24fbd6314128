"""The open connections of one listener: one record each, and the limits by client address.

A full listener accepts a new connection in place of the one that has waited longest for its client. So connections that
send nothing cannot keep an API server out, not even one that shares its address with them (behind a proxy).
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one listener. Times are in seconds, sizes in bytes.

    `request_seconds` is the total time of a request, from its first byte (of the first request: from the end of the TLS
    handshake) to the last byte of its body. `buffered_bytes` bounds the bodies of all connections together.
    """

    handshake_seconds: float = 5.0
    request_seconds: float = 10.0
    answer_seconds: float = 10.0
    #: Longer than an API server keeps an idle connection, so that the server does not close it first.
    idle_seconds: float = 120.0
    connections: int = 1000
    connections_per_client: int = 500
    head_bytes: int = 32 * 1024
    body_bytes: int = 3 * 1024 * 1024
    buffered_bytes: int = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Door:
    """How one listener is served.

    `context` returns the TLS context for the next connection (None: plain HTTP). `respond` answers paths in the loop
    itself, without a thread; None: the app answers, in threads.
    """

    limits: Limits
    context: Callable[[], ssl.SSLContext] | None = None
    respond: Callable[[str], tuple[HTTPStatus, str]] | None = None


class Stage(Enum):
    """The state of a connection."""

    HANDSHAKE = auto()
    READ = auto()
    WORK = auto()
    ANSWER = auto()
    IDLE = auto()
    #: The server has closed its half, and discards bytes until the client closes the other.
    LINGER = auto()


class Connection:
    """One accepted connection. Compared by identity."""

    __slots__ = (
        "address", "deadline", "events", "expected", "inbox", "keep", "message", "outbox", "requests", "searched",
        "server", "sock", "stage", "table",
    )  # fmt: skip

    def __init__(self, sock: socket.socket, address: tuple[Any, ...], server: tuple[Any, ...], table: Table) -> None:
        self.sock, self.address, self.server, self.table = sock, address, server, table
        self.stage = Stage.HANDSHAKE
        self.deadline = 0.0
        #: The events that the poller reports for it.
        self.events = 0
        self.inbox = bytearray()
        #: Up to here the inbox has no end of a head.
        self.searched = 0
        #: The parsed head of the request whose body is still incomplete, and the length of that body.
        self.message: Any = None
        self.expected = 0
        self.outbox = memoryview(b"")
        self.keep = False
        self.requests = 0

    @property
    def client(self) -> str:
        """The client's address without the port."""
        return str(self.address[0])


class _Client:
    """The connections of one address, in the order in which a full listener would close them: first those that wait for
    the client, the oldest first, then the idle ones. Connections with a request at work are not closed."""

    __slots__ = ("idle", "waiting", "working")

    def __init__(self) -> None:
        self.waiting: dict[Connection, None] = {}
        self.idle: dict[Connection, None] = {}
        self.working: dict[Connection, None] = {}

    def __len__(self) -> int:
        return len(self.waiting) + len(self.idle) + len(self.working)

    def of(self, stage: Stage) -> dict[Connection, None]:
        if stage is Stage.WORK:
            return self.working
        return self.idle if stage is Stage.IDLE else self.waiting

    def first(self) -> Connection | None:
        return next(iter(self.waiting), None) or next(iter(self.idle), None)


class Table:
    """All open connections of one listener."""

    def __init__(self, door: Door) -> None:
        self.door: Final = door
        self._clients: dict[str, _Client] = {}
        self._number = 0
        #: Bytes of requests that are not answered yet.
        self.buffered = 0

    def __len__(self) -> int:
        return self._number

    def __iter__(self) -> Iterator[Connection]:
        for client in self._clients.values():
            yield from client.waiting
            yield from client.idle
            yield from client.working

    def add(self, connection: Connection) -> None:
        self._clients.setdefault(connection.client, _Client()).of(connection.stage)[connection] = None
        self._number += 1

    def remove(self, connection: Connection) -> None:
        client = self._clients[connection.client]
        del client.of(connection.stage)[connection]
        self._number -= 1
        self.buffered -= held(connection)
        if not len(client):
            del self._clients[connection.client]

    def move(self, connection: Connection, stage: Stage) -> None:
        """Change the stage. The connection becomes the youngest of its group."""
        client = self._clients[connection.client]
        del client.of(connection.stage)[connection]
        connection.stage = stage
        client.of(stage)[connection] = None

    def surplus(self, address: str) -> Connection | None:
        """The connection to close before one of this address is added; None: there is space, or none can be closed."""
        client = self._clients.get(address)
        if client is not None and len(client) >= self.door.limits.connections_per_client:
            return client.first()
        return self.least() if self._number >= self.door.limits.connections else None

    def full(self, address: str) -> bool:
        """Whether no further connection of this address fits."""
        own = self._clients.get(address)
        mine = 0 if own is None else len(own)
        return mine >= self.door.limits.connections_per_client or self._number >= self.door.limits.connections

    def least(self) -> Connection | None:
        """The connection that a full listener closes first: of the address with the most that are not at work."""
        most = max(self._clients.values(), key=lambda one: len(one.waiting) + len(one.idle), default=None)
        return most.first() if most is not None else None

    def largest(self) -> Connection | None:
        """The oldest of the connections that have sent the most of an incomplete request."""
        waiting = (one for client in self._clients.values() for one in client.waiting)
        return max(waiting, key=held, default=None)


def held(connection: Connection) -> int:
    """Bytes of memory for the request that the connection sends, or that is at work."""
    return len(connection.inbox) if connection.stage is not Stage.WORK else len(connection.inbox) + connection.expected
