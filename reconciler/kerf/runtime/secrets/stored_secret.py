"""One Secret of the controller's own, read and written as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from kerf.ports import AlreadyExists, AlreadyGone, Conflict

#: A Secret as the API server has it.
Manifest = Mapping[str, Any]


class Requests(Protocol):
    """What is needed of the Kubernetes client."""

    def request(self, method: str, path: str, body: Any = None, *, content_type: str = "application/json") -> Any: ...


class StoredSecret:
    """The Secret of this name. `type_` is the type that a new one gets."""

    def __init__(self, kube: Requests, namespace: str, name: str, type_: str) -> None:
        self._kube, self._collection = kube, f"/api/v1/namespaces/{namespace}/secrets"
        self._new = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": type_,
            "metadata": {"name": name, "namespace": namespace},
        }
        self._path = f"{self._collection}/{name}"

    def read(self) -> Manifest | None:
        """None when there is none. Raises PortError."""
        try:
            found: Manifest = self._kube.request("GET", self._path)
        except AlreadyGone:
            return None
        return found

    def write(self, known: Manifest | None, data: Mapping[str, str]) -> None:
        """Put `data` (base64, by name) in place of what the `known` Secret holds, or (None) make the Secret.

        Raises PortError; Conflict also when another process has made it meanwhile.
        """
        if known is not None:
            self._kube.request("PUT", self._path, {**known, "data": dict(data)})
            return
        try:
            self._kube.request("POST", self._collection, {**self._new, "data": dict(data)})
        except AlreadyExists as error:
            raise Conflict(str(error)) from error
