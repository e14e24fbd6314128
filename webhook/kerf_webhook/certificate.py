"""A TLS certificate that may be replaced at any time, without a restart.

The controller (or cert-manager) renews the certificate by writing new files; Kubernetes shows them in the mounted
folder a little later. Every new connection looks at the files' stamps, which costs microseconds, and loads them again
only when they changed. Files that do not fit together yet, because only one of the two has arrived, are passed over:
the old certificate is served until both are there.
"""

from __future__ import annotations

import math
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from cryptography import x509

Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _Loaded:
    stamps: tuple[Stamp, ...]
    context: ssl.SSLContext
    ends: float


class Certificate:
    """The files of a certificate and its key, and the TLS context made from them.

    A client may show a certificate of `client_ca_file`; None: of no CA. One of another CA ends the handshake.
    """

    def __init__(self, cert_file: Path, key_file: Path, client_ca_file: Path | None = None) -> None:
        self._cert_file: Final = cert_file
        self._key_file: Final = key_file
        self._client_ca_file: Final = client_ca_file
        self._lock: Final = Lock()
        self._loaded: _Loaded | None = None

    def context(self) -> ssl.SSLContext:
        """The context for the next connection.

        Raises OSError (ssl.SSLError is one) when no usable certificate has ever been there.
        """
        return self._fresh().context

    def ends(self) -> float:
        """When the certificate of the next connection expires, in Unix seconds; NaN if that cannot be read.

        Raises OSError as context() does.
        """
        return self._fresh().ends

    def _fresh(self) -> _Loaded:
        with self._lock:
            try:
                stamps = tuple(map(_stamp, self._files()))
                if self._loaded is None or self._loaded.stamps != stamps:
                    self._loaded = _Loaded(stamps, self._load(), self._read_end())
            except OSError:
                if self._loaded is None:
                    raise
            return self._loaded

    def _files(self) -> tuple[Path, ...]:
        own = (self._cert_file, self._key_file)
        return own if self._client_ca_file is None else (*own, self._client_ca_file)

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.load_cert_chain(self._cert_file, self._key_file)
        if self._client_ca_file is not None:
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(self._client_ca_file)
        return context

    def _read_end(self) -> float:
        try:
            return x509.load_pem_x509_certificate(self._cert_file.read_bytes()).not_valid_after_utc.timestamp()
        except ValueError:  # what OpenSSL takes is served all the same
            return math.nan


def _stamp(path: Path) -> Stamp:
    """What changes when a file is replaced or rewritten."""
    found = os.stat(path)
    return found.st_mtime_ns, found.st_ino, found.st_size
