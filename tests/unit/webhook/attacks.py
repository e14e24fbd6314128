"""Clients that keep connections of the webhook open, each in its own way, and an honest client."""

from __future__ import annotations

import http.client
import json
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from tests.unit.api.manifests import NODEPOOL

from .reviews import review
from .test_server import Server

HEAD: Final = b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
BODY: Final = json.dumps(review(NODEPOOL)).encode()
WHOLE: Final = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
BULK: Final = b"a" * 500_000
#: A TLS ClientHello begins so; the rest never comes.
HALF_HELLO: Final = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


def plain(server: Server, address: str = "127.0.0.1") -> socket.socket:
    """A TCP connection from an address of the loopback network."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=20, source_address=(address, 0))


def trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def secure(server: Server, address: str = "127.0.0.1") -> ssl.SSLSocket:
    """The same after a TLS handshake."""
    return trusting().wrap_socket(plain(server, address))


def sent(connection: socket.socket, *parts: bytes) -> socket.socket:
    for part in parts:
        connection.sendall(part)
    return connection


def shut(connection: socket.socket) -> socket.socket:
    connection.shutdown(socket.SHUT_WR)
    return connection


def unread(server: Server) -> socket.socket:
    """Asks for many large answers, and reads none."""
    connection = secure(server)
    connection.settimeout(0.05)
    try:
        while True:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
    except (TimeoutError, ssl.SSLError):
        return connection


def asked_once(server: Server, *, end: bytes = b"") -> socket.socket:
    """Has had an answer, and says no more (with `end`: `Connection: close`, and does not close)."""
    connection = sent(secure(server), b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + end + b"\r\n")
    connection.recv(100)
    return connection


#: By name: the number of connections, how each begins, and the byte that some of them send at times.
ATTACKS: Final[dict[str, tuple[int, Callable[[Server], socket.socket], bytes]]] = {
    "silent": (200, plain, b""),
    "silent after the handshake": (60, secure, b""),
    "half a handshake": (60, lambda server: sent(plain(server), HALF_HELLO), b""),
    "a handshake by bytes": (40, lambda server: sent(plain(server), HALF_HELLO), b"\x00"),
    "a slow head": (40, lambda server: sent(secure(server), HEAD, b"X-A: "), b"a"),
    "an empty body": (20, lambda server: sent(secure(server), WHOLE[: -len(BODY)]), b""),
    "a slow body": (20, lambda server: sent(secure(server), WHOLE[: -len(BODY)], b"{"), b" "),
    "a slow chunked body": (20, lambda server: sent(secure(server), HEAD, b"Transfer-Encoding: chunked\r\n\r\n"), b"1"),
    "half closed": (60, lambda server: shut(sent(plain(server), HALF_HELLO)), b""),
    "half closed after the handshake": (30, lambda server: shut(sent(secure(server), HEAD)), b""),
    "idle": (60, asked_once, b""),
    "not closed": (40, lambda server: asked_once(server, end=b"Connection: close\r\n"), b""),
    "answers unread": (8, unread, b""),
    "pipelined": (20, lambda server: sent(secure(server), WHOLE * 20), b""),
    "a huge head": (20, lambda server: sent(secure(server), HEAD, b"X-A: " + b"a" * 60_000), b"a"),
    "a huge body": (20, lambda server: sent(secure(server), HEAD, b"Content-Length: 9999999999\r\n\r\n"), b"a"),
    "a large body": (30, lambda server: sent(secure(server), HEAD, b"Content-Length: 3000000\r\n\r\n" + BULK), b""),
    "no HTTP": (40, lambda server: sent(secure(server), b"\x00\xff\r\n\r\n" * 20), b"x"),
    "no TLS": (60, lambda server: sent(plain(server), WHOLE), b""),
}  # fmt: skip


@contextmanager
def attacked(server: Server, name: str, *, every: float = 0.3) -> Iterator[list[socket.socket]]:
    """The connections of an attack, which come back when the server closes them, until the block ends."""
    number, begin, byte = ATTACKS[name]
    over, held = threading.Event(), [begin(server) for _ in range(number)]

    def drive() -> None:
        while not over.wait(every):
            for place, connection in enumerate(held):
                try:
                    if closed(connection):
                        connection.close()
                        held[place] = begin(server)
                    elif byte:
                        connection.send(byte)
                except OSError:
                    continue

    driver = threading.Thread(target=drive)
    driver.start()
    try:
        yield held
    finally:
        over.set()
        driver.join()
        for connection in held:
            connection.close()


def closed(connection: socket.socket) -> bool:
    """Whether the other side has closed it. Reads what has come, if anything."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        if not selector.select(0):
            return False
    connection.setblocking(False)
    try:
        return not connection.recv(4096)
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True
    finally:
        connection.settimeout(20)


def reviewed(server: Server, number: int) -> list[float]:
    """Seconds that each of so many reviews took, every other one on a connection of its own, the rest on one."""
    kept, took, trusted = server.connect(), [], trusting()
    for turn in range(number):
        began = time.perf_counter()
        connection = kept
        if turn % 2:
            connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=20, context=trusted)
        connection.request("POST", "/validate", BODY, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert json.loads(answer.read())["response"]["allowed"], answer.status
        took.append(time.perf_counter() - began)
        if connection is not kept:
            connection.close()
    return took


def healthy(server: Server) -> float:
    """Seconds that the probe of the health port took."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", server.health_port, timeout=20)
    connection.request("GET", "/readyz")
    assert connection.getresponse().status == 200
    connection.close()
    return time.perf_counter() - began
