"""The DaemonSet controller: one pod on every node that the template accepts, tied to it by node affinity. A pod that
was never bound goes with the node that it was for.

The scheduler binds the pods, as in a real cluster. Source: Kubernetes, "DaemonSet", taints and tolerations included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kerf.model import kinds
from kerf.model.kubernetes.objects import DaemonSet, Node, Pod
from kerf.sandbox.api.api_server import ApiServer, Record
from kerf.sandbox.api.eviction import ready
from kerf.sandbox.controllers.workloads import Children, owned
from kerf.sandbox.phases import terminal
from kerf.sandbox.scheduling.demand import Demand
from kerf.sandbox.scheduling.pod_requests import Manifest

_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


class DaemonSets:
    """See the module."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._pods = Children(server, "Pod", "DaemonSet")
        server.listen(self._heard)

    def _heard(self, old: Record | None, new: Record | None) -> None:
        """A node came, went or changed what a daemon looks at: every DaemonSet looks again."""
        record = new or old
        if record is None or record.kind.name != "Node":
            return
        if old is None or new is None or _looks(old.value) != _looks(new.value):
            for daemon_set in self._server.records(kinds.DAEMON_SET):
                self._pods.dirty[("DaemonSet", daemon_set.key)] = None

    def settle(self) -> bool:
        dirty = self._pods.take_dirty()
        for _, key in dirty:
            record = self._server.find(kinds.DAEMON_SET, *key)
            if record is not None and not record.value.metadata.deleting:
                self._reconcile(record)
        return bool(dirty)

    def _reconcile(self, record: Record) -> None:
        value: DaemonSet = record.value
        demand = Demand.of({"metadata": {}, "spec": _spec(record, "")}, lambda _: ())
        present = {_node_of(r.value): r.value for r in self._pods.of(value.metadata.uid)}
        nodes = {r.key[1]: r.manifest for r in self._server.records(kinds.NODE)}
        wanted = [name for name, node in nodes.items() if _wants(demand, node)]
        for name in sorted(wanted):
            if name not in present:
                self._create(record, name)
        for name, pod in sorted(present.items()):
            if pod.metadata.deleting:
                continue
            unwanted = not _keeps(demand, nodes[name]) if name in nodes else not pod.spec.node_name
            if terminal(pod) or unwanted:
                self._server.delete(kinds.POD, pod.metadata.namespace, pod.metadata.name, uid=pod.metadata.uid)
        status = {
            "desiredNumberScheduled": len(wanted),
            "currentNumberScheduled": len(present),
            "numberReady": sum(ready(pod) for pod in present.values()),
            "observedGeneration": value.metadata.generation,
        }
        self._server.patch(kinds.DAEMON_SET, *record.key, {"status": status}, subresource="status")

    def _create(self, record: Record, node_name: str) -> None:
        own = record.manifest["spec"]["template"].get("metadata") or {}
        meta = {
            **owned(record, "", own.get("labels") or {}),
            "annotations": own.get("annotations") or {},
            "generateName": f"{record.value.metadata.name}-",
        }
        self._server.create(kinds.POD, {"metadata": meta, "spec": _spec(record, node_name)})


def _looks(node: Node) -> object:
    return node.metadata.labels, node.spec.taints, node.spec.unschedulable


def _wants(demand: Demand, node: Manifest) -> bool:
    return _selects(demand, node) and demand.tolerates(node["spec"].get("taints") or ())


def _keeps(demand: Demand, node: Manifest) -> bool:
    """A running daemon leaves only when its node is no longer selected or casts it out."""
    taints = node["spec"].get("taints") or ()
    return _selects(demand, node) and demand.tolerates(t for t in taints if t["effect"] == "NoExecute")


def _selects(demand: Demand, node: Manifest) -> bool:
    return demand.likes(node["metadata"]["name"], node["metadata"].get("labels") or {})


def _node_of(pod: Pod) -> str:
    """The node that a daemon pod is for, bound or not."""
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity is not None and affinity.node_affinity is not None else None
    fields = [row for term in required.node_selector_terms for row in term.match_fields] if required else []
    return pod.spec.node_name or next((row.values[0] for row in fields if row.key == "metadata.name"), "")


def _spec(record: Record, node_name: str) -> dict[str, Any]:
    """The template's pod spec with a daemon's tolerations and, if a node is named, tied to it."""
    spec: dict[str, Any] = dict(record.manifest["spec"]["template"].get("spec") or {})
    own = [{"key": f"node.kubernetes.io/{k}", "operator": "Exists", "effect": effect} for k, effect in _TOLERATED]
    if spec.get("hostNetwork"):
        own.append({"key": "node.kubernetes.io/network-unavailable", "operator": "Exists", "effect": "NoSchedule"})
    spec["tolerations"] = [*(spec.get("tolerations") or ()), *own]
    if node_name:
        spec["affinity"] = _tied(spec.get("affinity") or {}, node_name)
    return spec


def _tied(affinity: Mapping[str, Any], node_name: str) -> dict[str, Any]:
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    node_affinity = dict(affinity.get("nodeAffinity") or {})
    terms = (node_affinity.get(key) or {}).get("nodeSelectorTerms") or [{}]
    field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    node_affinity[key] = {"nodeSelectorTerms": [{**term, "matchFields": [field]} for term in terms]}
    return {**affinity, "nodeAffinity": node_affinity}
