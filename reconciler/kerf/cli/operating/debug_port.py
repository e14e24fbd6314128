"""How `kerf status` and `kerf debug` ask a running controller: over its debug port, which only its host reaches."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from typing import Final
from urllib.parse import urlencode, urlsplit

import typer

from kerf.cli.terminal import say
from kerf.runtime.secrets import debug_token

DEFAULT_PORT: Final = 8082
WHERE: Final = """\
It asks the controller's debug port (DEBUG_PORT), which listens on the loopback address alone and asks for a token.
In the pod, whose file with the token it finds:
kubectl exec -n NAMESPACE deploy/NAME -- {command}
From anywhere, with permission to forward ports and a copy of the token in a file:
kubectl port-forward -n NAMESPACE deploy/NAME 8082 &
DEBUG_TOKEN_FILE=FILE {command}"""


class Silent(Exception):
    """There is no answer, or none that is readable, in words."""


class Unreached(Silent):
    """No controller answers at the port; `short` says so in one line."""

    def __init__(self, short: str) -> None:
        super().__init__(f"{short}\n\n{WHERE.format(command='kerf status')}")
        self.short = short


def base(url: str) -> str:
    """The address: as given, else that of a controller in this pod."""
    port = os.environ.get("DEBUG_PORT") or str(DEFAULT_PORT)
    return url.rstrip("/") or f"http://127.0.0.1:{port}"


def ask(url: str, path: str, query: dict[str, str] | None = None, *, method: str = "GET", seconds: float = 15) -> bytes:
    """The answer's body. Raises Silent, and Unreached when no process listens."""
    whole = f"{base(url)}{path}" + (f"?{urlencode(query)}" if query else "")
    request = urllib.request.Request(whole, headers=_authorization(url), method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # this host needs no proxy
    try:
        with opener.open(request, timeout=seconds) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        said = error.read().decode(errors="replace").strip()
        if not said or said.startswith("<"):  # a page of another program
            said = f"{whole}: {error}: no controller of Kerf listens there"
        raise Silent(said) from error
    except (OSError, ValueError) as error:
        raise Unreached(f"no controller answers at {base(url)}: {getattr(error, 'reason', error)}") from error


def _authorization(url: str) -> dict[str, str]:
    """The header with the port's token. None where there is no file of one: a controller of an earlier version needs
    none, and another says that it does."""
    try:
        port = urlsplit(base(url)).port or 80
        token = debug_token.read(debug_token.path(port, os.environ.get("DEBUG_TOKEN_FILE", "")))
    except (OSError, ValueError):
        return {}
    return {"Authorization": f"Bearer {token}"}


def fail(verb: str, error: Silent) -> typer.Exit:
    """Says what is wrong; what to raise then."""
    say(f"kerf {verb}: {error}", err=True)
    return typer.Exit(2)
