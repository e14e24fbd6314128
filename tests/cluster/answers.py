"""What a server of this machine answers."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request


def asked(port: int, path: str, *, host: str, context: ssl.SSLContext | None = None) -> tuple[int, str]:
    """Status and text, of refusals too; 0 when nothing listens. With a context by HTTPS."""
    url = f"{'http' if context is None else 'https'}://{host}:{port}{path}"
    try:
        with urllib.request.urlopen(url, timeout=5, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()
    except OSError:
        return 0, ""
