"""A small kube-scheduler: binds pending pods to nodes, and says so when no node will do.

Filters: room, node selector and required node affinity, taints, host ports, hard topology spread, required pod
affinity and anti-affinity (both directions), zones of volumes, how many volumes a node can attach. Score: the node that
the pod is nominated to, then the least allocated one, ties by name. Nominated pods keep their room from those that are
no more important; a nomination to a node that is not there, or has no room after all, is dropped. It knows no
preemption and no preferences, and leaves pods alone that name another scheduler. Source: Kubernetes, "kube-scheduler"
and "Scheduling framework".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from reconciler.model import kinds
from reconciler.model.objects import LabelSelector, Pod
from reconciler.model.pods import expected_on, terminal
from reconciler.sandbox import selectors
from reconciler.sandbox.api_server import ApiServer, Record
from reconciler.sandbox.clock import Agenda
from reconciler.sandbox.csi import NodeDrivers
from reconciler.sandbox.demand import Demand, Spread, Term, fits, shape
from reconciler.sandbox.manifests import digest, timestamp
from reconciler.sandbox.node_views import NodeView, NodeViews
from reconciler.sandbox.volumes import Volumes
from reconciler.sandbox.weather import Weather

#: Tells of a pod and a node whether the pod may go there for the sake of other pods.
Allows = Callable[[NodeView], bool]
_SCORED = ("cpu", "memory")
_NAME = "default-scheduler"
#: When one of these changes, a pod that waits for its volumes may have a place.
_OF_VOLUMES = ("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode", "VolumeAttachment")


class Scheduler:
    """See the module. It looks again at refused pods only when room may have appeared."""

    def __init__(
        self,
        server: ApiServer,
        volumes: Volumes,
        drivers: NodeDrivers,
        agenda: Agenda,
        now: Callable[[], datetime],
        weather: Weather,
    ) -> None:
        self._server, self._volumes, self._drivers, self._agenda, self._now = server, volumes, drivers, agenda, now
        self._weather = weather
        self._nodes = NodeViews()
        self._pending: dict[str, Pod] = {}
        self._expected: dict[str, dict[str, Pod]] = {}
        self._demands: dict[bytes, Demand] = {}
        self._refused: dict[int, Demand] = {}
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
                self._nodes.forget(record.value.name)
            elif self._nodes.see(new.value):
                self._look_again()
        elif record.kind.name == "Pod":
            self._heard_pod(record, gone=new is None)
        elif record.kind.name in _OF_VOLUMES:
            self._look_again()

    def _heard_pod(self, record: Record, *, gone: bool) -> None:
        pod: Pod = record.value
        uid = pod.metadata.uid
        self._expect(pod, gone=gone)
        if gone or terminal(pod):
            self._pending.pop(uid, None)
            if self._nodes.remove(uid):
                self._look_again()
        elif pod.spec.node_name:
            self._pending.pop(uid, None)
            self._nodes.add(pod, self._demand(pod))
        elif pod.metadata.deleting or pod.spec.scheduling_gates or _of_another(record):
            self._pending.pop(uid, None)
        else:
            self._fresh = self._fresh or uid not in self._pending
            self._pending[uid] = pod

    def _expect(self, pod: Pod, *, gone: bool) -> None:
        """Follow which pods are nominated to which node; who loses one may leave room for another."""
        uid, name = pod.metadata.uid, "" if gone else expected_on(pod)
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

    def _demand(self, pod: Pod) -> Demand:
        key = shape(pod)
        if key not in self._demands:
            self._demands[key] = Demand.of(pod, self._namespaces)
        return self._demands[key]

    def _namespaces(self, selector: LabelSelector) -> Iterable[str]:
        for record in self._server.records(kinds.NAMESPACE):
            if selectors.matches(selector, record.value.metadata.labels):
                yield record.value.metadata.name

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

    def _place(self, pod: Pod) -> None:
        demand = self._demand(pod)
        if id(demand) not in self._refused or pod.status.nominated_node_name:
            node = self._best(demand, pod)
            if node is not None:
                self._server.bind(pod.metadata.namespace, pod.metadata.name, node.name, timestamp(self._now()))
                self._reconsider()
                return
            self._refused[id(demand)] = demand
        self._refuse(pod)

    def _reconsider(self) -> None:
        """A pod was bound: one that is drawn to it, or spread against it, may have a place now."""
        moved = [key for key, demand in self._refused.items() if demand.topological]
        for key in moved:
            del self._refused[key]
        self._fresh = self._fresh or bool(moved)

    def _best(self, demand: Demand, pod: Pod) -> NodeView | None:
        allows, wanted = self._topology(demand), dict(demand.requests)
        reachable, attachable = self._volumes.accepts(pod), self._drivers.takes(pod)
        good = [
            node
            for node in self._nodes.known()
            if node.accepts(demand)
            and fits(demand.requests, self._kept(node, pod), node.allocatable)
            and not _port_clash(demand, node)
            and all(allow(node) for allow in allows)
            and reachable(node.name, node.labels)
            and attachable(node.name, (other for other, _ in node.pods.values()))
        ]
        if expected := next((node for node in good if node.name == pod.status.nominated_node_name), None):
            return expected
        if self._weather.scattered:
            return min(good, key=lambda node: digest(pod.metadata.uid, node.name), default=None)
        return min(good, key=lambda node: (-_freedom(node, wanted), node.name), default=None)

    def _kept(self, node: NodeView, pod: Pod) -> Mapping[str, int]:
        """What is taken on a node: by its pods, and by others that are nominated to it and at least as important."""
        found = self._expected.get(node.name)
        if not found:
            return node.used
        used = dict(node.used)
        for other in found.values():
            if other.metadata.uid != pod.metadata.uid and other.spec.priority >= pod.spec.priority:
                for name, amount in self._demand(other).requests:
                    used[name] = used.get(name, 0) + amount
        return used

    def _refuse(self, pod: Pod) -> None:
        """Mark the pod Unschedulable, once."""
        expected = self._nodes.by_name.get(pod.status.nominated_node_name)
        if pod.status.nominated_node_name and (
            expected is None or not expected.known or expected.accepts(self._demand(pod))
        ):
            nothing = {"status": {"nominatedNodeName": None}}
            self._server.patch(kinds.POD, pod.metadata.namespace, pod.metadata.name, nothing, subresource="status")
        if any(c.type == "PodScheduled" and c.reason == "Unschedulable" for c in pod.status.conditions):
            return
        count = sum(1 for _ in self._nodes.known())
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": f"0/{count} nodes are available: no node has the room, labels, taints and topology it needs.",
            "lastTransitionTime": timestamp(self._now()),
        }
        record = self._server.get(kinds.POD, pod.metadata.namespace, pod.metadata.name)
        others = [c for c in record.manifest["status"].get("conditions", ()) if c.get("type") != "PodScheduled"]
        status = {"status": {"conditions": [*others, condition]}}
        self._server.patch(kinds.POD, pod.metadata.namespace, pod.metadata.name, status, subresource="status")

    # --- other pods -----------------------------------------------------------------------------------------------
    def _topology(self, demand: Demand) -> list[Allows]:
        rules: list[Allows] = [self._spread(demand, row) for row in demand.spreads]
        if demand.affinity:
            rules.append(self._affinity(demand))
        avoided = [(term, self._nodes.counts(term, terminating=True)) for term in demand.anti_affinity]
        avoided += [row for row in self._nodes.forbidding.values() if row[0].selects(demand.pod)]
        return rules + [self._away(term, counts) for term, counts in avoided]

    def _spread(self, demand: Demand, spread: Spread) -> Allows:
        key, counts = spread.term.topology_key, self._nodes.counts(spread.term, terminating=False)
        totals: dict[str, int] = {}
        for node in self._nodes.known():
            if key not in node.labels or (spread.honor_affinity and not demand.likes(node.name, node.labels)):
                continue
            if spread.honor_taints and not demand.tolerates(node.taints, node.unschedulable):
                continue
            domain = node.labels[key]
            totals[domain] = totals.get(domain, 0) + counts.get(node.name, 0)
        least = min(totals.values(), default=0)
        if spread.min_domains is not None and len(totals) < spread.min_domains:
            least = 0
        own = int(spread.term.selects(demand.pod))

        def allows(node: NodeView) -> bool:
            domain = node.labels.get(key)
            return domain is not None and totals.get(domain, 0) + own - least <= spread.max_skew

        return allows

    def _affinity(self, demand: Demand) -> Allows:
        """Every term needs a pod in the node's domain; the first pod of a group that attracts itself is free."""
        places = [(t.topology_key, self._domains(t, self._nodes.counts(t, terminating=True))) for t in demand.affinity]
        first = not any(domains for _, domains in places) and all(t.selects(demand.pod) for t in demand.affinity)

        def allows(node: NodeView) -> bool:
            if first:
                return all(key in node.labels for key, _ in places)
            return all(node.labels.get(key) in domains for key, domains in places)

        return allows

    def _away(self, term: Term, counts: Mapping[str, int]) -> Allows:
        domains = self._domains(term, counts)
        return lambda node: node.labels.get(term.topology_key) not in domains

    def _domains(self, term: Term, counts: Mapping[str, int]) -> set[str]:
        """Domains in which at least one counted pod runs."""
        views = (self._nodes.by_name.get(name) for name, count in counts.items() if count)
        labels = (view.labels for view in views if view is not None)
        return {own[term.topology_key] for own in labels if term.topology_key in own}


def _of_another(record: Record) -> bool:
    return bool(record.manifest["spec"].get("schedulerName", _NAME) != _NAME)


def _turn(pod: Pod) -> tuple[int, str, str, str]:
    created = pod.metadata.creation_timestamp
    return (-pod.spec.priority, created.isoformat() if created else "", pod.metadata.namespace, pod.metadata.name)


def _freedom(node: NodeView, wanted: Mapping[str, int]) -> int:
    """The shares of CPU and memory that stay free, added up, in millionths."""
    free = 0
    for resource in _SCORED:
        full = node.allocatable[resource]
        left = full - node.used.get(resource, 0) - wanted.get(resource, 0)
        free += left * 1_000_000 // full if full else 0
    return free


def _port_clash(demand: Demand, node: NodeView) -> bool:
    return bool(demand.ports) and any(demand.ports & other.ports for _, other in node.pods.values())
