"""What hard spreads over hostnames leave on nodes in the making to pods that are bound before those that they bind.

Nodes are packed in another order than the pods of the plan are bound in. So a pod that such a spread counts, and whose
turn comes before that of a pod which it binds, must leave room for that one.
"""

from __future__ import annotations

import numpy as np

from kerf.pods.topology_constraints import TopologyGroup
from kerf.scheduling.offerings.instance_types import Bools, Indices, Ints
from kerf.scheduling.packing.draft import PoolDemand
from kerf.scheduling.topology.admits import MANY


class SpreadLimits:
    """By spread, for each node the most pods that it may count there, and the last turn of the pods that it binds there
    (0 without any), both [nodes]."""

    def __init__(self) -> None:
        self._rows: dict[TopologyGroup, tuple[Ints, Ints]] = {}
        #: By spread the last of these turns: pods that come later are free on all nodes. And the least of the numbers.
        self._latest: dict[TopologyGroup, int] = {}
        self._least: dict[TopologyGroup, int] = {}

    def bind(self, stock: PoolDemand, group: TopologyGroup) -> bool:
        """Whether the spread may leave less room on some node to pods of a stock than one of theirs does."""
        if self._latest.get(group, 0) <= stock.item.first:
            return False
        least = self._least[group]
        return not any(own is group and number <= least for own, number in stock.limits)

    def __bool__(self) -> bool:
        return bool(self._rows)

    def grow(self, more: int) -> None:
        """There is space for so many more nodes."""
        for group, (most, until) in self._rows.items():
            self._rows[group] = (np.pad(most, (0, more), constant_values=MANY), np.pad(until, (0, more)))

    def put(self, stock: PoolDemand, nodes: Indices, width: int) -> None:
        """Pods of a stock come to these nodes, of so many for which there is space."""
        for group, number in stock.limits:
            if group not in self._rows:
                self._rows[group] = (np.full(width, MANY, dtype=np.int64), np.zeros(width, dtype=np.int64))
            most, until = self._rows[group]
            most[nodes] = np.minimum(most[nodes], number)
            until[nodes] = np.maximum(until[nodes], stock.item.last)
            self._latest[group] = max(self._latest.get(group, 0), stock.item.last)
            self._least[group] = min(self._least.get(group, number), number)

    def admit(self, stock: PoolDemand, group: TopologyGroup, counts: Ints) -> Bools:
        """Whether each node may have one more pod of a stock.

        Args:
            counts: the pods that the spread counts, [nodes], perhaps of the first ones alone.
        """
        most, until = self._rows[group]
        number = len(counts)
        return (until[:number] <= stock.item.first) | (most[:number] > counts)

    def left(self, stock: PoolDemand, group: TopologyGroup, counts: Ints) -> Ints:
        """How many more pods of a stock each node may have.

        Args:
            counts: the pods that the spread counts, [nodes].
        """
        most, until = self._rows[group]
        free: Ints = np.where(until > stock.item.first, most - counts, MANY)
        return free
