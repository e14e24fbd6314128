"""The nodes as the scheduler sees them, kept up by changes: room, taints, pods; and counters of pods by node.

A counter answers "how many pods that all of these terms select are on each node"; it is made when it is first asked
for and follows every pod that comes or goes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kerf.sandbox.scheduling import pod_requests
from kerf.sandbox.scheduling.demand import Demand, Term
from kerf.sandbox.scheduling.pod_requests import Amounts, Manifest

#: The keys of a counter's terms, and whether it counts pods that are being deleted.
CounterKey = tuple[tuple[str, ...], bool]

#: No two versions are equal, also of nodes that have the name of one that is gone.
_VERSIONS: Final = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Resident:
    """One pod on a node, or one that is expected there."""

    uid: str
    manifest: Manifest
    demand: Demand
    uses: Mapping[str, int]

    @classmethod
    def of(cls, pod: Manifest, demand: Demand) -> Resident:
        """With its requests as they count on a node."""
        return cls(pod["metadata"]["uid"], pod, demand, pod_requests.bound(pod))

    @property
    def terminating(self) -> bool:
        return "deletionTimestamp" in self.manifest["metadata"]

    def selected_by(self, terms: Sequence[Term]) -> bool:
        """Whether all of the terms select it."""
        return all(term.selects(self.demand.namespace, self.demand.labels) for term in terms)


@dataclass(slots=True)
class NodeView:
    """One node. `version` moves when something changes that a pod's own tests read, `load` when its pods do. `used`
    sums its pods' requests."""

    name: str
    version: int = 0
    load: int = 0
    known: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Manifest, ...] = ()
    unschedulable: bool = False
    allocatable: Amounts = field(default_factory=dict)
    used: Amounts = field(default_factory=dict)
    pods: dict[str, Resident] = field(default_factory=dict)

    def see(self, node: Manifest) -> bool:
        """Take in the Node object; whether that may let another pod in."""
        before = (self.known, self.labels, self.taints, self.unschedulable, self.allocatable)
        spec: Mapping[str, Any] = node.get("spec") or {}
        self.known, self.labels = True, node["metadata"].get("labels") or {}
        self.taints, self.unschedulable = tuple(spec.get("taints") or ()), bool(spec.get("unschedulable"))
        self.allocatable = pod_requests.amounts((node.get("status") or {}).get("allocatable"))
        changed = before != (self.known, self.labels, self.taints, self.unschedulable, self.allocatable)
        if changed:
            self.version = next(_VERSIONS)
        return changed

    def objection(self, demand: Demand) -> str:
        """The first of the node's own properties that keeps the pod away; empty if none does."""
        verdict = demand.verdicts.get(self.name)
        if verdict is None or verdict[0] != self.version:
            verdict = demand.verdicts[self.name] = (self.version, self._objection(demand))
        return verdict[1]

    def _objection(self, demand: Demand) -> str:
        if self.unschedulable and not demand.tolerates_cordon():
            return "node(s) were unschedulable"
        if not demand.tolerates(self.taints):
            return "node(s) had untolerated taint(s)"
        if not demand.likes(self.name, self.labels):
            return "node(s) didn't match Pod's node affinity/selector"
        return ""

    def shortage(self, demand: Demand, guests: Sequence[Resident]) -> str:
        """The resource that is missing for one more pod, beside the guests; empty if none is."""
        if guests:
            return self._shortage(demand, guests)
        known = demand.shortages.get(self.name)
        if known is None or known[:2] != (self.version, self.load):
            known = demand.shortages[self.name] = (self.version, self.load, self._shortage(demand, ()))
        return known[2]

    def _shortage(self, demand: Demand, guests: Sequence[Resident]) -> str:
        if len(self.pods) + len(guests) + 1 > self.allocatable.get("pods", 0):
            return "Too many pods"
        for name, wanted in demand.requests.items():
            taken = self.used.get(name, 0) + sum(guest.uses.get(name, 0) for guest in guests)
            if wanted > self.allocatable.get(name, 0) - taken:
                return f"Insufficient {name}"
        return ""


