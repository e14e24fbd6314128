"""What the control plane does about nodes: taints by condition, NoExecute evictions, silent and vanished nodes.

Source: Kubernetes' node lifecycle controller, taint eviction controller, pod garbage collector and the cloud's node
lifecycle controller.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from kerf.model import kinds
from kerf.model.kubernetes.objects import Node, Pod
from kerf.sandbox.api.api_server import ApiServer, Record
from kerf.sandbox.api.manifests import Manifest, timestamp
from kerf.sandbox.aws.ec2 import Ec2
from kerf.sandbox.aws.machines import Machine
from kerf.sandbox.clock import Agenda
from kerf.sandbox.nodes.kubelets import Kubelets
from kerf.sandbox.phases import terminal
from kerf.sandbox.scheduling import node_rules

_NOT_READY, _UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
_OWN_TAINTS = (_NOT_READY, _UNREACHABLE)


class NodeLifecycle:
    """See the module."""

    def __init__(
        self, server: ApiServer, ec2: Ec2, kubelets: Kubelets, agenda: Agenda, now: Callable[[], datetime]
    ) -> None:
        self._server, self._ec2, self._kubelets, self._agenda, self._now = server, ec2, kubelets, agenda, now
        self._nodes: dict[str, None] = {}
        self._pods: dict[tuple[str, str], None] = {}
        self._by_node: dict[str, dict[tuple[str, str], None]] = {}
        server.listen(self._heard)
        ec2.listen(self._turned)

    def _heard(self, old: Record | None, new: Record | None) -> None:
        record = new or old
        if record is None:
            return
        if record.kind.name == "Node":
            name = record.value.name
            self._nodes[name] = None
            if new is None:
                self._agenda.after(self._ec2.weather.pod_gc_seconds, lambda: self._collect_pods(name))
        elif record.kind.name == "Pod" and record.value.spec.node_name:
            on_node = self._by_node.setdefault(record.value.spec.node_name, {})
            if new is None:
                on_node.pop(record.key, None)
            elif record.key not in on_node:
                on_node[record.key] = None
                self._pods[record.key] = None

    def _turned(self, machine: Machine) -> None:
        if machine.state == "terminated":
            self._agenda.after(self._ec2.weather.node_monitor_seconds, lambda: self._silent(machine))

    def settle(self) -> bool:
        nodes, self._nodes = list(self._nodes), {}
        pods, self._pods = list(self._pods), {}
        for name in nodes:
            record = self._server.find(kinds.NODE, "", name)
            if record is not None:
                self._taint(record)
        for key in [*pods, *(key for name in nodes for key in self._by_node.get(name, ()))]:
            self._evict(key)
        return bool(nodes or pods)

    # --- nodes ----------------------------------------------------------------------------------------------------
    def _taint(self, record: Record) -> None:
        """Taints that say what the Ready condition says."""
        node: Node = record.value
        state = next((c.status for c in node.status.conditions if c.type == "Ready"), "False")
        key = {"True": "", "Unknown": _UNREACHABLE}.get(state, _NOT_READY)
        present: list[dict[str, Any]] = list(record.manifest["spec"].get("taints") or ())
        wanted = [t for t in present if t["key"] not in _OWN_TAINTS or t["key"] == key]
        held = {(t["key"], t["effect"]) for t in wanted}
        missing = [effect for effect in ("NoSchedule", "NoExecute") if key and (key, effect) not in held]
        wanted += [{"key": key, "effect": effect, "timeAdded": timestamp(self._now())} for effect in missing]
        if wanted != present:
            self._server.patch(kinds.NODE, "", node.name, {"spec": {"taints": wanted}})

    def _silent(self, machine: Machine) -> None:
        """The node has sent no heartbeat for a while: it becomes Unknown; its instance is gone, so it goes too."""
        for record in list(self._server.records(kinds.NODE)):
            if record.value.spec.provider_id != machine.provider_id:
                continue
            condition = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
            condition["lastTransitionTime"] = timestamp(self._now())
            status = {"status": {"conditions": [condition]}}
            self._server.patch(kinds.NODE, "", record.value.name, status, subresource="status")
            self._server.delete(kinds.NODE, "", record.value.name)

    # --- pods -----------------------------------------------------------------------------------------------------
    def _evict(self, key: tuple[str, str]) -> None:
        """Delete a pod that does not tolerate its node's NoExecute taints, now or when its patience ends."""
        record = self._server.find(kinds.POD, *key)
        if record is None or record.value.metadata.deleting or terminal(record.value):
            return
        pod: Pod = record.value
        node = self._server.find(kinds.NODE, "", pod.spec.node_name)
        if node is None:
            return
        patience = _patience(record.manifest, node.manifest)
        if patience is None:
            return
        uid = pod.metadata.uid
        if patience <= 0:
            self._server.delete(kinds.POD, *key, uid=uid)
        else:
            self._agenda.after(patience, lambda: self._evict_if_still(key, uid, patience))

    def _evict_if_still(self, key: tuple[str, str], uid: str, waited: float) -> None:
        record = self._server.find(kinds.POD, *key)
        if record is None or record.value.metadata.uid != uid or record.value.metadata.deleting:
            return
        node = self._server.find(kinds.NODE, "", record.value.spec.node_name)
        patience = _patience(record.manifest, node.manifest) if node is not None else None
        if patience is not None and patience <= waited and self._tainted_since(node, waited):
            self._server.delete(kinds.POD, *key, uid=uid)

    def _tainted_since(self, node: Record | None, seconds: float) -> bool:
        if node is None:
            return False
        added = [t.time_added for t in node.value.spec.taints if t.effect == "NoExecute"]
        return any(t is None or (self._now() - t).total_seconds() >= seconds for t in added)

    def _collect_pods(self, node_name: str) -> None:
        """Pods of a node that does not exist any more are forgotten."""
        if self._server.find(kinds.NODE, "", node_name) is not None:
            return
        for key in list(self._by_node.get(node_name, ())):
            if self._server.find(kinds.POD, *key) is not None:
                self._server.delete(kinds.POD, *key, grace_seconds=0)
        self._by_node.pop(node_name, None)


def _patience(pod: Manifest, node: Manifest) -> float | None:
    """Seconds that a pod bears its node's NoExecute taints: None for ever, 0 not at all."""
    shortest: float | None = None
    for taint in node["spec"].get("taints") or ():
        if taint["effect"] != "NoExecute":
            continue
        bearing = [row for row in pod["spec"].get("tolerations") or () if node_rules.tolerates(row, taint)]
        if not bearing:
            return 0.0
        limits = [float(row["tolerationSeconds"]) for row in bearing if row.get("tolerationSeconds") is not None]
        if limits:
            shortest = min(limits) if shortest is None else min(shortest, *limits)
    return shortest
