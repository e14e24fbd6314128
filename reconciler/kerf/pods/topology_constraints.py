"""Spread, affinity and anti-affinity as counters: for a selector and a topology key, how many pods are in each domain.

Equal terms of many pods share one TopologyGroup. An anti-affinity group also counts where its owners are, because they
keep away the pods that they select. Hostnames are domains like others. Source: scheduling reference §5 and the
kube-scheduler's rules where that reference marks a quirk (a node without the key satisfies anti-affinity; affinity is
bootstrapped only while no pod matches anywhere).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from kerf.model.kubernetes.objects import LabelSelector, Namespace, Node, Pod, PodAffinityTerm
from kerf.model.kubernetes.selectors import Selector, selector_of
from kerf.pods.daemon_overhead import Daemon
from kerf.pods.requirements import (
    NO_TERMS,
    NodeTerms,
    accepted,
    asks_for_nodes,
    node_demands,
    node_terms,
    tolerates_all,
)
from kerf_api import labels
from kerf_api.requirements import EMPTY, Requirements
from kerf_api.v1.meta import Taint

#: So many domains are listed in a refusal.
_MOST_LISTED = 25
SPREAD, AFFINITY, ANTI = "topology spread", "pod affinity", "pod anti-affinity"


@dataclass(slots=True, eq=False)
class TopologyGroup:
    """`counts` are pods that the selector matches; `owners` pods with the (required) anti-affinity. By domain.

    `fresh` counts matching pods that are planned on new nodes, whose hostnames are not known yet. A spread counts nodes
    that have all of `keys`; spreads that are `alike` count the same nodes, by the same key. `standing` returns the
    domains of those there are, with and without pods, and `brought` are those of planned nodes that other pods get.
    New nodes carry pods of DaemonSets: `daemons` are those that the selector matches, `owner_daemons` those with the
    anti-affinity. `on_new_hosts` of the former are on each new node at least, and on each host there is; `arriving` are
    those of planned nodes, by domain of a spread; `reached` are domains that get such a node after
    pods which the spread binds have been placed (`binds`); `to_come` are those that a node for such pods brings there.
    `unsure` are those of `counts` on planned nodes that the
    spread may not count: the instance types and offerings that are still open differ in that. `following` are those of
    `counts` on planned nodes that must be near pods of another group on their host, by domain and that group.
    """

    kind: str
    key: str
    namespaces: frozenset[str] | None
    selector: Selector
    filter_pod: Pod | None = None
    honors_affinity: bool = False
    honors_taints: bool = False
    keys: frozenset[str] = frozenset()
    alike: object = None
    counts: dict[str, int] = field(default_factory=dict)
    owners: dict[str, int] = field(default_factory=dict)
    standing: Callable[[], frozenset[str]] = frozenset
    daemons: tuple[Daemon, ...] = ()
    owner_daemons: tuple[Daemon, ...] = ()
    brought: frozenset[str] = frozenset()
    on_new_hosts: int = 0
    arriving: dict[str, int] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)
    to_come: dict[str, int] = field(default_factory=dict)
    binds: bool = False
    fresh: int = 0
    unsure: dict[str, int] = field(default_factory=dict)
    following: dict[tuple[str, TopologyGroup], int] = field(default_factory=dict)
    asked: tuple[Requirements, ...] | None = None
    terms: NodeTerms | None = None
    avoided: tuple[frozenset[str], ...] | None = None
    at_first: tuple[dict[str, int], dict[str, int]] = field(default_factory=lambda: ({}, {}))

    def selects(self, namespace: str, pod_labels: Mapping[str, str]) -> bool:
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(pod_labels)

    def selects_pods_of(self, daemon: Daemon) -> bool:
        return self.selects(daemon.pod.metadata.namespace, daemon.pod.metadata.labels)

    def keeps_away(self, daemon: Daemon) -> bool:
        """Whether it is about pods of the DaemonSet and others that cannot share a domain (anti-affinity only)."""
        return daemon in self.owner_daemons or self.selects_pods_of(daemon)

    def keeps_off(self, daemon: Daemon, domain: str) -> bool:
        """Whether it keeps pods of the DaemonSet off the domain now (anti-affinity only)."""
        own = daemon in self.owner_daemons and self.counts.get(domain, 0)
        selected = self.owners.get(domain, 0) and self.selects_pods_of(daemon)
        return bool(own or selected)

    def admits_node(self, node_labels: Requirements, taints: Sequence[Taint]) -> bool:
        """Whether pods on such a node count (spread only; others count everywhere)."""
        if self.filter_pod is None:
            return True
        if not all(key in node_labels for key in self.keys) or not self.withstands(taints):
            return False
        if self.terms is None:
            self.terms = node_terms(self.filter_pod) if self.honors_affinity else NO_TERMS
        return accepted(self.terms, node_labels)

    def withstands(self, taints: Sequence[Taint]) -> bool:
        """Whether pods count on a node with these taints, whatever its labels (spread only)."""
        return self.filter_pod is None or not self.honors_taints or withstands(self.filter_pod, taints)

    def demands(self) -> tuple[Requirements, ...] | None:
        """The labels of the nodes whose pods count (spread only), one for each term; None: any labels."""
        if self.filter_pod is None or not self.honors_affinity or not asks_for_nodes(self.filter_pod):
            return None
        if self.asked is None:
            self.asked = node_demands(self.filter_pod)
        return self.asked

    def filter_name(self, named: Set[str]) -> object:
        """A value that groups share only if both count pods on a node, or neither does.

        Args:
            named: the labels that the node has or may have.
        """
        if self.filter_pod is None:
            return None
        if self.avoided is None:
            demands = self.demands()
            asked = [(EMPTY, EMPTY)] if demands is None else [(one, named_labels(one)) for one in demands]
            self.avoided = tuple([frozenset(one) for one, wanted in asked if not wanted])
        for keys in self.avoided:
            if keys.isdisjoint(named):  # whichever labels and values of labels the term leaves out
                return self.keys, self.filter_pod.spec.tolerations if self.honors_taints else None
        return self.alike

    def count(self, domain: str, number: int) -> None:
        """So many more pods that the selector matches are in the domain."""
        self.counts[domain] = self.counts.get(domain, 0) + number

    def doubt(self, domain: str, number: int) -> None:
        """So many of the pods in the domain may not count."""
        self.unsure[domain] = self.unsure.get(domain, 0) + number

    def follow(self, domain: str, hosts: Iterable[TopologyGroup], number: int) -> None:
        """So many of the pods in the domain must be near pods of each of these groups on their host."""
        for host in hosts:
            self.following[domain, host] = self.following.get((domain, host), 0) + number

    def ahead(self, domain: str, hosts: Iterable[TopologyGroup]) -> int:
        """The pods in the domain that do not follow those of these groups: the company for a pod that is one of them.

        A pod on a new node whose company comes to its host later is none for that company: each would wait for the
        other.
        """
        number = self.counts.get(domain, 0)
        return number - sum(self.following.get((domain, host), 0) for host in hosts) if self.following else number

    def least(self, domain: str) -> int:
        """The pods that are in the domain at least.

        Where only nodes that may not count make it a domain, it is one with a pod of theirs, or none.
        """
        number, unsure = self.counts.get(domain, 0) + self.expected(domain), self.unsure.get(domain, 0)
        if number > unsure or not unsure:
            return number - unsure
        return int(domain not in self.brought and domain not in self.standing())

    def expected(self, domain: str) -> int:
        """The pods of DaemonSets on the first node in the domain, which is neither there nor planned (spread only).

        It is no domain before, so the spread never has fewer pods there.
        """
        there = self.counts.get(domain) or domain in self.reached or domain in self.arriving or domain in self.brought
        return 0 if there or domain in self.standing() else self.to_come.get(domain, 0)

    def expect(self, domain: str, number: int) -> None:
        """A node in the domain that can be made for pods of the spread brings so many pods of DaemonSets."""
        self.to_come[domain] = min(self.to_come.get(domain, number), number)

    def own(self, domain: str, number: int) -> None:
        """So many more pods with the anti-affinity are in the domain."""
        self.owners[domain] = self.owners.get(domain, 0) + number

    def arrive(self, domain: str, number: int) -> None:
        """The first node that is planned in the domain brings so many pods of DaemonSets."""
        self.count(domain, number)
        if self.binds:
            self.reached.add(domain)
        else:
            self.arriving[domain] = number

    def anywhere(self) -> int:
        return sum(self.counts.values()) + self.fresh


@dataclass(frozen=True, slots=True, eq=False)
class TopologyConstraint:
    """A constraint that a class of pods owns. `self_match`: its own pods are among those that are counted.

    `together` are the groups of all required affinity terms of its owner: the terms are one constraint.
    """

    group: TopologyGroup
    self_match: bool
    max_skew: int = 0
    min_domains: int = 0
    required: bool = True
    together: tuple[TopologyGroup, ...] = ()

    @property
    def key(self) -> str:
        return self.group.key

    def describe(self, domains: Set[str] = frozenset()) -> str:
        """The constraint as a refusal; `domains` are those that the skew is measured over (spread only)."""
        listed = {d: n for d, n in sorted(self.group.counts.items())[:_MOST_LISTED] if d[:1] != "\0"}
        counts = ", ".join(f"{d}: {n}" for d, n in listed.items()) or "none"
        least = self._minimum(domains, listed.keys()) if self.group.kind == SPREAD else ""
        return f"unsatisfiable topology constraint for {self.group.kind}, key={self.key} (counts = {counts}{least})"

    def _minimum(self, domains: Set[str], listed: Set[str]) -> str:
        """What holds the minimum of a spread down, as far as the `listed` domains do not show it."""
        counts = self.group.counts
        number = len(domains | {domain for domain, pods in counts.items() if pods})
        if domains and number < self.min_domains:
            return f", minDomains = {self.min_domains}, domains = {number}"
        pods, domain = min(((counts.get(one, 0), one) for one in domains if one[:1] != "\0"), default=(0, ""))
        return f", minimum = {domain}: {pods}" if domain and domain not in listed else ""


def named_labels(requirements: Requirements) -> frozenset[str]:
    """The labels of which requirements ask more than that they be absent or not have some values."""
    return frozenset([key for key, row in requirements.items() if not row.accepts_absence])


#: A pod's own constraint, or a group whose owners keep the pod away.
KeepsAway = TopologyConstraint | TopologyGroup


def withstands(pod: Pod, taints: Sequence[Taint]) -> bool:
    """Whether taints leave a node among those that a pod's spread counts: soft ones always do."""
    return tolerates_all(pod.spec.tolerations, [taint for taint in taints if taint.effect != "PreferNoSchedule"])


