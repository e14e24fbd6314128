"""What is on a control plane, read by an administrator over connections that stay open.

kubectl is a program that starts, asks for every kind that there is and parses it: a tenth of a second of CPU, which
tests that wait would spend hundreds of times.
"""

from __future__ import annotations

import json
import ssl
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import urllib3

SECONDS: Final = 60.0
READS: Final = 3
GATEWAY_TIMEOUT: Final = 504
#: All kinds in two answers. Source: Kubernetes, "The Kubernetes API", aggregated discovery.
DISCOVERY: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class NotReadError(AssertionError):
    """The API server did not answer with what was asked for."""


class _Kind(NamedTuple):
    """Where objects of a kind are, and what a list leaves out of its items."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        root = "/apis" if "/" in self.api_version else "/api"
        within = f"/namespaces/{quote(namespace)}" if self.namespaced and namespace else ""
        return f"{root}/{self.api_version}{within}/{self.plural}{f'/{quote(name)}' if name else ''}"


class Objects:
    """Reads one API server; kinds have the names that kubectl takes: `pods`, `pod`, `po`.

    A read that the API server gives up (504: etcd is slow on a busy machine) is made again.
    """

    def __init__(self, server: str, tls: ssl.SSLContext) -> None:
        repeats = urllib3.Retry(READS - 1, backoff_factor=1, status_forcelist=[GATEWAY_TIMEOUT], raise_on_status=False)
        self._http = urllib3.PoolManager(maxsize=4, ssl_context=tls, timeout=SECONDS, retries=repeats)
        self._server = server
        self._kinds: dict[str, _Kind] = {}

    def list(self, kinds: str, *, namespace: str = "default", selector: str = "") -> list[dict[str, Any]]:
        """Objects of kinds (comma between them); of all namespaces when that is empty. Raises NotReadError."""
        query = f"?{urlencode({'labelSelector': selector})}" if selector else ""
        found = []
        for kind in map(self._kind, kinds.split(",")):
            named = {"apiVersion": kind.api_version, "kind": kind.kind}
            found += [named | item for item in self._read(kind.path(namespace) + query)["items"]]
        return found

    def read(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
        """One object. Raises NotReadError, also when it is not there."""
        return self._read(self._kind(kind).path(namespace, name))

    def _kind(self, name: str) -> _Kind:
        """Definitions come while tests run: a name that is not known is looked for again."""
        if name not in self._kinds:
            self._discover()
        if name not in self._kinds:
            raise NotReadError(f"the API server has no kind {name}")
        return self._kinds[name]

    def _discover(self) -> None:
        """Of two kinds with one name the first wins, as for kubectl."""
        groups = [group for root in ("/api", "/apis") for group in self._read(root, accept=DISCOVERY)["items"]]
        for group in groups:
            for version in group["versions"]:
                for row in version.get("resources", []):
                    kind = _kind(group["metadata"].get("name", ""), version["version"], row)
                    for name in (row["resource"], row.get("singularResource", ""), *row.get("shortNames", [])):
                        self._kinds.setdefault(name, kind)

    def _read(self, path: str, accept: str = "application/json") -> dict[str, Any]:
        try:
            answer = self._http.request("GET", self._server + path, headers={"Accept": accept})
        except urllib3.exceptions.HTTPError as error:
            raise NotReadError(f"GET {path}: {error}") from error
        if answer.status != 200:
            raise NotReadError(f"GET {path}: {answer.status} {answer.data.decode(errors='replace')}")
        found: dict[str, Any] = json.loads(answer.data)
        return found


def _kind(group: str, version: str, row: dict[str, Any]) -> _Kind:
    api_version = f"{group}/{version}" if group else version
    return _Kind(api_version, row["responseKind"]["kind"], row["resource"], row["scope"] == "Namespaced")
