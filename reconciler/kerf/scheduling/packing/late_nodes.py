"""New nodes for pods that are placed after all others: each counts with its DaemonSet pods before the next pod comes.

A spread may count these. They are on the node before any pod of the plan is bound there, so they must leave a place for
the pods that the node is made for.
"""

from __future__ import annotations

from collections.abc import Collection

from kerf.pods.topology_constraints import TopologyConstraint, TopologyGroup
from kerf.scheduling.packing.finalize import Packed
from kerf.scheduling.packing.planned_domains import carried
from kerf.scheduling.placing.ways import PodGroup
from kerf.scheduling.topology import admits


class LateNodes:
    """The nodes that come on top of a plan. `groups` are the spreads of the pass that count DaemonSet pods.

    Where the plan has no node in a domain, the first pod that is planned there counts the DaemonSet pods of the first
    node with it: these are not counted again.
    """

    def __init__(self, groups: Collection[TopologyGroup]) -> None:
        self._reached = {group: {*group.arriving, *group.reached} for group in groups}

    def admits(self, node: Packed, item: PodGroup) -> bool:
        """Count the DaemonSet pods of a new node for pods of an item, unless a spread of these admits them no more.

        Args:
            item: its pods, those on the node among them, are counted.
        """
        new: dict[TopologyGroup, str] = {}
        again: list[tuple[TopologyGroup, str, int]] = []
        for group, reached in self._reached.items():
            domain, number = carried(group, node)
            if domain is not None and domain in reached:
                again.append((group, domain, number))
            elif domain is not None:
                new[group] = domain
        for group, domain, number in again:
            group.count(domain, number)
        if all(_admitted(item, constraint) for constraint in item.cls.relaxations[-1].spreads):
            for group, domain in new.items():
                self._reached[group].add(domain)
            return True
        for group, domain, number in again:
            group.count(domain, -number)
        return False


def _admitted(item: PodGroup, constraint: TopologyConstraint) -> bool:
    """Whether a spread admits the last pod of an item, which is counted in its domain."""
    group, domain = constraint.group, dict(item.pins).get(constraint.key)
    if domain is None or not group.daemons or group not in item.cls.domains:
        return True
    here = group.counts.get(domain, 0) - int(constraint.self_match)
    return admits.current(constraint, item.cls.domains[group]).admits(here)
