"""Instance types, and other places, that pods of a pass avoid because of the facts that Kerf has learned of nodes.

A pod with more volumes than nodes of a type attach avoids the type. A further attempt also avoids the types that would
not hold the pod if they lacked as much as the nodes that did not help; if no other type holds it, it avoids nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from kerf.model.aws.instance_type import InstanceType
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Affinity, Expression, NodeAffinity, NodeSelector, NodeSelectorTerm, Pod
from kerf.model.snapshot import Snapshot
from kerf.pods.volumes import attachments
from kerf.scheduling.offerings.learned import ATTACHABLE, sizes_for
from kerf_api import labels

#: By instance type, its learned amounts by name.
Sizes = Mapping[str, Mapping[str, int]]


class Avoided:
    """The facts of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        known = any(labels.MISMATCHES in pool.metadata.annotations for pool in snapshot.node_pools.values())
        classes = sorted(snapshot.node_classes) if known else []
        self._sizes = {name: sizes_for(snapshot, snapshot.node_classes[name]) for name in classes}

    @property
    def any(self) -> bool:
        """Whether there are facts about instance types."""
        return any(self._sizes.values())

    def by_volumes(self, pod: Pod) -> frozenset[str]:
        """The types whose nodes attach fewer volumes than the pod has."""
        if not pod.spec.volumes:
            return frozenset()
        wanted = Counter(driver for driver, _ in attachments(self._snapshot, pod))
        return frozenset(
            type_
            for sizes in self._sizes.values()
            for type_, amounts in sizes.items()
            if any(amounts.get(f"{ATTACHABLE}{driver}", number) < number for driver, number in wanted.items())
        )

    def by_shortfall(self, pod: Pod) -> frozenset[str]:
        """The types that would not hold the pod if all lacked as much as those that Kerf has learned of."""
        try:
            wanted = pods.requests(pod)
        except ValueError:  # such a pod is refused where it is solved
            return frozenset()
        return frozenset(
            one.name
            for name, sizes in self._sizes.items()
            for one in self._snapshot.catalogues.get(name, ())
            if (lost := _shortfall(self._snapshot.catalogues[name], sizes))
            and any(one.allocatable[resource] - lost[resource] < wanted[resource] for resource in lost)
        )


def avoiding(pod: Pod, values: frozenset[str], key: str = labels.INSTANCE_TYPE) -> Pod:
    """The pod with one more requirement of nodes: none of these values of a label."""
    if not values:
        return pod
    another = Expression(key=key, operator="NotIn", values=tuple(sorted(values)))
    affinity = pod.spec.affinity or Affinity()
    node = affinity.node_affinity or NodeAffinity()
    terms = node.required.node_selector_terms if node.required is not None else (NodeSelectorTerm(),)
    narrowed = tuple(
        # an empty term of the pod's own selects no node, and must not begin to
        replace(term, match_expressions=(*term.match_expressions, another))
        if term.match_expressions or term.match_fields or node.required is None
        else term
        for term in terms
    )
    node = replace(node, required=NodeSelector(node_selector_terms=narrowed))
    return replace(pod, spec=replace(pod.spec, affinity=replace(affinity, node_affinity=node)))


def _shortfall(catalogue: tuple[InstanceType, ...], sizes: Sizes) -> Mapping[str, int]:
    """By resource, the most that a type lacks."""
    found: dict[str, int] = {}
    for name, lost in (row for one in catalogue for row in _lost(one, sizes.get(one.name, {}))):
        found[name] = max(lost, found.get(name, 0))
    return found


def _lost(one: InstanceType, amounts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    for name, amount in amounts.items():
        if not name.startswith(ATTACHABLE) and one.allocatable[name] > amount:
            yield name, one.allocatable[name] - amount
