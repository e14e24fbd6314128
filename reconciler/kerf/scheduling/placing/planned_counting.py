"""Planned nodes beside the node filter of a spread: on which of them the spread counts pods.

A spread counts pods on nodes that its pods' node selector and node affinity accept (`nodeAffinityPolicy: Honor`). A
planned node may still become one of several instance types and offerings. So the filter may accept all of these, some,
or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from kerf.pods.topology_constraints import TopologyGroup, named_labels
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf_api import labels
from kerf_api.requirements import Requirements


class Counting(NamedTuple):
    """The planned nodes that a spread counts: `nodes` has their requirements, by term of the node filter.

    `certain` is whether these are all nodes that the planned one may become.
    """

    nodes: tuple[Requirements, ...]
    certain: bool


_NONE: Final = Counting((), True)


def counting(group: TopologyGroup, template: NodeClaimTemplate, served: Requirements) -> Counting:
    """The planned nodes on which a spread counts pods.

    Args:
        served: the requirements of the planned node, those of its NodePool among them.
    """
    if not all(template.open_domains(key, served) for key in group.keys) or not group.withstands(template.taints):
        return _NONE
    demands = group.demands()
    if demands is None:
        return Counting((served,), True)
    found = []
    for demand in demands:
        if not served.compatible(demand, labels.WELL_KNOWN):
            continue
        if template.table.keys.isdisjoint(demand) and _has_all_values(template, served, demand):
            return Counting((served,), True)  # its labels are of no type: that needs no shape of its own
        nodes = template.join(served, demand)
        if nodes is not None:
            if _are_all(template, served, demand, nodes):
                return Counting((served,), True)
            found.append(nodes)
    return Counting(tuple(found), not found)


def countings(
    groups: Sequence[TopologyGroup], template: NodeClaimTemplate, served: Requirements
) -> list[tuple[TopologyGroup, Counting]]:
    """The planned nodes on which each of many groups counts pods; groups with one filter share the answer."""
    if len(groups) < 2:
        return [(group, counting(group, template, served)) for group in groups]
    named, known, found = planned_labels(template, served), dict[object, Counting](), []
    for group in groups:
        name = group.filter_name(named)
        answer = known.get(name)
        if answer is None:
            answer = known[name] = counting(group, template, served)
        found.append((group, answer))
    return found


def planned_labels(template: NodeClaimTemplate, served: Requirements) -> frozenset[str]:
    """The labels that a planned node has or may have."""
    return template.table.keys | named_labels(served)


def counted_domains(group: TopologyGroup, template: NodeClaimTemplate, served: Requirements) -> frozenset[str]:
    """The domains of a spread that the planned node may bring."""
    nodes = counting(group, template, served).nodes
    return frozenset(domain for some in nodes for domain in template.open_domains(group.key, some))


def _are_all(template: NodeClaimTemplate, served: Requirements, demand: Requirements, nodes: Requirements) -> bool:
    """Whether a demand leaves all instance types, and all values of its labels, that a planned node may have."""
    if nodes == served:
        return True
    if len(template.shape(nodes).types) < len(template.shape(served).types):
        return False
    return _has_all_values(template, served, demand)


def _has_all_values(template: NodeClaimTemplate, served: Requirements, demand: Requirements) -> bool:
    return all(row.has(value) for key, row in demand.items() for value in template.open_domains(key, served))
