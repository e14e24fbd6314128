"""Spread, affinity and anti-affinity as counters: for a selector and a topology key, how many pods are in each domain.

Equal terms of many pods share one Group. An anti-affinity group also counts where its owners are, because they keep
away whom they select. Hostnames are domains like others. Source: scheduling reference §5 and the kube-scheduler's rules
where that reference marks a quirk (a node without the key satisfies anti-affinity; affinity is bootstrapped only while
no pod matches anywhere).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from api import labels
from api.requirements import Requirements
from api.v1.meta import Taint
from reconciler.model.objects import LabelSelector, Node, Pod, PodAffinityTerm, TopologySpreadConstraint
from reconciler.scheduling.census import Census, members
from reconciler.scheduling.requirements_of import Demand, accepted_by_node, required_terms, tolerates_all
from reconciler.scheduling.selectors import Selector, selector_of
from reconciler.scheduling.template import Template

SPREAD, AFFINITY, ANTI = "topology spread", "pod affinity", "pod anti-affinity"


@dataclass(slots=True, eq=False)
class Group:
    """`counts` are pods that the selector matches; `owners` pods with the (required) anti-affinity. By domain.

    `fresh` counts matching pods that are planned on new nodes, whose hostnames are not known yet.
    """

    kind: str
    key: str
    namespaces: frozenset[str] | None
    selector: Selector
    filter_pod: Pod | None = None
    honors_affinity: bool = False
    honors_taints: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    owners: dict[str, int] = field(default_factory=dict)
    universe: frozenset[str] = frozenset()
    fresh: int = 0
    at_first: tuple[dict[str, int], dict[str, int]] = field(default_factory=lambda: ({}, {}))

    def selects(self, namespace: str, pod_labels: Mapping[str, str]) -> bool:
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(pod_labels)

    def admits_node(self, node_labels: Requirements, taints: Sequence[Taint]) -> bool:
        """Whether pods on such a node count (spread only; others count everywhere)."""
        if self.filter_pod is None:
            return True
        if self.honors_taints and not tolerates_all(self.filter_pod.spec.tolerations, taints):
            return False
        return not self.honors_affinity or accepted_by_node(self.filter_pod, node_labels)

    def admits_plan(self, requirements: Requirements, taints: Sequence[Taint]) -> bool:
        """The same of a node that is only planned: labels that it will get from its instance may still be open."""
        if self.filter_pod is None:
            return True
        if self.honors_taints and not tolerates_all(self.filter_pod.spec.tolerations, taints):
            return False
        return not self.honors_affinity or accepted_by_node(self.filter_pod, requirements, labels.WELL_KNOWN)

    def anywhere(self) -> int:
        return sum(self.counts.values()) + self.fresh


@dataclass(frozen=True, slots=True, eq=False)
class Bond:
    """A constraint that a class of pods owns. `self_match`: its own pods are among those that are counted."""

    group: Group
    self_match: bool
    max_skew: int = 0
    min_domains: int = 0
    required: bool = True

    @property
    def key(self) -> str:
        return self.group.key

    def allows(self, domain: str | None, strict: Requirements) -> bool:
        """Whether one more pod may go to this domain now (None: the node has no such label)."""
        group = self.group
        if domain is None:
            return group.kind == ANTI
        count = group.counts.get(domain, 0)
        if group.kind == SPREAD:
            return count + int(self.self_match) - self._least(strict) <= self.max_skew
        if group.kind == AFFINITY:
            return count > 0 or (self.self_match and group.anywhere() == 0)
        return count == 0

    def _least(self, strict: Requirements) -> int:
        """The smallest count that the skew is measured against; 0 for hostnames and when domains are too few."""
        if self.key == labels.HOSTNAME:
            return 0
        allowed = strict.allowed(self.key)
        counts = [self.group.counts.get(d, 0) for d in self.group.universe if allowed.has(d)]
        return 0 if len(counts) < self.min_domains else min(counts, default=0)

    def describe(self) -> str:
        counts = ", ".join(f"{d}: {n}" for d, n in sorted(self.group.counts.items())[:25] if d[:1] != "\0")
        return f"unsatisfiable topology constraint for {self.group.kind}, key={self.key} (counts = {counts or 'none'})"


class Topology:
    """All groups of one solve; built from the pods that stay where they are."""

    def __init__(
        self,
        census: Census,
        templates: Sequence[Template],
        active: Iterable[Node],
        moving: frozenset[str],
    ) -> None:
        self._census, self._templates, self._moving = census, templates, moving
        self._active = sorted(active, key=lambda n: n.name)
        self._labels: dict[str, Requirements] = {}
        self.groups: dict[object, Group] = {}
        self._remembered = False
        for pod in census.shunning:
            if pod.key not in moving:
                self._count_owner(pod)

    def reset(self) -> None:
        """Back to what is there, without what was planned. The first call remembers it."""
        for group in self.groups.values():
            if not self._remembered:
                group.at_first = (dict(group.counts), dict(group.owners))
            group.counts, group.owners, group.fresh = dict(group.at_first[0]), dict(group.at_first[1]), 0
        self._remembered = True

    # --- terms to groups ----------------------------------------------------------------------------------------
    def bonds(self, pod: Pod, demand: Demand) -> tuple[Bond, ...]:
        """The constraints of one rung of a pod's ladder."""
        spreads = [self._spread_bond(pod, constraint) for constraint in demand.spreads]
        near = [self._affinity_bond(pod, term, AFFINITY, True) for term in demand.affinity]
        hard = required_anti_affinity(pod)
        far = [self._affinity_bond(pod, t, ANTI, i < len(hard)) for i, t in enumerate(demand.anti_affinity)]
        return (*spreads, *near, *far)

    def _spread_bond(self, pod: Pod, constraint: TopologySpreadConstraint) -> Bond:
        selector = selector_of(constraint.label_selector, pod.metadata.labels, constraint.match_label_keys)
        affinity, taints = constraint.node_affinity_policy != "Ignore", constraint.node_taints_policy == "Honor"
        place = frozenset({pod.metadata.namespace})
        marks = (_filter_identity(pod, affinity, taints),)
        identity = (SPREAD, constraint.topology_key, place, selector, affinity, taints, marks)
        group = self.groups.get(identity)
        if group is None:
            group = Group(SPREAD, constraint.topology_key, place, selector, pod, affinity, taints)
            self._open(identity, group)
        return Bond(
            group,
            constraint.label_selector is not None and group.selects(pod.metadata.namespace, pod.metadata.labels),
            constraint.max_skew,
            constraint.min_domains or 0,
        )

    def _affinity_bond(self, pod: Pod, term: PodAffinityTerm, kind: str, required: bool) -> Bond:
        group = self._term_group(pod, term, kind)
        return Bond(group, group.selects(pod.metadata.namespace, pod.metadata.labels), required=required)

    def _term_group(self, pod: Pod, term: PodAffinityTerm, kind: str) -> Group:
        place, selector = self._namespaces(pod, term), selector_of(term.label_selector, {}, ())
        identity = (kind, term.topology_key, place, selector)
        group = self.groups.get(identity)
        if group is None:
            group = Group(kind, term.topology_key, place, selector)
            self._open(identity, group)
        return group

    def _namespaces(self, pod: Pod, term: PodAffinityTerm) -> frozenset[str] | None:
        if term.namespace_selector is None:
            return frozenset(term.namespaces or (pod.metadata.namespace,))
        if term.namespace_selector == LabelSelector():
            return None
        chosen = selector_of(term.namespace_selector, {}, ())
        found = [n for n, value in self._census.namespaces.items() if chosen.matches(value.metadata.labels)]
        return frozenset((*term.namespaces, *found))

    def _open(self, identity: object, group: Group) -> None:
        self.groups[identity] = group
        admitted: dict[str, bool] = {}
        for pod in members(group.namespaces, self._census):
            if pod.key in self._moving or not group.selector.matches(pod.metadata.labels):
                continue
            node = self._census.nodes[pod.spec.node_name]
            if node.name not in admitted:
                admitted[node.name] = group.admits_node(self._labels_of(node), node.spec.taints)
            domain = _domain(node, group.key)
            if domain is not None and admitted[node.name]:
                group.counts[domain] = group.counts.get(domain, 0) + 1
        if group.kind == SPREAD and group.key != labels.HOSTNAME:
            group.universe = frozenset(self._universe(group))

    def _universe(self, group: Group) -> Iterable[str]:
        yield from group.counts
        for node in self._active:
            domain = _domain(node, group.key)
            if domain is not None and group.admits_node(self._labels_of(node), node.spec.taints):
                yield domain
        for template in self._templates:
            pod = group.filter_pod
            if not group.honors_taints or pod is None or tolerates_all(pod.spec.tolerations, template.taints):
                yield from template.domains(group.key)

    def _labels_of(self, node: Node) -> Requirements:
        if node.name not in self._labels:
            own = {labels.HOSTNAME: node.name, **node.metadata.labels}
            self._labels[node.name] = Requirements.of_labels(own)
        return self._labels[node.name]

    def _count_owner(self, pod: Pod) -> None:
        node = self._census.nodes[pod.spec.node_name]
        for term in required_anti_affinity(pod):
            group = self._term_group(pod, term, ANTI)
            domain = _domain(node, group.key)
            if domain is not None:
                group.owners[domain] = group.owners.get(domain, 0) + 1

    def selecting(self, pod: Pod) -> tuple[Group, ...]:
        """The groups that count a pod of this namespace and these labels."""
        return tuple(g for g in self.groups.values() if g.selects(pod.metadata.namespace, pod.metadata.labels))


def required_anti_affinity(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    affinity = pod.spec.affinity
    return (
        affinity.pod_anti_affinity.required if affinity is not None and affinity.pod_anti_affinity is not None else ()
    )


def _domain(node: Node, key: str) -> str | None:
    value = node.metadata.labels.get(key)
    return node.name if value is None and key == labels.HOSTNAME else value


def _filter_identity(pod: Pod, affinity: bool, taints: bool) -> tuple[object, ...]:
    """What of the owner the node filter depends on, as something that compares."""
    terms = tuple(str(term) for term in required_terms(pod)) if affinity else ()
    selector = tuple(sorted(pod.spec.node_selector.items())) if affinity else ()
    return (selector, terms, pod.spec.tolerations if taints else ())
