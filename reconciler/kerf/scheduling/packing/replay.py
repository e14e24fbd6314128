"""A plan replayed with the pods of DaemonSets that its nodes bring: whether each pod is admitted when its turn comes.

A spread that counts such pods is planned with their number on the nodes of an earlier plan. Another number on the nodes
of this one may do no harm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kerf.pods.topology_constraints import TopologyConstraint, TopologyGroup
from kerf.scheduling.packing.finalize import Packed
from kerf.scheduling.packing.planned_domains import brought_by
from kerf.scheduling.placing.assign import Assignment
from kerf.scheduling.placing.classes import PodClass
from kerf.scheduling.topology.admits import bounds


class _Turn(NamedTuple):
    """A pod of a class with the domain that it gets in each spread, where it is counted there."""

    cls: PodClass
    domains: Mapping[TopologyGroup, str]


def holds(assignment: Assignment, classes: Iterable[PodClass], packed: list[Packed]) -> bool:
    """Whether the spreads that count DaemonSet pods admit all pods, in the order of the plan.

    Their groups know the DaemonSet pods of the planned nodes (`arriving`).
    """
    some = [cls for cls in classes if cls.daemon_spreads]
    groups = list(dict.fromkeys(group for cls in some for group in cls.daemon_spreads))
    if any(group.unsure for group in groups):
        return False
    brought = brought_by(packed)
    counts = {group: Counter(group.at_first[0]) + Counter(group.arriving) for group in groups}
    domains = {group: group.standing() | brought(group) | counts[group].keys() for group in groups}
    turns = dict(_turns(assignment, some, groups))
    for turn in (turns[pod] for pod in assignment.order if pod in turns):
        for constraint in turn.cls.relaxations[-1].spreads:
            group = constraint.group
            if group in turn.domains and not _admits(constraint, counts[group], domains[group], turn.domains[group]):
                return False
        for group in (group for group in turn.cls.counted if group in turn.domains):
            counts[group][turn.domains[group]] += 1
            domains[group] |= {turn.domains[group]}
    return True


def _admits(constraint: TopologyConstraint, counts: Mapping[str, int], domains: frozenset[str], domain: str) -> bool:
    few = len(domains | {domain}) < constraint.min_domains
    return bounds(constraint, 0 if few else min(counts.get(one, 0) for one in domains | {domain})).admits(
        counts.get(domain, 0)
    )


def _turns(
    assignment: Assignment, classes: Iterable[PodClass], groups: Iterable[TopologyGroup]
) -> Iterator[tuple[str, _Turn]]:
    for item in assignment.items.values():
        pins = dict(item.pins)
        new = _Turn(item.cls, {group: pins[group.key] for group in groups if group.key in pins})
        yield from ((key, new) for key in item.keys)
    for cls in classes:
        there: dict[str, _Turn] = {}
        for pod in (pod for pod in cls.members if pod.key in assignment.placed):
            key = assignment.placed[pod.key]
            if key not in there:
                target = assignment.targets[assignment.places.at[key]]
                found = {g: target.domain(g.key) for g in groups if g.admits_node(target.possible, target.taints)}
                there[key] = _Turn(cls, {group: domain for group, domain in found.items() if domain is not None})
            yield pod.key, there[key]
