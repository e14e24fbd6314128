"""The storage driver on the nodes, and the number of volumes that each node attaches.

A node that becomes Ready has its driver from then on, as with the start-up taint that keeps pods away until then.
Sources: Kubernetes, "Node-specific Volume Limits"; Amazon EC2, "Amazon EBS volume limits".
"""

from __future__ import annotations

from collections.abc import Callable

from kerf.model import kinds
from kerf.model.kubernetes.objects import Node
from kerf.sandbox.api.api_server import ApiServer, Record
from kerf.sandbox.scheduling.claims import EBS
from kerf_api import labels


class NodeDrivers:
    """See the module. `most` is the number of volumes that a node attaches."""

    def __init__(self, server: ApiServer, most: Callable[[Node], int]) -> None:
        self._server, self._most = server, most
        self._joined: dict[str, None] = {}
        server.listen(self._heard)

    # --- what changes ---------------------------------------------------------------------------------------------
    def _heard(self, old: Record | None, new: Record | None) -> None:
        if new is not None and new.kind.name == "Node" and new.value.ready and not (old and old.value.ready):
            self._joined[new.value.name] = None

    def settle(self) -> bool:
        joined, self._joined = list(self._joined), {}
        for name in joined:
            node = self._server.find(kinds.NODE, "", name)
            if node is not None and self._server.find(kinds.CSI_NODE, "", name) is None:
                self._register(node)
        return bool(joined)

    def _register(self, node: Record) -> None:
        name, uid = node.value.name, node.value.metadata.uid
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
        driver = {
            "name": EBS,
            "nodeID": node.value.spec.provider_id.rpartition("/")[2] or name,
            "topologyKeys": [labels.ZONE],
            "allocatable": {"count": self._most(node.value)},
        }
        meta = {"name": name, "ownerReferences": [owner]}
        self._server.create(kinds.CSI_NODE, {"metadata": meta, "spec": {"drivers": [driver]}})
