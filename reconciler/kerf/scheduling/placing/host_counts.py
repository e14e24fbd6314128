"""Pods by hostname, target by target: the counts of topology groups as arrays while pods are placed on nodes that
exist.

Thousands of pods may each bring an anti-affinity that selects all others. Each of them is then counted by thousands of
groups, so to count one more pod in one group takes no more than an addition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from kerf.pods.topology_constraints import ANTI, TopologyGroup
from kerf.scheduling.nodes.table import ExistingNodes
from kerf.scheduling.offerings.instance_types import Ints
from kerf_api import labels

#: Anti-affinity over hostnames, then all other groups.
Parted = tuple[tuple[TopologyGroup, ...], tuple[TopologyGroup, ...]]


class HostCounts:
    """The arrays that have been asked for, [targets]; code that changes the counts of a group changes them as well."""

    def __init__(self, places: ExistingNodes) -> None:
        self._places = places
        self._counts: dict[TopologyGroup, Ints] = {}
        self._owners: dict[TopologyGroup, Ints] = {}
        self._parted: dict[int, tuple[tuple[TopologyGroup, ...], Parted]] = {}

    def counts(self, group: TopologyGroup) -> Ints:
        """The pods that the group counts on each target's host."""
        known = self._counts.get(group)
        if known is None:
            known = self._counts[group] = self._array(group.counts)
        return known

    def owners(self, group: TopologyGroup) -> Ints:
        """The pods with the group's anti-affinity on each target's host."""
        known = self._owners.get(group)
        if known is None:
            known = self._owners[group] = self._array(group.owners)
        return known

    def _array(self, counts: Mapping[str, int]) -> Ints:
        numbers, codes = self._places.hosts()
        found = np.zeros(len(numbers), dtype=np.int64)
        for host in counts.keys() & numbers.keys():
            found[numbers[host]] = counts[host]
        array: Ints = found[codes]
        return array

    def parted(self, groups: tuple[TopologyGroup, ...]) -> Parted:
        """The groups that count a pod: those whose domain is a node's hostname whatever the node is, and others."""
        known = self._parted.get(id(groups))
        if known is None:
            over_hosts, others = list[TopologyGroup](), list[TopologyGroup]()
            for group in groups:
                (over_hosts if group.kind == ANTI and group.key == labels.HOSTNAME else others).append(group)
            known = self._parted[id(groups)] = groups, (tuple(over_hosts), tuple(others))
        return known[1]

    def clear(self, over_hosts: Iterable[TopologyGroup], place: int) -> bool:
        """Whether no pod with one of these anti-affinities is on a target: `admits.clear` of all at once."""
        host = self._places.targets[place].hostname
        return not any([group.owners.get(host) for group in over_hosts])  # noqa: C419  a generator takes twice as long

    def count(self, over_hosts: Iterable[TopologyGroup], place: int) -> None:
        """One more pod that these groups count is on a target."""
        host, known = self._places.targets[place].hostname, self._counts
        for group in over_hosts:
            counts = group.counts
            counts[host] = counts.get(host, 0) + 1
            if group in known:
                known[group][place] += 1

    def follow(self, group: TopologyGroup, place: int) -> None:
        """A pod on a target was counted by a group of any key."""
        if group in self._counts:
            self._counts[group][place] += 1

    def follow_owner(self, group: TopologyGroup, place: int) -> None:
        """A pod with the group's anti-affinity was counted on a target."""
        if group in self._owners:
            self._owners[group][place] += 1
