"""A small kube-scheduler: binds pending pods to nodes, or says which rule keeps a pod from how many nodes.

Its rules read manifests and share no code with the engine: `node_rules` (selectors, taints, ports), `pod_requests`,
`claims` (volumes) and `neighbours` (topology). Score: the node that the pod is nominated to, then the least allocated
one, ties by name. Nominated pods keep their room from those that are no more important. It knows no preemption, no
preferences and no devices, and leaves pods alone that name another scheduler. Source: Kubernetes, "kube-scheduler" and
"Scheduling framework".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from kerf.model import kinds
from kerf.sandbox.api import selectors
from kerf.sandbox.api.api_server import ApiServer, Record
from kerf.sandbox.api.manifests import digest, timestamp
from kerf.sandbox.clock import Agenda
from kerf.sandbox.scheduling import node_rules
from kerf.sandbox.scheduling.claims import VolumeRules
from kerf.sandbox.scheduling.demand import Demand, shape
from kerf.sandbox.scheduling.neighbours import Objection, objections
from kerf.sandbox.scheduling.node_views import NodeView, NodeViews, Resident
from kerf.sandbox.scheduling.pod_requests import Manifest
from kerf.sandbox.weather import Weather

_SCORED = ("cpu", "memory")
_NAME = "default-scheduler"
#: When one of these changes, a pod that waits for its volumes may have a place.
_OF_VOLUMES = ("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode", "VolumeAttachment")


class Scheduler:
    """See the module. It looks again at refused pods only when room may have appeared."""

    def __init__(self, server: ApiServer, agenda: Agenda, now: Callable[[], datetime], weather: Weather) -> None:
        self._server, self._agenda, self._now, self._weather = server, agenda, now, weather
        self._volumes = VolumeRules(server)
        self._nodes = NodeViews()
        self._pending: dict[str, Manifest] = {}
        self._expected: dict[str, dict[str, Manifest]] = {}
        self._demands: dict[bytes, Demand] = {}
        self._refused: dict[int, tuple[Demand, str]] = {}
        self._fresh = False
        self._looks_at: datetime | None = None
        server.listen(self._heard)

    # --- what changes ---------------------------------------------------------------------------------------------
    def _heard(self, old: Record | None, new: Record | None) -> None:
        record = new or old
        if record is None:
            return
        if record.kind.name == "Node":
            if new is None:
                self._nodes.forget(record.key[1])
                self._look_again()
            elif self._nodes.see(new.manifest):
                self._look_again()
        elif record.kind.name == "Pod":
            self._heard_pod(record.manifest, gone=new is None)
        elif record.kind.name == "Namespace":
            self._heard_namespace()
        elif record.kind.name in _OF_VOLUMES:
            self._look_again()

    def _heard_pod(self, pod: Manifest, *, gone: bool) -> None:
        uid, spec = pod["metadata"]["uid"], pod["spec"]
        over = gone or pod["status"].get("phase") in ("Succeeded", "Failed")
        self._expect(pod, over=over)
        if over:
            self._pending.pop(uid, None)
            if self._nodes.remove(uid):
                self._look_again()
        elif spec.get("nodeName"):
            self._pending.pop(uid, None)
            if self._nodes.add(pod, self._demand(pod)):
                self._look_again()
        elif "deletionTimestamp" in pod["metadata"] or spec.get("schedulingGates") or _of_another(spec):
            self._pending.pop(uid, None)
        else:
            self._fresh = self._fresh or uid not in self._pending
            self._pending[uid] = pod

    def _heard_namespace(self) -> None:
        """The namespaces that a term selects may be others now."""
        self._demands.clear()
        self._nodes.refresh(self._demand)
        self._look_again()

    def _expect(self, pod: Manifest, *, over: bool) -> None:
        """Follow which pods are nominated to which node; one that loses its nomination may leave room for another."""
        uid = pod["metadata"]["uid"]
        name = "" if over or pod["spec"].get("nodeName") else pod["status"].get("nominatedNodeName", "")
        for there, some in list(self._expected.items()):
            if there != name and some.pop(uid, None) is not None:
                self._look_again()
                if not some:
                    del self._expected[there]
        if name:
            self._expected.setdefault(name, {})[uid] = pod

    def _look_again(self) -> None:
        self._refused.clear()
        self._fresh = True

    def _demand(self, pod: Manifest) -> Demand:
        key = shape(pod)
        if key not in self._demands:
            self._demands[key] = Demand.of(pod, self._namespaces)
        return self._demands[key]

    def _namespaces(self, selector: Manifest) -> Iterable[str]:
        for record in self._server.records(kinds.NAMESPACE):
            if selectors.selects(selector, record.manifest["metadata"].get("labels") or {}):
                yield record.key[1]

    # --- a pass ---------------------------------------------------------------------------------------------------
    def settle(self) -> bool:
        if not self._fresh or not self._awake():
            return False
        self._fresh = False
        for pod in sorted(self._pending.values(), key=_turn):
            self._place(pod)
        return True

    def _awake(self) -> bool:
        """Whether it looks now, or takes its time."""
        if not self._weather.scheduling_seconds:
            return True
        if self._looks_at is None:
            self._looks_at = self._now() + timedelta(seconds=self._weather.scheduling_seconds)
            self._agenda.at(self._looks_at, lambda: None)
        if self._looks_at > self._now():
            return False
        self._looks_at = None
        return True

    def _place(self, pod: Manifest) -> None:
        demand = self._demand(pod)
        if id(demand) not in self._refused or pod["status"].get("nominatedNodeName"):
            verdicts = self.verdicts(pod)
            node = self._best(demand, pod, [self._nodes.by_name[name] for name, why in verdicts.items() if not why])
            if node is not None:
                meta = pod["metadata"]
                self._server.bind(meta["namespace"], meta["name"], node.name, timestamp(self._now()))
                self._reconsider()
                return
            self._refused[id(demand)] = demand, _message(verdicts.values())
        self._refuse(pod, self._refused[id(demand)][1])

    def _reconsider(self) -> None:
        """A pod was bound: one that is drawn to it, or spread against it, may have a place now."""
        moved = [key for key, (demand, _) in self._refused.items() if demand.topological]
        for key in moved:
            del self._refused[key]
        self._fresh = self._fresh or bool(moved)

    def verdicts(self, pod: Manifest) -> dict[str, str]:
        """By node, the rule that keeps the pod away; empty where none does."""
        demand = self._demand(pod)
        rules = [*self._volumes.objections(pod, self._nodes), *objections(demand, self._nodes)]
        return {node.name: self._verdict(pod, demand, node, rules) for node in self._nodes.known()}

    def _verdict(self, pod: Manifest, demand: Demand, node: NodeView, rules: Sequence[Objection]) -> str:
        """The pod has to fit beside the pods that are nominated to the node, and without them, too."""
        if demand.spec.get("schedulingGates"):
            return "waiting for scheduling gates"
        if demand.claims_devices:
            return "cannot allocate all claims"
        if own := node.objection(demand):
            return own
        guests = self._guests(node, pod) if node.name in self._expected else ()
        return (guests and _beside(demand, node, guests, rules)) or _beside(demand, node, (), rules)

    def _guests(self, node: NodeView, pod: Manifest) -> tuple[Resident, ...]:
        """Other pods that are nominated to the node and at least as important."""
        uid, least = pod["metadata"]["uid"], _priority(pod)
        others = self._expected.get(node.name, {}).items()
        return tuple(
            Resident.of(other, self._demand(other)) for key, other in others if key != uid and _priority(other) >= least
        )

    def _best(self, demand: Demand, pod: Manifest, good: Sequence[NodeView]) -> NodeView | None:
        nominated = pod["status"].get("nominatedNodeName")
        if expected := next((node for node in good if node.name == nominated), None):
            return expected
        if self._weather.scattered:
            return min(good, key=lambda node: digest(pod["metadata"]["uid"], node.name), default=None)
        return min(good, key=lambda node: (-_freedom(node, demand.requests), node.name), default=None)

    def _refuse(self, pod: Manifest, message: str) -> None:
        """Mark the pod Unschedulable with the reasons."""
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        if self._loses_nomination(pod):
            nothing = {"status": {"nominatedNodeName": None}}
            self._server.patch(kinds.POD, namespace, name, nothing, subresource="status")
        if any(_unschedulable(c) for c in pod["status"].get("conditions") or ()):
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": timestamp(self._now()),
        }
        record = self._server.get(kinds.POD, namespace, name)
        others = [c for c in record.manifest["status"].get("conditions", ()) if c.get("type") != "PodScheduled"]
        status = {"status": {"conditions": [*others, condition]}}
        self._server.patch(kinds.POD, namespace, name, status, subresource="status")

    def _loses_nomination(self, pod: Manifest) -> bool:
        """A pod that finds no pods to preempt loses its nomination. One that never preempts keeps it for ever."""
        nominated = self._nodes.by_name.get(pod["status"].get("nominatedNodeName") or "")
        if not pod["status"].get("nominatedNodeName") or pod["spec"].get("preemptionPolicy") == "Never":
            return False
        return nominated is None or not nominated.known or not nominated.objection(self._demand(pod))


def _beside(demand: Demand, node: NodeView, guests: Sequence[Resident], rules: Iterable[Objection]) -> str:
    """The first rule that keeps the pod from a node whose own properties accept it."""
    if demand.ports:
        others = (*node.pods.values(), *guests)
        if node_rules.ports_clash(demand.ports, (port for other in others for port in other.demand.ports)):
            return "node(s) didn't have free ports for the requested pod ports"
    return node.shortage(demand, guests) or next(filter(None, (rule(node, guests) for rule in rules)), "")


def _message(reasons: Iterable[str]) -> str:
    """As the kube-scheduler writes it: the number of nodes by reason."""
    counts = Counter(reasons)
    rows = sorted(f"{count} {reason}" for reason, count in counts.items())
    total = f"0/{sum(counts.values())} nodes are available"
    return f"{total}: {', '.join(rows)}." if rows else f"{total}."


def _unschedulable(condition: Manifest) -> bool:
    return condition.get("type") == "PodScheduled" and condition.get("reason") == "Unschedulable"


def _of_another(spec: Manifest) -> bool:
    return bool(spec.get("schedulerName", _NAME) != _NAME)


def _priority(pod: Manifest) -> int:
    return int(pod["spec"].get("priority") or 0)


def _turn(pod: Manifest) -> tuple[int, str, str, str]:
    meta = pod["metadata"]
    return (-_priority(pod), meta["creationTimestamp"], meta["namespace"], meta["name"])


def _freedom(node: NodeView, wanted: Mapping[str, int]) -> int:
    """The shares of CPU and memory that stay free, added up, in millionths."""
    free = 0
    for resource in _SCORED:
        full = node.allocatable.get(resource, 0)
        left = full - node.used.get(resource, 0) - wanted.get(resource, 0)
        free += left * 1_000_000 // full if full else 0
    return free
