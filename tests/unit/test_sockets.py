"""Sockets that listen: on both families, on IPv4 alone where there is no IPv6, and what an address looks like."""

from __future__ import annotations

import errno
import socket
import subprocess
import sys
from contextlib import suppress
from typing import Any

import pytest

from kerf import sockets
from tests.ipv6 import HAS_IPV6

#: In a network of its own: no address is there but those of `lo`, and its switches are this program's alone.
_ALONE = """
import pathlib, socket
from kerf.sockets import everywhere, loopback
def switch(name, value):
    pathlib.Path("/proc/sys/net/ipv6", name).write_text(value)
switch("bindv6only", "1")
(one,) = everywhere(0)
print(one.family.name, one.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY))
switch("conf/all/disable_ipv6", "1")
print(everywhere(0)[0].family.name, [one.getsockname()[0] for one in loopback(0)])
"""


def answers(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=5):
            return True
    except OSError:
        return False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":8443", ("", 8443)),
        ("0.0.0.0:8443", ("0.0.0.0", 8443)),
        ("[::]:8443", ("::", 8443)),
        ("[::1]:0", ("::1", 0)),
        ("localhost:1", ("localhost", 1)),
        ("*:65535", ("*", 65535)),
    ],
)
def test_an_address_has_a_host_and_a_port(text: str, expected: tuple[str, int]) -> None:
    assert sockets.parse(text) == expected


@pytest.mark.parametrize(
    "text", ["", "8443", "::1", "::1:8443", ":", ":x", ":65536", ":-1", "[::1]", "unix:/run/s", ":²"]
)
def test_another_text_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"\[::1\]:8443"):
        sockets.parse(text)


@pytest.mark.parametrize("host", ["", "*", "::"])
def test_all_addresses_are_those_of_both_families(host: str) -> None:
    with sockets.listening(host, 0) as one:
        port = one.getsockname()[1]
        assert answers("127.0.0.1", port)
        assert (one.family == socket.AF_INET6) is HAS_IPV6
        assert not HAS_IPV6 or answers("::1", port)


def test_an_address_of_one_family_is_that_family_alone() -> None:
    with sockets.listening("0.0.0.0", 0) as one:
        assert one.family == socket.AF_INET
        assert answers("127.0.0.1", one.getsockname()[1])
        assert not answers("::1", one.getsockname()[1])


def test_a_kernel_without_ipv6_gets_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.socket

    def without(family: int = socket.AF_INET, *arguments: Any, **named: Any) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return real(family, *arguments, **named)

    monkeypatch.setattr(socket, "socket", without)
    (everywhere,) = sockets.everywhere(0)
    (loopback,) = sockets.loopback(0)
    monkeypatch.undo()
    with everywhere, loopback:
        assert answers("127.0.0.1", everywhere.getsockname()[1])
        assert answers("127.0.0.1", loopback.getsockname()[1])


def test_an_address_that_is_switched_off_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.create_server

    def without(address: tuple[str, int], **named: Any) -> socket.socket:
        if named.get("family") == socket.AF_INET6:
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
        return real(address, **named)

    monkeypatch.setattr(socket, "create_server", without)
    found: list[socket.socket] = []
    with suppress(OSError):
        found = [*sockets.everywhere(0), *sockets.loopback(0)]
    assert [one.family for one in found] == [socket.AF_INET, socket.AF_INET]
    for one in found:
        one.close()


@pytest.mark.parametrize("listen", [sockets.everywhere, sockets.loopback])
def test_a_port_that_is_taken_is_an_error_and_no_reason_for_ipv4_alone(listen: Any) -> None:
    with sockets.listening("::1" if HAS_IPV6 else "127.0.0.1", 0) as other, pytest.raises(OSError, match="in use"):
        listen(other.getsockname()[1])


def test_the_switches_of_the_node_do_not_matter() -> None:
    command = ["unshare", "--map-root-user", "--net", sys.executable, "-c", _ALONE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if "unshare" in done.stderr or not HAS_IPV6:  # this machine lets nobody have a network of their own
        with sockets.listening("", 0) as one:
            assert not HAS_IPV6 or one.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 0
        return
    assert (done.stderr, done.stdout.splitlines()) == ("", ["AF_INET6 0", "AF_INET6 ['127.0.0.1']"])
