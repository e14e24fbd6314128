"""The webhook as a program: gunicorn with threads and TLS around the app.

One process is enough for hundreds of reviews a second, and its metrics are then whole; more processes share the port
and each counts for itself.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from flask import Flask
from gunicorn.app.base import BaseApplication

from kerf.sockets import listening, parse

from .app import Metrics, Settings, create_app
from .certificate import Certificate
from .connections import Door, Limits
from .worker import Worker

#: Host and port.
Address = tuple[str, int]
GRACE_SECONDS: Final = 10
_LIMITS: Final = Limits()
#: An API server waits for a webhook 30 seconds at most.
_LONGEST_SECONDS: Final = 30.0
#: Kubelets send one request at a time, and a short one.
_HEALTH_LIMITS: Final = Limits(
    request_seconds=5.0, answer_seconds=5.0, connections=64, connections_per_client=32, body_bytes=0
)
_HEALTH_PATHS: Final = ("/healthz", "/readyz")
#: A review leaves next to no circles behind: they are looked for after so many objects, not after every 700.
_GARBAGE: Final = 50_000
#: Connections that wait to be accepted; gunicorn's own default.
_BACKLOG: Final = 2048
_IN_MEMORY: Final = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Options:
    """How to serve. Without certificate files the server speaks plain HTTP, for tests and behind a proxy.

    `health_bind` is the address of /healthz and /readyz over plain HTTP; None: none. `bind` serves both, too. An
    address is a host and a port; an empty host stands for all addresses, IPv6 and IPv4.
    """

    bind: Address = ("", 8443)
    health_bind: Address | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    workers: int = 1
    threads: int = 16
    connections: int = _LIMITS.connections
    connections_per_client: int = _LIMITS.connections_per_client
    handshake_seconds: float = _LIMITS.handshake_seconds
    request_seconds: float = _LIMITS.request_seconds
    log_level: str = "warning"


def parse_options(arguments: Sequence[str] | None = None) -> Options:
    """Read a command line (that of the process by default). Exits with a message when it is wrong."""
    parser = _parser(Options())
    found = parser.parse_args(arguments)
    if (found.cert_file is None) != (found.key_file is None):
        parser.error("--cert-file and --key-file belong together")
    return Options(**vars(found))


def _parser(standard: Options) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kerf webhook", description="Kerf's admission webhook.")
    parser.add_argument(
        "--bind",
        type=_address,
        default=standard.bind,
        help="address and port to listen on, such as :8443 or [::1]:8443; no address: all, IPv6 and IPv4 (default "
        f":{standard.bind[1]})",
    )
    parser.add_argument(
        "--health-bind",
        type=lambda text: _address(text) if text else None,
        default=standard.health_bind,
        help="address and port of /healthz and /readyz over plain HTTP; empty: none (default)",
    )
    parser.add_argument("--cert-file", type=Path, help="TLS certificate chain, PEM; read again when it changes")
    parser.add_argument("--key-file", type=Path, help="TLS private key, PEM; read again when it changes")
    parser.add_argument("--workers", type=_positive, default=standard.workers, help="processes (default %(default)s)")
    parser.add_argument("--threads", type=_positive, default=standard.threads, help="threads (default %(default)s)")
    _add_limits(parser, standard)
    parser.add_argument("--log-level", default=standard.log_level, choices=("debug", "info", "warning", "error"))
    return parser


def _add_limits(parser: argparse.ArgumentParser, standard: Options) -> None:
    parser.add_argument(
        "--connections",
        type=_positive,
        default=standard.connections,
        help="open connections; one more replaces the one that has waited longest (default %(default)s)",
    )
    parser.add_argument(
        "--connections-per-client",
        metavar="NUMBER",
        type=_positive,
        default=standard.connections_per_client,
        help="the same for one client address, such as an API server's or its proxy's (default %(default)s)",
    )
    parser.add_argument(
        "--handshake-seconds",
        type=_seconds,
        default=standard.handshake_seconds,
        help="time limit of a TLS handshake (default %(default)g)",
    )
    parser.add_argument(
        "--request-seconds",
        type=_seconds,
        default=standard.request_seconds,
        help="total time to send a request, and again to read the answer (default %(default)g)",
    )


def run(options: Options | Sequence[str] | None = None, settings: Settings | None = None) -> None:
    """Serve until a signal ends the process. Takes options, a command line, or by default that of the process."""
    chosen = options if isinstance(options, Options) else parse_options(options)
    certificate = Certificate(chosen.cert_file, chosen.key_file) if chosen.cert_file and chosen.key_file else None
    try:
        server = _Server(chosen, certificate, settings or Settings())
    except (OSError, OverflowError) as error:
        sys.exit(f"kerf webhook: cannot listen: {error}")
    server.run()


class _Server(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn, configured by our options and by nothing else: no configuration file, no environment."""

    def __init__(self, options: Options, certificate: Certificate | None, settings: Settings) -> None:
        """Raises OSError when an address cannot be listened on."""
        self._options, self._settings = options, settings
        #: Descriptors of listening sockets: those that gunicorn opens leave IPv4 to the kernel's settings.
        self._bound: Final = [f"fd://{listening(*one, _BACKLOG).detach()}" for one in addresses(options)]
        self._metrics: Final = Metrics(certificate.ends if certificate else None)
        #: In the order of the addresses; the worker reads them.
        self.doors: Final = doors(options, certificate, settings)
        super().__init__()

    def load_config(self) -> None:
        for name, value in configuration(self._options).items():
            self.cfg.set(name, value)
        self.cfg.set("bind", self._bound)

    def load(self) -> Flask:
        app = create_app(self._settings, self._metrics)
        # What has been made by now stays permanently; the garbage collector need not walk it in the middle of a review.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_GARBAGE)
        return app

    def dropped(self, reason: str) -> None:
        """Count a connection that the worker closed."""
        self._metrics.dropped.labels(reason).inc()

    def refused(self, status: HTTPStatus) -> None:
        """Count a request that the worker answered without the app."""
        self._metrics.rejected.labels(str(status.value)).inc()


