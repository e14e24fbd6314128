"""The command line of `kerf ui-server`."""

from __future__ import annotations

import argparse
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kerf.cli.arguments import Mistake
from kerf.sockets import parse

#: Of tokens for this page alone: other servers do not accept them.
AUDIENCE = "kerf-ui"
PORT = 8445
_LONGEST_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Options:
    """How to serve. Without `tls` the address is one of the loopback interface.

    `tls` has the files of the certificate and its key, `proxy` the file of the CA of proxies and their names, `hosts`
    the names (`name` or `name:port`) by which the page may be asked for.
    """

    bind: tuple[str, int]
    health_bind: tuple[str, int] | None = None
    tls: tuple[Path, Path] | None = None
    proxy: tuple[Path, frozenset[str]] | None = None
    hosts: frozenset[str] = frozenset()
    audiences: tuple[str, ...] = (AUDIENCE,)
    refresh_seconds: float = 60.0


def read(arguments: Sequence[str]) -> Options:
    """The options of a command line. Raises Mistake."""
    found = _parser().parse_args(arguments)
    if (found.cert_file is None) != (found.key_file is None):
        raise Mistake("--cert-file and --key-file belong together")
    tls = None if found.cert_file is None else (found.cert_file, found.key_file)
    bind = _address("--bind", found.bind or (f":{PORT}" if tls else f"127.0.0.1:{PORT}"))
    if tls is None and not _loopback(bind[0]):
        raise Mistake(f"--bind: {found.bind}: without --cert-file the page listens on the loopback address only")
    if not 1 <= found.refresh_seconds <= _LONGEST_SECONDS:
        raise Mistake(f"--refresh-seconds: {found.refresh_seconds:g}: not a time from 1 to {_LONGEST_SECONDS} seconds")
    return Options(
        bind=bind,
        health_bind=_address("--health-bind", found.health_bind) if found.health_bind else None,
        tls=tls,
        proxy=_proxy(found, tls),
        hosts=frozenset(name.lower() for name in (*found.host, *(f"{one}:{bind[1]}" for one in _LOCAL))),
        audiences=tuple(found.audience) or (AUDIENCE,),
        refresh_seconds=found.refresh_seconds,
    )


_LOCAL = ("localhost", "127.0.0.1", "[::1]")


def _proxy(found: argparse.Namespace, tls: object) -> tuple[Path, frozenset[str]] | None:
    if found.proxy_ca_file is None and not found.proxy_name:
        return None
    if found.proxy_ca_file is None or not found.proxy_name or tls is None:
        raise Mistake("--proxy-ca-file, --proxy-name and --cert-file belong together: a proxy is known by mutual TLS")
    return found.proxy_ca_file, frozenset(found.proxy_name)


def _address(option: str, text: str) -> tuple[str, int]:
    try:
        return parse(text)
    except ValueError as error:
        raise Mistake(f"{option}: {error}") from error


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Parser(argparse.ArgumentParser):
    """Raises Mistake in place of ending the process."""

    def error(self, message: str) -> None:  # type: ignore[override]  # it does not return
        raise Mistake(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="kerf ui-server", add_help=False, allow_abbrev=False)
    for name in ("--bind", "--health-bind"):
        parser.add_argument(name, default="")
    for name in ("--cert-file", "--key-file", "--proxy-ca-file"):
        parser.add_argument(name, type=Path)
    for name in ("--host", "--audience", "--proxy-name"):
        parser.add_argument(name, action="append", default=[])
    parser.add_argument("--refresh-seconds", type=float, default=60.0)
    return parser
