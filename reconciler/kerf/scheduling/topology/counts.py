"""What topology groups count among the bound pods of a snapshot: worked out when a group is first asked for, then kept.

Pods that terminate count for affinity and anti-affinity as long as they are there, and for no spread.

A solve takes its own moving pods and the nodes that it leaves out off these counts (`less`), which costs as much as
there are of those, however large the cluster is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from kerf.model.kubernetes.objects import Namespace, Node, Pod
from kerf.model.kubernetes.pods import place, terminating
from kerf.model.kubernetes.selectors import Selector
from kerf.pods.daemon_overhead import Daemon
from kerf.pods.requirements import asked_labels
from kerf.pods.topology_constraints import (
    ANTI,
    SPREAD,
    TopologyGroup,
    domain_of,
    required_anti_affinity,
    term_group,
)
from kerf.scheduling.facts.bound_pods import BoundPods
from kerf.scheduling.topology.label_table import LabelTable
from kerf_api import labels
from kerf_api.requirements import Requirements
from kerf_api.v1.meta import Taint

#: From so many matches on, of selectors with sets of labels, a table of the labels is worth its price.
MANY: Final = 5000
#: The same of selectors with running pods, for each of these.
_TIMES: Final = 20


@dataclass(frozen=True, slots=True, eq=False)
class BoundCounts:
    """`homes` maps the keys of counted pods to their domains, `counts` the domains to how many they have.

    `daemons` are DaemonSets whose pods count.
    """

    counts: Mapping[str, int]
    homes: Mapping[str, str]
    daemons: tuple[Daemon, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class InverseGroup:
    """A group of required anti-affinity that bound pods own: their `homes` by key, and `counts` of them, by domain."""

    group: TopologyGroup
    counts: dict[str, int] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)

    def fresh(self) -> TopologyGroup:
        one = self.group
        return TopologyGroup(one.kind, one.key, one.namespaces, one.selector)


class Tallies:
    """See the module. `staying` are nodes that are not being removed: their labels are domains even where no pod runs.

    `coming` are the taints, by Node, that those keep that are not initialised yet: what they start with will vanish.
    """

    def __init__(
        self,
        census: BoundPods,
        staying: Iterable[Node],
        coming: Mapping[str, Sequence[Taint]],
        daemons: Sequence[Daemon] = (),
    ) -> None:
        self._census, self._staying = census, tuple(sorted(staying, key=lambda node: node.name))
        self._coming, self.daemons = coming, daemons
        self._known: dict[object, BoundCounts] = {}
        self._offered: dict[object, tuple[Mapping[str, int], Mapping[str, str]]] = {}
        #: Pods by label key, then value.
        self._by_label: dict[str, dict[str, list[tuple[str, Pod]]]] = {}
        self._matches = 0
        self._inverse: dict[object, InverseGroup] = {}
        #: Identities of inverse groups by one label pair that their selector asks for, if it asks for any.
        self._inverse_of: dict[tuple[str, str] | None, list[object]] = {}
        for key, pod in census.inverse:
            self._count_owner(key, pod)
        for identity, inverse in self._inverse.items():
            pairs = inverse.group.selector.pairs
            self._inverse_of.setdefault(pairs[0] if pairs else None, []).append(identity)

    def beside(self, new: Iterable[Node]) -> Tallies:
        """The same with nodes more, which stay."""
        other = copy(self)
        other._staying, other._offered = tuple(sorted((*self._staying, *new), key=lambda node: node.name)), {}
        return other

    def runs(self, daemon: Daemon, node: str) -> bool:
        """Whether a pod of the DaemonSet is on a Node."""
        there = self._census.residents.get(node)
        return there is not None and any(key == daemon.key for key, _ in there.daemons)

    @property
    def namespaces(self) -> Mapping[str, Namespace]:
        return self._census.namespaces

    # --- pods that keep others away -----------------------------------------------------------------------------
    def _count_owner(self, key: str, pod: Pod) -> None:
        name = place(pod)
        node, known = self._census.nodes[name], self._census.residents[name].terms[key]
        for term, found in zip(required_anti_affinity(pod), known, strict=True):
            identity, group = found or term_group(pod, term, ANTI, self.namespaces)
            inverse = self._inverse.setdefault(identity, InverseGroup(group))
            domain = domain_of(node, group.key)
            if domain is not None and key not in inverse.homes:
                inverse.homes[key] = domain
                inverse.counts[domain] = inverse.counts.get(domain, 0) + 1

    def inverse(self, pods: Iterable[Pod]) -> Iterator[tuple[object, InverseGroup]]:
        """Each group that keeps some of these pods away, once, in an order that depends on nothing else."""
        if not self._inverse:
            return
        shapes = {(pod.metadata.namespace, tuple(sorted(pod.metadata.labels.items()))) for pod in pods}
        if len(shapes) * len(self._inverse) > MANY:
            yield from self._inverse_many(sorted(shapes))
            return
        seen: set[object] = set()
        for namespace, pairs in sorted(shapes):
            own = dict(pairs)
            for identity in (i for pair in (None, *pairs) for i in self._inverse_of.get(pair, ())):
                if identity not in seen and self._inverse[identity].group.selects(namespace, own):
                    seen.add(identity)
                    yield identity, self._inverse[identity]

    def _inverse_many(
        self, shapes: Sequence[tuple[str, tuple[tuple[str, str], ...]]]
    ) -> Iterator[tuple[object, InverseGroup]]:
        """The same in the same order: by the first shape that a group keeps away, then as `_inverse_of` has them."""
        table, found = LabelTable([(namespace, dict(pairs)) for namespace, pairs in shapes]), []
        for number, (identity, inverse) in enumerate(self._inverse.items()):
            matching = table.matching(inverse.group.namespaces, inverse.group.selector)
            first = int(matching.argmax())
            if matching[first]:
                asked = inverse.group.selector.pairs
                found.append((first, shapes[first][1].index(asked[0]) if asked else -1, number, identity))
        for *_, identity in sorted(found, key=lambda row: row[:3]):
            yield identity, self._inverse[identity]

    # --- counts -------------------------------------------------------------------------------------------------
    def of(self, identity: object, group: TopologyGroup) -> BoundCounts:
        """The tally of a group; `identity` is what makes groups equal."""
        known = self._known.get(identity)
        if known is None:
            known = self._known[identity] = self._tally(group)
        return known

    def _tally(self, group: TopologyGroup) -> BoundCounts:
        admits = _Admission(group, self._coming)
        homes: dict[str, str] = {}
        for key, pod in self._selected(group):
            if group.kind == SPREAD and terminating(pod):
                continue
            node = self._census.nodes[place(pod)]
            domain = domain_of(node, group.key)
            if domain is not None and admits(node):
                homes[key] = domain
        chosen = [daemon for daemon in self.daemons if group.selects_pods_of(daemon)]
        return BoundCounts(_counted(homes.values()), homes, tuple(chosen))

    def offered(self, alike: object, group: TopologyGroup) -> tuple[Mapping[str, int], Mapping[str, str]]:
        """The domains of nodes that stay and whose pods count for a spread: how many, and by the node's name.

        `alike` is what spreads with the same domains have in common: all but the pods that they count.
        """
        known = self._offered.get(alike)
        if known is None:
            admits = _Admission(group, self._coming)
            there = ((node.name, domain_of(node, group.key)) for node in self._staying if admits(node))
            places = {name: domain for name, domain in there if domain is not None}
            known = self._offered[alike] = _counted(places.values()), places
        return known

    def _selected(self, group: TopologyGroup) -> Iterator[tuple[str, Pod]]:
        near = self._near(group.selector)
        self._matches += len(near)
        if self._matches > _TIMES * len(self._census.pods):
            rows = self._table.matching(group.namespaces, group.selector)
            yield from (self._census.pods[row] for row in np.flatnonzero(rows).tolist())
            return
        for key, pod in near:
            if group.selects(pod.metadata.namespace, pod.metadata.labels):
                yield key, pod

    @cached_property
    def _table(self) -> LabelTable:
        return LabelTable([(pod.metadata.namespace, pod.metadata.labels) for _, pod in self._census.pods])

    def _near(self, selector: Selector) -> Sequence[tuple[str, Pod]]:
        """All pods that the selector may match, and few others."""
        if selector.nothing:
            return ()
        if not selector.pairs:
            return self._census.pods
        key, value = selector.pairs[0]
        if key not in self._by_label:
            rows = self._by_label[key] = {}
            for entry in self._census.pods:
                own = entry[1].metadata.labels.get(key)
                if own is not None:
                    rows.setdefault(own, []).append(entry)
        return self._by_label[key].get(value, ())


#: They name one node.
_NAMES: Final = frozenset({labels.HOSTNAME, labels.NAME_FIELD})


class _Admission:
    """On which nodes pods count for a spread. Nodes that look the same to who is spread are looked at once."""

    def __init__(self, group: TopologyGroup, coming: Mapping[str, Sequence[Taint]]) -> None:
        self._group, self._coming = group, coming
        pod = group.filter_pod
        asked = asked_labels(pod) if pod is not None and group.honors_affinity else frozenset()
        self._keys = tuple(sorted((asked | group.keys) - _NAMES))
        self._by_host = not asked.isdisjoint(_NAMES)
        self._known: dict[object, bool] = {}

    def __call__(self, node: Node) -> bool:
        if self._group.filter_pod is None:
            return True
        own, taints = node.metadata.labels, self._coming.get(node.name, node.spec.taints)
        look = (*map(own.get, self._keys), node.name if self._by_host else "", taints)
        known = self._known.get(look)
        if known is None:
            described = Requirements.of_labels({labels.HOSTNAME: node.name, labels.NAME_FIELD: node.name, **own})
            known = self._known[look] = self._group.admits_node(described, taints)
        return known


def _counted(values: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return counts


def less(counts: Mapping[str, int], homes: Mapping[str, str], without: Set[str]) -> dict[str, int]:
    """The counts by domain without some of those counted; a domain that has none left is not in it."""
    found = dict(counts)
    for key in homes.keys() & without:
        domain = homes[key]
        found[domain] -= 1
        if not found[domain]:
            del found[domain]
    return found
