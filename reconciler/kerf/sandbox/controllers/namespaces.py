"""The controller of Namespaces: all objects of a deleted Namespace are deleted, too.

The Namespace itself is removed first: nothing new can be created in it. Source: Kubernetes, "Namespaces".
"""

from __future__ import annotations

from kerf.model import kinds
from kerf.ports import AlreadyGone
from kerf.sandbox.api.api_server import ApiServer, Record


class Namespaces:
    """Deletes the objects of removed Namespaces. Pods end within their grace period."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._removed: dict[str, None] = {}
        server.listen(self._heard)

    def _heard(self, old: Record | None, new: Record | None) -> None:
        if old is not None and new is None and old.kind.name == kinds.NAMESPACE.name:
            self._removed[old.key[1]] = None

    def settle(self) -> bool:
        removed, self._removed = list(self._removed), {}
        for name in removed:
            for record in self._server.within(name):
                try:
                    self._server.delete(record.kind, *record.key)
                except AlreadyGone:
                    continue
        return bool(removed)
