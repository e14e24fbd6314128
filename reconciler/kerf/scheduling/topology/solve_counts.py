"""The groups of one solve: what its pods are bound by, counted without the pods that move and the nodes that are
removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Final, Protocol

import numpy as np

from kerf.model.kubernetes.objects import Pod, PodAffinityTerm, TopologySpreadConstraint
from kerf.model.kubernetes.selectors import Selector, selector_of
from kerf.model.snapshot import StateNode
from kerf.pods.daemon_overhead import Daemon
from kerf.pods.requirements import Demand, required_terms, selects_nothing
from kerf.pods.topology_constraints import (
    AFFINITY,
    ANTI,
    SPREAD,
    TopologyConstraint,
    TopologyGroup,
    required_affinity,
    required_anti_affinity,
    term_group,
    terms_groups,
)
from kerf.scheduling.topology.counts import MANY, Tallies, less
from kerf.scheduling.topology.label_table import LabelTable
from kerf.scheduling.topology.node_filters import FilteredNode, NodeFilters
from kerf.scheduling.work import Work
from kerf_api import labels

#: Steps to read a term, and to count the pods of one that is new; so many terms that an earlier relaxation of the pod
#: has are one step.
_A_CONSTRAINT: Final = 3
TERMS_A_STEP: Final = 8
_A_GROUP: Final = 10
#: So many nodes are held against the node filter of a spread in one step.
_NODES_A_STEP: Final = 2


class CountedNode(FilteredNode, Protocol):
    """What the groups of a solve need of a node that exists or is on its way; `nodes.existing.Target` has it.

    `awaited` are the DaemonSets whose pods are still to come there.
    """

    @property
    def state(self) -> StateNode: ...
    @property
    def awaited(self) -> tuple[Daemon, ...]: ...
    def domain(self, key: str) -> str | None:
        """The value of a label; None when the node has none, or may have several."""


class Topology:
    """All groups that can matter to `pods`, the pods of one solve.

    `moving` are those of them that are bound now, `leaving` names of nodes that are no targets: neither is counted.
    `targets` are the nodes: there will be pods of DaemonSets that are still missing, and the domains of new ones.
    To look through constraints is counted as `work`.
    """

    def __init__(
        self,
        tallies: Tallies,
        pods: Iterable[Pod],
        moving: frozenset[str],
        leaving: frozenset[str],
        targets: Sequence[CountedNode] = (),
        work: Work | None = None,
    ) -> None:
        self._work = work if work is not None else Work()
        self._tallies, self._moving, self._leaving, self._targets = tallies, moving, leaving, targets
        self._filters = NodeFilters()
        self.groups: dict[object, TopologyGroup] = {}
        #: Groups that only keep pods away so far: which pods they select matters to pods that own such a term alone.
        self._uncounted: set[object] = set()
        #: Domains of nodes that have not joined, by what spreads with the same ones have in common.
        self._coming: dict[object, frozenset[str]] = {}
        self._latest: tuple[Pod | None, tuple[object, ...], tuple[TopologyConstraint, ...]] = (None, (), ())
        #: The constraints of the latest pod, by kind and identity of the term, and whether it is required.
        self._of_terms: dict[tuple[str, int, bool], TopologyConstraint] = {}
        #: Those of its required affinity terms, which are one constraint.
        self._together: tuple[TopologyConstraint, ...] | None = None
        self._remembered = False
        self._inverse(pods)
        for daemon in tallies.daemons:
            for term in required_anti_affinity(daemon.pod):
                group = self._open(*term_group(daemon.pod, term, ANTI, tallies.namespaces))
                group.owner_daemons = (*group.owner_daemons, daemon)
                for domain in self._awaited(group, daemon):
                    group.own(domain, 1)

    def reset(self) -> None:
        """Back to the pods there are and the pods of DaemonSets that planned nodes bring, without planned pods.

        The first call remembers the pods there are.
        """
        for group in self.groups.values():
            if not self._remembered:
                group.at_first = (dict(group.counts), dict(group.owners))
            group.counts, group.owners, group.fresh = dict(group.at_first[0]), dict(group.at_first[1]), 0
            group.reached, group.binds, group.unsure, group.following = set(), False, {}, {}
            for domain, number in group.arriving.items():
                group.count(domain, number)
        self._remembered = True

    def forget(self) -> None:
        """Without the domains that planned nodes of earlier rounds bring."""
        for group in self.groups.values():
            group.brought = frozenset()

    # --- terms to groups ----------------------------------------------------------------------------------------
    def constraints(self, pod: Pod, demand: Demand) -> tuple[TopologyConstraint, ...]:
        """The constraints of one relaxation of a pod; relaxations that follow each other share those of one term."""
        asked = (demand.spreads, demand.affinity, demand.anti_affinity)
        if pod is not self._latest[0]:
            self._of_terms, self._together = {}, None
        if pod is not self._latest[0] or asked != self._latest[1]:
            self._latest = pod, asked, self._constraints(pod, demand)
        return self._latest[2]

    def _constraints(self, pod: Pod, demand: Demand) -> tuple[TopologyConstraint, ...]:
        must, hard, before = required_affinity(pod), len(required_anti_affinity(pod)), len(self._of_terms)
        spreads = [self._spread_constraint(pod, constraint) for constraint in demand.spreads]
        if self._together is None:
            self._work.charge(_A_CONSTRAINT * len(must))
            self._together = tuple(self._required_constraints(pod, must))
        near = [self._affinity_constraint(pod, term, AFFINITY, False) for term in demand.affinity[len(must) :]]
        far = [self._affinity_constraint(pod, t, ANTI, i < hard) for i, t in enumerate(demand.anti_affinity)]
        terms = len(spreads) + len(near) + len(far)
        self._work.charge(_A_CONSTRAINT * (len(self._of_terms) - before) + terms // TERMS_A_STEP)
        return (*spreads, *self._together, *near, *far)

    def _spread_constraint(self, pod: Pod, constraint: TopologySpreadConstraint) -> TopologyConstraint:
        key = (SPREAD, id(constraint), False)
        if key not in self._of_terms:
            group, self_match = self._spread_group(pod, constraint)
            skew, domains = constraint.max_skew, constraint.min_domains or 0
            self._of_terms[key] = TopologyConstraint(group, self_match, skew, domains)
        return self._of_terms[key]

    def _spread_group(self, pod: Pod, constraint: TopologySpreadConstraint) -> tuple[TopologyGroup, bool]:
        """The group of a spread, and whether that counts the pod itself."""
        selector = selector_of(constraint.label_selector, pod.metadata.labels, constraint.match_label_keys)
        if selector == Selector():  # the kube-scheduler counts no pod for an empty selector
            selector = Selector(nothing=True)
        affinity, taints = constraint.node_affinity_policy != "Ignore", constraint.node_taints_policy == "Honor"
        place = frozenset({pod.metadata.namespace})
        marks, keys = _filter_identity(pod, affinity, taints), _keys(pod, constraint)
        alike = (constraint.label, affinity, taints, marks, keys)
        identity = (SPREAD, place, selector, *alike)
        fresh = TopologyGroup(SPREAD, constraint.label, place, selector, pod, affinity, taints, keys, alike)
        group = self._open(identity, fresh)
        own = pod.metadata
        return group, constraint.label_selector is not None and group.selects(own.namespace, own.labels)

    def _required_constraints(self, pod: Pod, terms: Sequence[PodAffinityTerm]) -> Iterator[TopologyConstraint]:
        groups = tuple(self._open(*one) for one in terms_groups(pod, terms, self._tallies.namespaces))
        for group in groups:
            yield TopologyConstraint(group, group.selects(pod.metadata.namespace, pod.metadata.labels), together=groups)

    def _affinity_constraint(self, pod: Pod, term: PodAffinityTerm, kind: str, required: bool) -> TopologyConstraint:
        key = (kind, id(term), required)
        if key not in self._of_terms:
            group = self._open(*term_group(pod, term, kind, self._tallies.namespaces))
            self_match = group.selects(pod.metadata.namespace, pod.metadata.labels)
            self._of_terms[key] = TopologyConstraint(group, self_match, required=required)
        return self._of_terms[key]

    def _open(self, identity: object, fresh: TopologyGroup) -> TopologyGroup:
        """The group of this identity; the first time it is asked for, the fresh one with its counts."""
        group = self.groups.setdefault(identity, fresh)
        if group is fresh or identity in self._uncounted:
            self._work.charge(_A_GROUP)
            self._uncounted.discard(identity)
            tally = self._tallies.of(identity, group)
            group.counts, group.daemons = less(tally.counts, tally.homes, self._moving), tally.daemons
            for domain in (domain for daemon in tally.daemons for domain in self._awaited(group, daemon)):
                group.count(domain, 1)
            if group.kind == AFFINITY and group.daemons:
                self._inverse([daemon.pod for daemon in group.daemons])
            if group.kind == SPREAD:
                group.standing = cache(partial(self._standing, group, frozenset(group.counts)))
        return group

    def _inverse(self, pods: Iterable[Pod]) -> None:
        """Know the groups of bound pods that keep these pods away."""
        for identity, inverse in self._tallies.inverse(pods):
            if identity not in self.groups:
                self._work.charge(_A_GROUP)
                group = self.groups[identity] = inverse.fresh()
                self._uncounted.add(identity)
                group.owners = less(inverse.counts, inverse.homes, self._moving)

    def _standing(self, group: TopologyGroup, counted: frozenset[str]) -> frozenset[str]:
        if group.alike not in self._coming:
            self._work.charge(len(self._targets) // _NODES_A_STEP)
            self._coming[group.alike] = frozenset(self._on_coming_nodes(group))
        offered = less(*self._tallies.offered(group.alike, group), self._leaving)
        return counted | offered.keys() | self._coming[group.alike]

    def _on_coming_nodes(self, group: TopologyGroup) -> Iterator[str]:
        for target in (target for target in self._targets if target.state.node is None):
            domain = target.domain(group.key)
            if domain is not None and self._filters.admit(group, target):
                yield domain

    def _awaited(self, group: TopologyGroup, daemon: Daemon) -> Iterator[str]:
        """The domains of nodes on which a pod of the DaemonSet will run and does not yet."""
        for target in self._targets:
            if target.awaited and daemon in target.awaited:
                domain = target.domain(group.key)
                if domain is not None and (group.kind != SPREAD or self._filters.admit(group, target)):
                    yield domain

    def selecting(self, pods: Sequence[Pod]) -> Callable[[Pod], tuple[TopologyGroup, ...]]:
        """A function that returns the groups which count one of the pods; it does not know groups that come later."""
        groups = tuple(self.groups.values())
        many = len(groups) * len(pods) > MANY
        return _SelectingMany(groups, pods) if many else _Selecting(groups)


class _Selecting:
    """Groups by one of the labels that their selectors want, so that few are asked for each pod."""

    def __init__(self, groups: Sequence[TopologyGroup]) -> None:
        self._any: list[tuple[int, TopologyGroup]] = []
        self._by_label: dict[tuple[str, str], list[tuple[int, TopologyGroup]]] = {}
        for entry in enumerate(groups):
            pairs = entry[1].selector.pairs
            (self._by_label.setdefault(pairs[0], []) if pairs else self._any).append(entry)
        self._known: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[TopologyGroup, ...]] = {}

    def __call__(self, pod: Pod) -> tuple[TopologyGroup, ...]:
        namespace, own = pod.metadata.namespace, pod.metadata.labels
        key = (namespace, tuple(own.items()))
        if key not in self._known:
            entries = [entry for pair in key[1] for entry in self._by_label.get(pair, ())]
            good = [entry for entry in (*self._any, *entries) if entry[1].selects(namespace, own)]
            self._known[key] = tuple(group for _, group in sorted(good, key=lambda entry: entry[0]))
        return self._known[key]


class _SelectingMany:
    """The same, worked out for all pods at once."""

    def __init__(self, groups: Sequence[TopologyGroup], pods: Iterable[Pod]) -> None:
        places = list(dict.fromkeys((pod.metadata.namespace, tuple(pod.metadata.labels.items())) for pod in pods))
        table = LabelTable([(namespace, dict(pairs)) for namespace, pairs in places])
        found: list[list[TopologyGroup]] = [[] for _ in places]
        for group in groups:
            for number in np.flatnonzero(table.matching(group.namespaces, group.selector)).tolist():
                found[number].append(group)
        self._known = {place: tuple(own) for place, own in zip(places, found, strict=True)}

    def __call__(self, pod: Pod) -> tuple[TopologyGroup, ...]:
        return self._known[pod.metadata.namespace, tuple(pod.metadata.labels.items())]


def _keys(pod: Pod, constraint: TopologySpreadConstraint) -> frozenset[str]:
    """The labels that a node must have to count for a spread: those of all hard ones. Each node has a hostname."""
    hard = (s for s in pod.spec.topology_spread_constraints if s.when_unsatisfiable != "ScheduleAnyway")
    found = {one.label for one in (constraint, *hard)}
    return frozenset(found - {labels.HOSTNAME})


def _filter_identity(pod: Pod, affinity: bool, taints: bool) -> tuple[object, ...]:
    """What of the owner the node filter depends on, as something that compares."""
    terms = tuple(str(term) for term in required_terms(pod)) if affinity else ()
    selector = tuple(sorted(pod.spec.node_selector.items())) if affinity else ()
    return (selector, terms, affinity and selects_nothing(pod), pod.spec.tolerations if taints else ())