def addresses(options: Options) -> tuple[Address, ...]:
    """Where to listen: for reviews, then for probes if they have an address of their own."""
    return (options.bind,) if options.health_bind is None else (options.bind, options.health_bind)


def doors(
    options: Options,
    certificate: Certificate | None,
    settings: Settings,
    more: Mapping[str, Callable[[], str]] = MappingProxyType({}),
) -> tuple[Door, ...]:
    """One for each address: that of the reviews, and that of the probes if there is one. `more` are further paths of
    the probes' address, with their texts."""
    limits = Limits(
        connections=options.connections,
        connections_per_client=options.connections_per_client,
        handshake_seconds=options.handshake_seconds,
        request_seconds=options.request_seconds,
        answer_seconds=options.request_seconds,
        body_bytes=settings.body_bytes,
    )
    reviews = Door(limits, certificate.context if certificate else None)
    if options.health_bind is None:
        return (reviews,)

    def health(path: str) -> tuple[HTTPStatus, str]:
        if path in more:
            return HTTPStatus.OK, more[path]()
        if path not in _HEALTH_PATHS:
            return HTTPStatus.NOT_FOUND, "not found\n"
        try:
            if path == "/readyz" and certificate is not None:
                certificate.context()
        except OSError as error:
            return HTTPStatus.SERVICE_UNAVAILABLE, f"the certificate cannot be read: {error}\n"
        return HTTPStatus.OK, "ok\n"

    return reviews, Door(_HEALTH_LIMITS, respond=health)


def configuration(options: Options) -> Mapping[str, Any]:
    """gunicorn's settings for our options."""
    result: dict[str, Any] = {
        "workers": options.workers,
        "threads": options.threads,
        "worker_class": Worker,
        "graceful_timeout": GRACE_SECONDS,
        "loglevel": options.log_level,
        "preload_app": True,
        "worker_tmp_dir": str(_IN_MEMORY) if _IN_MEMORY.is_dir() else None,
        # A socket through which another process could stop the workers, in a folder of the user.
        "control_socket_disable": True,
        # The worker keeps connections, and closes them in its own time; for gunicorn only "not 0" counts.
        "keepalive": int(_LIMITS.idle_seconds),
        "worker_connections": options.connections + options.threads,
    }
    if options.cert_file is not None:
        result |= {"certfile": str(options.cert_file), "keyfile": str(options.key_file)}
    return result


def _address(text: str) -> Address:
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _positive(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return number


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of seconds, more than 0, at most {_LONGEST_SECONDS:g}"
        )
    return seconds


def main() -> int:
    """Run the command line of the process."""
    run()
    return 0
