"""The nodes as the scheduler sees them, kept up by changes: room, taints, pods; and counters of pods by node.

A counter answers "how many pods that this term selects run on each node"; it is made when a term is first asked for
and follows every pod that comes or goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from api.resources import EMPTY, Resources
from api.v1.meta import Taint
from reconciler.model.objects import Node, Pod
from reconciler.sandbox.demand import Demand, Term

TermKey = tuple[frozenset[str], bytes, str]


@dataclass(slots=True)
class NodeView:
    """One node. `version` moves when something changes that a pod's own tests read. `used` sums its pods' requests."""

    name: str
    version: int = 0
    known: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    allocatable: Resources = EMPTY
    used: dict[str, int] = field(default_factory=dict)
    pods: dict[str, tuple[Pod, Demand]] = field(default_factory=dict)

    def see(self, node: Node) -> bool:
        """Take in the Node object; whether that may let another pod in."""
        before = (self.known, self.labels, self.taints, self.unschedulable, self.allocatable)
        self.known, self.labels, self.taints = True, node.metadata.labels, node.spec.taints
        self.unschedulable = node.spec.unschedulable
        self.allocatable = Resources.parse(node.status.allocatable)
        changed = before != (self.known, self.labels, self.taints, self.unschedulable, self.allocatable)
        self.version += changed
        return changed

    def accepts(self, demand: Demand) -> bool:
        """Selectors and taints: what does not depend on other pods."""
        verdict = demand.verdicts.get(self.name)
        if verdict is None or verdict[0] != self.version:
            good = demand.likes(self.name, self.labels) and demand.tolerates(self.taints, self.unschedulable)
            verdict = demand.verdicts[self.name] = (self.version, good)
        return verdict[1]


class NodeViews:
    """All nodes, and where every bound pod is."""

    def __init__(self) -> None:
        self.by_name: dict[str, NodeView] = {}
        self._place: dict[str, str] = {}
        self._counters: dict[tuple[TermKey, bool], tuple[Term, dict[str, int]]] = {}
        #: Required anti-affinity terms of bound pods, and how many owners each node has.
        self.forbidding: dict[TermKey, tuple[Term, dict[str, int]]] = {}

    def see(self, node: Node) -> bool:
        return self._view(node.name).see(node)

    def forget(self, name: str) -> None:
        view = self.by_name.get(name)
        if view is None:
            return
        view.known = False
        if not view.pods:
            del self.by_name[name]

    def known(self) -> Iterator[NodeView]:
        return (view for view in self.by_name.values() if view.known)

    def add(self, pod: Pod, demand: Demand) -> None:
        """A pod is bound (or changed while it is)."""
        self.remove(pod.metadata.uid)
        view = self._view(pod.spec.node_name)
        view.pods[pod.metadata.uid] = (pod, demand)
        self._place[pod.metadata.uid] = view.name
        for name, amount in demand.requests:
            view.used[name] = view.used.get(name, 0) + amount
        self._count(pod, demand, view.name, 1)

    def remove(self, uid: str) -> bool:
        """A pod is gone or finished; whether it was there."""
        name = self._place.pop(uid, None)
        if name is None:
            return False
        view = self.by_name[name]
        pod, demand = view.pods.pop(uid)
        for resource, amount in demand.requests:
            view.used[resource] -= amount
        self._count(pod, demand, name, -1)
        if not view.known and not view.pods:
            del self.by_name[name]
        return True

    def counts(self, term: Term, *, terminating: bool) -> Mapping[str, int]:
        """Selected pods by node name; those being deleted only if asked for."""
        key = (term.key, terminating)
        if key not in self._counters:
            counts: dict[str, int] = {}
            for view in self.by_name.values():
                for pod, _ in view.pods.values():
                    if term.selects(pod) and (terminating or not pod.metadata.deleting):
                        counts[view.name] = counts.get(view.name, 0) + 1
            self._counters[key] = (term, counts)
        return self._counters[key][1]

    def _count(self, pod: Pod, demand: Demand, name: str, change: int) -> None:
        for (_, terminating), (term, counts) in self._counters.items():
            if term.selects(pod) and (terminating or not pod.metadata.deleting):
                counts[name] = counts.get(name, 0) + change
        for term in demand.anti_affinity:
            _, owners = self.forbidding.setdefault(term.key, (term, {}))
            owners[name] = owners.get(name, 0) + change

    def _view(self, name: str) -> NodeView:
        return self.by_name.setdefault(name, NodeView(name))