def term_group(
    pod: Pod, term: PodAffinityTerm, kind: str, namespaces: Mapping[str, Namespace]
) -> tuple[object, TopologyGroup]:
    """The group of an (anti-)affinity term with nothing counted yet, and what it shares with equal terms."""
    place, selector = _reach(pod, term, namespaces), selector_of(term.label_selector, {}, ())
    return (kind, term.label, place, selector), TopologyGroup(kind, term.label, place, selector)


def terms_groups(
    pod: Pod, terms: Sequence[PodAffinityTerm], namespaces: Mapping[str, Namespace]
) -> Iterator[tuple[object, TopologyGroup]]:
    """The group of each of the required affinity `terms`: it counts only pods that match all of them."""
    if not terms:
        return
    place, chosen, others = _reach(pod, terms[0], namespaces), selector_of(terms[0].label_selector, {}, ()), terms[1:]
    for other in others:
        reach = _reach(pod, other, namespaces)
        place = reach if place is None else place if reach is None else place & reach
    chosen = chosen.joined([selector_of(other.label_selector, {}, ()) for other in others]) if others else chosen
    for key in (term.label for term in terms):
        yield (AFFINITY, key, place, chosen), TopologyGroup(AFFINITY, key, place, chosen)


def _reach(pod: Pod, term: PodAffinityTerm, namespaces: Mapping[str, Namespace]) -> frozenset[str] | None:
    """The namespaces that a term looks at; None for all."""
    if term.namespace_selector is None:
        return frozenset(term.namespaces or (pod.metadata.namespace,))
    if term.namespace_selector == LabelSelector():
        return None
    chosen = selector_of(term.namespace_selector, {}, ())
    found = [name for name, value in namespaces.items() if chosen.matches(value.metadata.labels)]
    return frozenset((*term.namespaces, *found))


def required_anti_affinity(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    affinity = pod.spec.affinity
    return (
        affinity.pod_anti_affinity.required if affinity is not None and affinity.pod_anti_affinity is not None else ()
    )


def required_affinity(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    affinity = pod.spec.affinity
    return affinity.pod_affinity.required if affinity is not None and affinity.pod_affinity is not None else ()


def domain_of(node: Node, key: str) -> str | None:
    value = node.metadata.labels.get(key)
    return node.name if value is None and key == labels.HOSTNAME else value
