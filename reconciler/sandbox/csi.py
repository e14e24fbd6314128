"""The storage driver on the nodes: how many volumes each can attach, and the kube-scheduler's filter by that.

A node that becomes Ready has its driver from then on, as with the start-up taint that keeps pods away until then. What
counts on a node are the volumes of its pods, each once, and those that are still attached although their pods have
gone. A node with too many volumes takes a pod that brings no further one. Sources: Kubernetes, "Node-specific Volume
Limits"; Amazon EC2, "Amazon EBS volume limits".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from api import labels
from reconciler.model import kinds
from reconciler.model.objects import Node, Pod
from reconciler.sandbox.api_server import ApiServer, Record
from reconciler.sandbox.volumes import EBS, Volumes


class NodeDrivers:
    """See the module. `most` is the number of volumes that a node attaches."""

    def __init__(self, server: ApiServer, volumes: Volumes, most: Callable[[Node], int]) -> None:
        self._server, self._volumes, self._most = server, volumes, most
        self._joined: dict[str, None] = {}
        server.listen(self._heard)

    def takes(self, pod: Pod) -> Callable[[str, Iterable[Pod]], bool]:
        """A predicate over nodes (name, the pods there): whether the node can attach the pod's volumes too."""
        wanted = self._volumes.drivers_of(pod)
        lingering = self._attached() if wanted else {}

        def room(node: str, there: Iterable[Pod]) -> bool:
            limits = self._limits(node) if wanted else {}
            if not limits:
                return True
            used = dict(lingering.get(node, {}))
            for other in there:
                used |= self._volumes.drivers_of(other)
            counts, new = Counter(used.values()), Counter(d for volume, d in wanted.items() if volume not in used)
            return all(counts[driver] + new[driver] <= limits[driver] for driver in new if driver in limits)

        return room

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

    # --- what is there --------------------------------------------------------------------------------------------
    def _limits(self, node: str) -> Mapping[str, int]:
        record = self._server.find(kinds.CSI_NODE, "", node)
        limits: Mapping[str, int] = record.value.attachable if record is not None else {}
        return limits

    def _attached(self) -> dict[str, dict[str, str]]:
        """By node, the volumes that are attached there, with their drivers."""
        found: dict[str, dict[str, str]] = {}
        for record in self._server.records(kinds.VOLUME_ATTACHMENT):
            spec = record.manifest["spec"]
            found.setdefault(spec["nodeName"], {})[spec["source"]["persistentVolumeName"]] = spec["attacher"]
        return found
