"""Writes kubeconfig files: the one format in which every Kubernetes client learns where the server is and who it is.

The files hold certificates and tokens inline rather than by path, so that one of them can be copied anywhere. They are
JSON, which every YAML reader understands.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

from .certificates import KeyPair


def write_for_certificate(path: Path, server: str, ca_file: Path, client: KeyPair) -> Path:
    """Write a kubeconfig whose user is the one named in the client certificate."""
    user = {"client-certificate-data": _inline(client.certificate), "client-key-data": _inline(client.key)}
    return _write(path, server, ca_file, user)


def write_for_token(path: Path, server: str, ca_file: Path, token: str) -> Path:
    """Write a kubeconfig whose user is the one to whom the bearer token was issued."""
    return _write(path, server, ca_file, {"token": token})


def _write(path: Path, server: str, ca_file: Path, user: dict[str, str]) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kerf", "cluster": {"server": server, "certificate-authority-data": _inline(ca_file)}}],
        "users": [{"name": "kerf", "user": user}],
        "contexts": [{"name": "kerf", "context": {"cluster": "kerf", "user": "kerf"}}],
        "current-context": "kerf",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(document, indent=2))
    return path


def _inline(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
