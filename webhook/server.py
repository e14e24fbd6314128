"""The webhook as a program: gunicorn with threads and TLS around the app.

One process is enough for hundreds of reviews a second, and its metrics are then whole; more processes share the port
and each counts for itself.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from ssl import SSLContext
from typing import Any, Final

from flask import Flask
from gunicorn.app.base import BaseApplication

from .app import Settings, create_app
from .certificate import Certificate

#: Longer than the API server keeps an idle connection, so that it is never the server that hangs up.
KEEP_ALIVE_SECONDS: Final = 120
GRACE_SECONDS: Final = 10
#: A review leaves next to no circles behind: they are looked for after so many objects, not after every 700.
_GARBAGE: Final = 50_000
_IN_MEMORY: Final = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Options:
    """How to serve. Without certificate files the server speaks plain HTTP, for tests and behind a proxy."""

    bind: str = "0.0.0.0:8443"
    cert_file: Path | None = None
    key_file: Path | None = None
    workers: int = 1
    threads: int = 16
    log_level: str = "warning"


def parse_options(arguments: Sequence[str] | None = None) -> Options:
    """Read a command line (that of the process by default). Exits with a message when it is wrong."""
    standard = Options()
    parser = argparse.ArgumentParser(prog="kerf webhook", description="Kerf's admission webhook.")
    parser.add_argument("--bind", default=standard.bind, help="address and port to listen on (default %(default)s)")
    parser.add_argument("--cert-file", type=Path, help="TLS certificate chain, PEM; read again when it changes")
    parser.add_argument("--key-file", type=Path, help="TLS private key, PEM; read again when it changes")
    parser.add_argument("--workers", type=_positive, default=standard.workers, help="processes (default %(default)s)")
    parser.add_argument("--threads", type=_positive, default=standard.threads, help="threads (default %(default)s)")
    parser.add_argument("--log-level", default=standard.log_level, choices=("debug", "info", "warning", "error"))
    found = parser.parse_args(arguments)
    if (found.cert_file is None) != (found.key_file is None):
        parser.error("--cert-file and --key-file belong together")
    return Options(**vars(found))


def run(options: Options | Sequence[str] | None = None, settings: Settings | None = None) -> None:
    """Serve until a signal ends the process. Takes options, a command line, or by default that of the process."""
    chosen = options if isinstance(options, Options) else parse_options(options)
    certificate = Certificate(chosen.cert_file, chosen.key_file) if chosen.cert_file and chosen.key_file else None
    make_app = partial(create_app, settings, certificate.ends if certificate else None)
    _Server(configuration(chosen, certificate), make_app).run()


class _Server(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn, configured by our options and by nothing else: no configuration file, no environment."""

    def __init__(self, configuration: Mapping[str, Any], make_app: Callable[[], Flask]) -> None:
        self._configuration = configuration
        self._make_app = make_app
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._configuration.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        app = self._make_app()
        # What has been made by now stays for good; the garbage collector need not walk it in the middle of a review.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_GARBAGE)
        return app


def configuration(options: Options, certificate: Certificate | None = None) -> Mapping[str, Any]:
    """gunicorn's settings for our options, and the certificate of their files."""
    result: dict[str, Any] = {
        "bind": options.bind,
        "workers": options.workers,
        "threads": options.threads,
        "worker_class": "gthread",
        "keepalive": KEEP_ALIVE_SECONDS,
        "graceful_timeout": GRACE_SECONDS,
        "loglevel": options.log_level,
        "preload_app": True,
        "worker_tmp_dir": str(_IN_MEMORY) if _IN_MEMORY.is_dir() else None,
    }
    if certificate is not None:
        result |= {"certfile": str(options.cert_file), "keyfile": str(options.key_file)}
        result["ssl_context"] = _fresh(certificate)
    return result


def _fresh(certificate: Certificate) -> Callable[[Any, Callable[[], SSLContext]], SSLContext]:
    # gunicorn asks this hook at every connection, which is what lets a new certificate in.
    def context(config: Any, default: Callable[[], SSLContext]) -> SSLContext:
        return certificate.context()

    return context


def _positive(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return number


def main() -> int:
    """Run the command line of the process."""
    run()
    return 0