class NodeViews:
    """All nodes, and where every bound pod is."""

    def __init__(self) -> None:
        self.by_name: dict[str, NodeView] = {}
        self._place: dict[str, str] = {}
        self._counters: dict[CounterKey, tuple[tuple[Term, ...], dict[str, int]]] = {}
        #: Required anti-affinity terms of bound pods, and how many owners each node has.
        self.forbidding: dict[str, tuple[Term, dict[str, int]]] = {}

    def see(self, node: Manifest) -> bool:
        return self._view(node["metadata"]["name"]).see(node)

    def forget(self, name: str) -> None:
        view = self.by_name.get(name)
        if view is None:
            return
        view.known = False
        view.version = next(_VERSIONS)
        if not view.pods:
            del self.by_name[name]

    def known(self) -> Iterator[NodeView]:
        return (view for view in self.by_name.values() if view.known)

    def resident(self, uid: str) -> Resident | None:
        """The pod as it was seen last, if it has a node."""
        name = self._place.get(uid)
        return self.by_name[name].pods[uid] if name is not None else None

    def add(self, pod: Manifest, demand: Demand) -> bool:
        """A pod is bound (or changed while it is); whether that may let another pod in."""
        before, now = self.resident(pod["metadata"]["uid"]), Resident.of(pod, demand)
        self.remove(now.uid)
        view = self._view(pod["spec"]["nodeName"])
        view.pods[now.uid] = now
        view.load = next(_VERSIONS)
        self._place[now.uid] = view.name
        for name, amount in now.uses.items():
            view.used[name] = view.used.get(name, 0) + amount
        self._count(now, view.name, 1)
        return before is not None and (
            before.demand is not demand or before.terminating != now.terminating or before.uses != now.uses
        )

    def remove(self, uid: str) -> bool:
        """A pod is gone or finished; whether it was there."""
        name = self._place.pop(uid, None)
        if name is None:
            return False
        view = self.by_name[name]
        old = view.pods.pop(uid)
        view.load = next(_VERSIONS)
        for resource, amount in old.uses.items():
            view.used[resource] -= amount
        self._count(old, name, -1)
        if not view.known and not view.pods:
            del self.by_name[name]
        return True

    def refresh(self, demand_of: Callable[[Manifest], Demand]) -> None:
        """Read all pods again: the namespaces that their terms select have changed."""
        pods = [resident.manifest for view in self.by_name.values() for resident in view.pods.values()]
        for pod in pods:
            self.remove(pod["metadata"]["uid"])
        self._counters.clear()
        self.forbidding.clear()
        for pod in pods:
            self.add(pod, demand_of(pod))

    def counts(self, terms: tuple[Term, ...], *, terminating: bool) -> Mapping[str, int]:
        """By node name, the pods that all terms select; those being deleted only if asked for."""
        key = (tuple(term.key for term in terms), terminating)
        if key not in self._counters:
            counts: dict[str, int] = {}
            for view in self.by_name.values():
                for pod in view.pods.values():
                    if (terminating or not pod.terminating) and pod.selected_by(terms):
                        counts[view.name] = counts.get(view.name, 0) + 1
            self._counters[key] = (terms, counts)
        return self._counters[key][1]

    def _count(self, pod: Resident, name: str, change: int) -> None:
        for (_, terminating), (terms, counts) in self._counters.items():
            if (terminating or not pod.terminating) and pod.selected_by(terms):
                counts[name] = counts.get(name, 0) + change
        for term in pod.demand.anti_affinity:
            _, owners = self.forbidding.setdefault(term.key, (term, {}))
            owners[name] = owners.get(name, 0) + change

    def _view(self, name: str) -> NodeView:
        return self.by_name.setdefault(name, NodeView(name))
