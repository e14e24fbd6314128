"""Listening sockets of every server: over IPv6 and IPv4 at once, over IPv4 alone where the kernel has no IPv6.

A pod of an IPv6 cluster has one address, an IPv6 one. Whether a socket for all addresses takes IPv4 too is set on the
socket itself: the node's `net.ipv6.bindv6only` does not matter. Source: ipv6(7).
"""

from __future__ import annotations

import errno
import socket
from typing import Final

#: With a short queue a burst of connections has the kernel drop the next one, which then takes a second or more.
BACKLOG: Final = 128
_ALL: Final = ("", "*", "::")
#: What a kernel without IPv6 answers, and one on which it is switched off.
_NO_IPV6: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT)
_HIGHEST_PORT: Final = 65535


def parse(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`, `[IPV6]:PORT` or `:PORT` (all addresses). Raises ValueError."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > _HIGHEST_PORT:
        raise ValueError(f"{text!r} is not an address and a port, such as :8443, 0.0.0.0:8443 or [::1]:8443")
    if ":" in host and not bracketed:
        raise ValueError(f"{text!r}: an IPv6 address is written in brackets, as in [::1]:8443")
    return host[1:-1] if bracketed else host, int(port)


def listening(host: str, port: int, backlog: int = BACKLOG) -> socket.socket:
    """A socket that listens, with a queue of so many connections. Port 0 takes any free one.

    An empty host, `*` and `::` stand for all addresses of both families, `0.0.0.0` for all IPv4 addresses. Raises
    OSError, OverflowError (no such port).
    """
    if host not in _ALL:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=backlog)
    try:
        if socket.has_dualstack_ipv6():
            return socket.create_server(("::", port), family=socket.AF_INET6, backlog=backlog, dualstack_ipv6=True)
    except OSError as error:
        if error.errno not in _NO_IPV6:
            raise
    return socket.create_server(("", port), backlog=backlog)


def everywhere(port: int) -> tuple[socket.socket, ...]:
    """A socket for all addresses. Raises as `listening` does."""
    return (listening("", port),)


def loopback(port: int) -> tuple[socket.socket, ...]:
    """Sockets on 127.0.0.1 and, where the kernel has IPv6, on ::1, with one port. Raises as `listening` does."""
    first = listening("127.0.0.1", port)
    try:
        return first, listening("::1", int(first.getsockname()[1]))
    except OSError as error:
        if error.errno in _NO_IPV6:
            return (first,)
        first.close()
        raise
