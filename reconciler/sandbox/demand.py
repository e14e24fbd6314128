"""What one shape of pod asks of a node, read once: requests, selectors, tolerations, ports and topology terms.

Pods of equal namespace, labels and spec share one Demand. Source: Kubernetes, "Assigning Pods to Nodes", "Pod Topology
Spread Constraints", "Taints and Tolerations".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from api.resources import Resources
from api.v1.meta import Taint
from reconciler.model import pods
from reconciler.model.objects import (
    Expression,
    LabelSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from reconciler.sandbox import selectors

#: Gives the namespaces that a namespace selector selects.
Namespaces = Callable[[LabelSelector], Iterable[str]]
_UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


@dataclass(frozen=True, slots=True)
class Term:
    """Pods of some namespaces that a selector selects, and the label that makes a domain of nodes."""

    namespaces: frozenset[str]
    selector: LabelSelector | None
    topology_key: str

    @property
    def key(self) -> tuple[frozenset[str], bytes, str]:
        return (self.namespaces, msgspec.json.encode(self.selector, order="sorted"), self.topology_key)

    def selects(self, pod: Pod) -> bool:
        return pod.metadata.namespace in self.namespaces and selectors.matches(self.selector, pod.metadata.labels)


@dataclass(frozen=True, slots=True)
class Spread:
    """A hard spread constraint."""

    term: Term
    max_skew: int
    min_domains: int | None
    honor_affinity: bool
    honor_taints: bool


@dataclass(slots=True)
class Demand:
    """One shape of pod. `verdicts` remembers by node name which version of it passes the node's own tests."""

    pod: Pod
    requests: tuple[tuple[str, int], ...]
    spreads: tuple[Spread, ...]
    affinity: tuple[Term, ...]
    anti_affinity: tuple[Term, ...]
    ports: frozenset[tuple[int, str]]
    verdicts: dict[str, tuple[int, bool]] = field(default_factory=dict)

    @property
    def topological(self) -> bool:
        return bool(self.spreads or self.affinity or self.anti_affinity)

    @classmethod
    def of(cls, pod: Pod, namespaces: Namespaces) -> Demand:
        own = pod.spec.affinity
        requests = pods.requests(pod)
        return cls(
            pod=pod,
            requests=tuple((name, amount) for name, amount in sorted(requests.items()) if amount),
            spreads=tuple(
                _spread(row, pod)
                for row in pod.spec.topology_spread_constraints
                if row.when_unsatisfiable == "DoNotSchedule"
            ),
            affinity=_terms(own.pod_affinity if own else None, pod, namespaces),
            anti_affinity=_terms(own.pod_anti_affinity if own else None, pod, namespaces),
            ports=frozenset(
                (port.host_port, port.protocol) for c in pod.spec.containers for port in c.ports if port.host_port
            ),
        )

    def likes(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether node selector and required node affinity accept a node. No node has devices to claim."""
        if pods.claims_devices(self.pod) or any(
            labels.get(key) != value for key, value in self.pod.spec.node_selector.items()
        ):
            return False
        own = self.pod.spec.affinity
        required = own.node_affinity.required if own is not None and own.node_affinity is not None else None
        return required is None or any(term_holds(term, name, labels) for term in required.node_selector_terms)

    def tolerates(self, taints: Iterable[Taint], unschedulable: bool = False) -> bool:
        """Whether no hard taint keeps the pod away."""
        hard = [taint for taint in taints if taint.effect in ("NoSchedule", "NoExecute")]
        if unschedulable:
            hard.append(_UNSCHEDULABLE)
        return all(pods.tolerates(self.pod, taint) for taint in hard)


def shape(pod: Pod) -> bytes:
    """Equal for pods that the scheduler need not tell apart."""
    spec = msgspec.structs.replace(pod.spec, node_name="") if pod.spec.node_name else pod.spec
    parts = (pod.metadata.namespace, sorted(pod.metadata.labels.items()), spec)
    return msgspec.json.encode(parts)


def fits(requests: tuple[tuple[str, int], ...], used: Mapping[str, int], allocatable: Resources) -> bool:
    return all(used.get(name, 0) + amount <= allocatable[name] for name, amount in requests)


def _spread(row: TopologySpreadConstraint, pod: Pod) -> Spread:
    selector = row.label_selector
    if selector is not None and row.match_label_keys:
        same = {key: pod.metadata.labels[key] for key in row.match_label_keys if key in pod.metadata.labels}
        selector = msgspec.structs.replace(selector, match_labels={**selector.match_labels, **same})
    term = Term(frozenset({pod.metadata.namespace}), selector, row.topology_key)
    honors = row.node_affinity_policy == "Honor", row.node_taints_policy == "Honor"
    return Spread(term, row.max_skew, row.min_domains, *honors)


def _terms(affinity: PodAffinity | None, pod: Pod, namespaces: Namespaces) -> tuple[Term, ...]:
    return () if affinity is None else tuple(_term(row, pod, namespaces) for row in affinity.required)


def _term(row: PodAffinityTerm, pod: Pod, namespaces: Namespaces) -> Term:
    listed = set(row.namespaces)
    if row.namespace_selector is not None:
        listed |= set(namespaces(row.namespace_selector))
    elif not listed:
        listed = {pod.metadata.namespace}
    return Term(frozenset(listed), row.label_selector, row.topology_key)


def term_holds(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node of this name and labels meets a node selector term; an empty term is met by none."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": name}
    return all(_holds(row, labels) for row in term.match_expressions) and all(
        _holds(row, fields) for row in term.match_fields
    )


def _holds(row: Expression, labels: Mapping[str, str]) -> bool:
    value = labels.get(row.key)
    if row.operator == "Exists":
        return value is not None
    if row.operator == "DoesNotExist":
        return value is None
    if row.operator == "In":
        return value in row.values
    if row.operator == "NotIn":
        return value not in row.values
    if value is None or not value.lstrip("-").isdigit():
        return False
    return int(value) > int(row.values[0]) if row.operator == "Gt" else int(value) < int(row.values[0])
