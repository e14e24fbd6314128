"""Nodes in the making, side by side as columns: what is free on each, and how many pods of an item it can still take.

All nodes are looked at together, so that the work grows with the items and not with items times nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from kerf.pods.host_ports import HeldPorts
from kerf.pods.topology_constraints import TopologyGroup
from kerf.scheduling.offerings.instance_types import NO_PRICE, Bools, Floats, Indices, Ints
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.packing.dealing import best_first, dealt, ones
from kerf.scheduling.packing.draft import Bin, PoolDemand
from kerf.scheduling.packing.sizes import NodeSize, Sizes
from kerf.scheduling.packing.spread_limits import SpreadLimits
from kerf.scheduling.placing.ways import PodGroup
from kerf.scheduling.topology.admits import bounds
from kerf_api.requirements import Requirements

#: A joiner may narrow a node's offerings if its price stays within this factor; and joins none that costs so many times
#: what it would pay for the same type.
_NARROWING, _DEAR = 1.02, 1.5
#: Nodes count as equally like a pod when their likeness (0 to 1) differs by no more; one that it would narrow counts
#: as so much less alike.
_ALIKE, _LESS_ALIKE = 0.02, 0.5
#: Nodes without any free room have a length, too.
_TINY = 1e-12
#: Steps to look for a seat.
_A_SEAT: Final = 8
#: No more nodes than these are looked at when one is to grow.
_MOST_GROWN = 256
_NO_KINDS: Indices = np.zeros(0, dtype=np.intp)
_NO_PORTS: Final = HeldPorts()
#: Pods may not join nodes of a kind; they may, and these become nodes of another kind, which is not known yet.
_NO, _ANOTHER = -1, -2


@dataclass(frozen=True, slots=True, eq=False)
class DraftKind:
    """Nodes of one kind meet the same requirements and are filled up to the same size."""

    requirements: Requirements
    size: NodeSize


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A node in the making: what it must meet, what its pods take, pods per stock, and their host ports."""

    requirements: Requirements
    used: Ints
    content: dict[PoolDemand, int]
    ports: HeldPorts

    @classmethod
    def of(cls, full: Bin, stocks: Mapping[PodGroup, PoolDemand]) -> Draft:
        """A node with what is in a bin."""
        content: dict[PoolDemand, int] = {}
        for item, number in full.content:
            content[stocks[item]] = content.get(stocks[item], 0) + number
        return cls(full.requirements, full.used, content, full.ports)


class NodeDrafts:
    """`free` is [columns, nodes] (room for so many nodes as it is wide); `content` is pods per stock of each node."""

    def __init__(self, template: NodeClaimTemplate, weights: Mapping[int, float]) -> None:
        self.template, self._work = template, template.work
        self._weights = np.zeros(len(template.table.columns.names))
        self._weights[list(weights)] = list(weights.values())
        self.size = 0
        self.kinds: list[DraftKind] = []
        self._gone: set[int] = set()
        self.content: list[dict[PoolDemand, int]] = []
        self.ports: dict[int, HeldPorts] = {}
        self.fullness = 1.0
        self.meant: dict[PoolDemand, list[tuple[NodeSize, int]]] = {}
        self._numbers: dict[tuple[Requirements, NodeSize], int] = {}
        self._joints: dict[tuple[int, bool], Indices] = {}
        self._narrowed: dict[tuple[int, int], Requirements] = {}
        self._narrowing: set[int] = set()
        self._named: set[int] = set()
        self._less: dict[int, Floats] = {}
        self._rooms = np.zeros((16, len(template.table.columns.names)), dtype=np.int64)
        self._free = np.zeros((len(template.table.columns.names), 64), dtype=np.int64)
        self._weighed = np.zeros(self._free.shape)
        self._length = np.ones(64)
        self._kind = np.zeros(64, dtype=np.intp)
        self._counts: dict[TopologyGroup, Ints] = {}
        self._owners: dict[TopologyGroup, Ints] = {}
        self._limits = SpreadLimits()

    # --- seating ------------------------------------------------------------------------------------------------
    def seat(self, stock: PoolDemand, number: int, only: NodeSize | None = None) -> int:
        """Put up to so many pods of a stock on the nodes that there are, first come first filled; how many went."""
        if not self.size or not number:
            return 0
        self._work.total += _A_SEAT + self.size // 64 + len(stock.hosts) + len(stock.counted)
        joints = self._joint(stock)
        if only is not None:
            joints = np.where([kind.size is only for kind in self.kinds[: len(joints)]], joints, _NO)
        taking, each = self._chosen(self._able(stock, joints), self._likeness(stock), number)
        if not len(taking):
            return 0
        if each == 1 and len(taking) == number:  # each candidate has room for one
            taken, done = ones(number), number
        else:
            taking, taken = dealt(taking, self._room_for(stock, taking, number), number, each)
            done = int(taken.sum())
        if stock.lane in self._named:
            self._kind[taking] = joints[self._kind[taking]]
        elif stock.lane in self._narrowing:
            self._narrow(stock.lane, taking)
        self._put(stock, taking, taken)
        return done

    def _able(self, stock: PoolDemand, joints: Indices) -> Bools:
        """Which nodes have room for one more pod of a stock, and may have it."""
        able: Bools = joints.take(self._kind[: self.size]) != _NO
        for column, need in stock.steps:
            able &= self._free[column, : self.size] >= need
        self._bar(stock, able)
        return able

    def _likeness(self, stock: PoolDemand) -> Floats:
        """How much each node's free room is like the pods, in proportion: 1 for the same, less where they narrow it."""
        alike: Floats = (stock.item.need * self._weights) @ self._weighed[:, : self.size]
        alike /= self._length[: self.size]
        if stock.lane in self._narrowing:
            alike -= self._less_alike(stock.lane).take(self._kind[: self.size])
        return alike

    def _less_alike(self, lane: int) -> Floats:
        """For each kind, how much less alike its nodes count because pods of the lane would narrow them."""
        known, joints = self._less.get(lane), self._joints[lane, False]
        if known is None or len(known) < len(joints):
            known = self._less[lane] = np.where(joints == np.arange(len(joints)), 0.0, _LESS_ALIKE)
        return known

    def _chosen(self, able: Bools, likeness: Floats, number: int) -> tuple[Indices, int]:
        """The likest of the nodes that are able, best first, no more than there are pods; and how many each takes at
        first."""
        among = np.where(able, likeness, -np.inf)
        best = among.argmax()
        if not able[best]:
            return np.zeros(0, dtype=np.intp), 0
        if number == 1:
            return np.array([best]), 1
        alike = (among >= among[best] - _ALIKE).nonzero()[0]
        each = max(int(-(-number // max(len(alike) * self.fullness, 1))), 1)
        nodes = alike if len(alike) >= number else able.nonzero()[0]
        return nodes[best_first(likeness[nodes], number)], each

    def _room_for(self, stock: PoolDemand, nodes: Indices, number: int) -> Ints:
        """How many of so many pods of a stock each of these nodes can take; all are able to take one."""
        most = np.full(len(nodes), min(number, stock.together))
        for column, need in stock.steps:
            most = np.minimum(most, self._free[column, nodes] // need)
        for constraint in stock.hosts:
            here, limits = self._counts.get(constraint.group), bounds(constraint)
            if here is not None and limits.rises:
                most = np.minimum(most, limits.room(here[nodes]))
        for group in stock.counted if self._limits else ():
            if self._limits.bind(stock, group):
                most = np.minimum(most, self._limits.left(stock, group, self._row(self._counts, group))[nodes])
        return most

    def add(self, stock: PoolDemand, number: int, size: NodeSize, requirements: Requirements) -> int:
        """New nodes of a size for so many pods of a stock; how many went."""
        each = min(self.most_new(stock, size), stock.together, number)
        if each <= 0:
            return 0
        nodes = -(-number // each)
        taken = np.full(nodes, each, dtype=np.int64)
        taken[-1] = number - each * (nodes - 1)
        self._put(stock, self._grow(DraftKind(requirements, size), nodes), taken)
        return number

    def open(self, number: int, size: NodeSize, requirements: Requirements) -> None:
        """So many empty nodes of a size."""
        if number:
            self._grow(DraftKind(requirements, size), number)

    def room(self, stock: PoolDemand) -> Ints:
        """What is free in all on the nodes that the stock's pods may join."""
        able = self._joint(stock)[self._kind[: self.size]] != _NO if self.size else np.zeros(0, dtype=np.bool_)
        return np.asarray(self._free[:, : self.size][:, able].sum(axis=1))

    def grow(self, stock: PoolDemand, sizes: Sizes, most: float) -> float | None:
        """Let the node grow for one pod for which that costs least, and how much; None if it costs `most` or more."""
        if not self.size:
            return None
        joint = self._joint(stock, dear=True)[self._kind[: self.size]]
        able = joint != _NO
        self._bar(stock, able)
        nodes = np.flatnonzero(able)[:_MOST_GROWN]
        if not len(nodes):
            return None
        used = self._used(nodes)
        extra = np.full(len(nodes), np.inf)
        then = np.zeros(len(nodes), dtype=np.intp)
        lots: dict[Requirements, list[int]] = {}
        for place, kind in enumerate(self._kind[nodes].tolist()):
            lots.setdefault(self._with(stock.lane, kind, joint[nodes[place]]), []).append(place)
        for requirements, here in lots.items():
            more = np.concatenate([used[here], used[here] + stock.item.need])
            prices, rows = sizes.holding(requirements, more)
            now, grown = prices[: len(here)], prices[len(here) :]
            good = np.isfinite(now) & np.isfinite(grown)
            extra[np.array(here)[good]], then[here] = grown[good] - now[good], rows[len(here) :]
        best = int(extra.argmin())
        if extra[best] >= most:
            return None
        node, kind = int(nodes[best]), int(self._kind[nodes[best]])
        requirements = self._with(stock.lane, kind, joint[node])
        size = sizes.at(requirements, int(then[best]))
        room = np.maximum(size.room, used[best] + stock.item.need)
        self._free[:, node] += room - self.kinds[self._kind[node]].size.room
        self._kind[node] = self._number(DraftKind(requirements, NodeSize(size.place, room, size.price)))
        self._put(stock, nodes[best : best + 1], np.ones(1, dtype=np.int64))
        return float(extra[best])

    def _used(self, nodes: Indices) -> Ints:
        return np.asarray(self._rooms[self._kind[nodes]] - self._free[:, nodes].T)

    def adopt(self, content: dict[PoolDemand, int], size: NodeSize, requirements: Requirements) -> None:
        """One more node with pods that are placed together; that they fit has been seen to."""
        node = self._grow(DraftKind(requirements, size), 1)
        for stock, number in content.items():
            self._put(stock, node, np.array([number], dtype=np.int64))

    def most_new(self, stock: PoolDemand, size: NodeSize) -> int:
        """How many pods of a stock a new node of this size can take."""
        return min((int(size.room[column]) // need for column, need in stock.steps), default=stock.together)

    def _bar(self, stock: PoolDemand, able: Bools) -> None:
        """Leave out nodes whose pods, by hostname constraints and host ports, admit none of the stock's."""
        for constraint in stock.hosts:
            here, limits = self._counts.get(constraint.group), bounds(constraint)
            able &= limits.admits(0) if here is None else limits.admitting(here[: self.size])
        for group in stock.counted:
            owners = self._owners.get(group)
            if owners is not None:
                able &= owners[: self.size] == 0
            if self._limits and self._limits.bind(stock, group):
                able &= self._limits.admit(stock, group, self._row(self._counts, group)[: self.size])
        if stock.item.cls.ports:
            self._bar_by_ports(stock, able)

    def _bar_by_ports(self, stock: PoolDemand, able: Bools) -> None:
        for node, held in self.ports.items():
            if able[node] and held.clash(stock.item.cls.ports):
                able[node] = False
        if self.template.has_daemon_ports:
            for node in np.flatnonzero(able).tolist():
                together = (*self.ports.get(node, ()), *stock.item.cls.ports)
                free = self.template.free_of_ports(together)
                if free is not None and not free[self.kinds[self._kind[node]].size.place]:
                    able[node] = False

    def _put(self, stock: PoolDemand, nodes: Indices, taken: Ints) -> None:
        where: Indices | int = nodes
        number: Ints | int = taken
        if len(nodes) == 1:  # most often, and a view needs no copies
            where, number = int(nodes[0]), int(taken[0])
            self._take(where, stock.item.need * number)
        else:
            self._set_free(nodes, self._free.take(nodes, axis=1) - stock.item.need[:, None] * taken)
        for group in stock.counted:
            self._row(self._counts, group)[where] += number
        for group in stock.owned:
            self._row(self._owners, group)[where] += number
        if stock.limits:
            self._limits.put(stock, nodes, self._kind.shape[0])
        for node, each in zip(nodes.tolist(), taken.tolist(), strict=True):
            held = self.content[node]
            held[stock] = held.get(stock, 0) + each
            if stock.item.cls.ports:
                self.ports.setdefault(node, HeldPorts()).take(stock.item.cls.ports)

    def _take(self, node: int, need: Ints) -> None:
        free = self._free[:, node]
        free -= need
        weighed = self._weighed[:, node] = free * self._weights
        self._length[node] = sqrt(weighed.dot(weighed)) + _TINY

    def _set_free(self, nodes: Indices, free: Ints) -> None:
        self._free[:, nodes] = free
        weighed = self._weighed[:, nodes] = free * self._weights[:, None]
        self._length[nodes] = np.sqrt(np.add.reduce(weighed * weighed)) + _TINY

    # --- kinds --------------------------------------------------------------------------------------------------
    def _joint(self, stock: PoolDemand, *, dear: bool = False) -> Indices:
        """For each kind the kind that its nodes become when pods of the stock join: itself, `_NO` where they may not,
        or `_ANOTHER`, which comes with the first such node.

        Nodes that cost much more than what the pods ask for themselves are left to those who need them, unless `dear`.
        """
        found = self._joints.get((stock.lane, dear), _NO_KINDS)
        if len(found) < len(self.kinds):
            living = np.bincount(self._kind[: self.size], minlength=len(self.kinds)).tolist()
            more = [self._joined(stock, number, living[number], dear) for number in range(len(found), len(self.kinds))]
            if _ANOTHER in more:
                self._narrowing.add(stock.lane)
                self._named.discard(stock.lane)
            found = self._joints[stock.lane, dear] = np.concatenate([found, np.array(more, dtype=np.intp)])
        return found

    def _joined(self, stock: PoolDemand, number: int, nodes: int, dear: bool) -> int:
        if not nodes:  # no node becomes of this kind again (`_number`), so there are never more kinds than nodes
            if number not in self._gone:
                self._gone.add(number)
                self._named.clear()
            return _NO
        kind = self.kinds[number]
        joint = self.template.join(kind.requirements, stock.served)
        if joint is None:
            return _NO
        self._work.total += 1
        place = kind.size.place
        then, now, own = (int(self.template.shape(r).price_at[place]) for r in (joint, kind.requirements, stock.served))
        if then == NO_PRICE or then > now * _NARROWING or (then > own * _DEAR and not dear):
            return _NO
        if joint == kind.requirements:
            return number
        self._narrowed[stock.lane, number] = joint
        return _ANOTHER

    def _with(self, lane: int, kind: int, joint: int) -> Requirements:
        """The requirements of a node of the kind when pods of the lane have joined."""
        return self.kinds[kind].requirements if joint == kind else self._narrowed[lane, kind]

    def _narrow(self, lane: int, nodes: Indices) -> None:
        """These nodes are of other kinds when pods of the lane have joined."""
        kinds, joints = self._kind[nodes], self._joints[lane, False]
        for number in dict.fromkeys(kinds.tolist()):
            if joints[number] != number:
                kind = DraftKind(self._narrowed[lane, number], self.kinds[number].size)
                joints[number] = self._number(kind)
        if _ANOTHER not in joints and self._gone.isdisjoint(joints.tolist()):
            self._named.add(lane)
        self._kind[nodes] = joints[kinds]

    def _number(self, kind: DraftKind) -> int:
        key = (kind.requirements, kind.size)
        if key not in self._numbers or self._numbers[key] in self._gone:
            number = self._numbers[key] = len(self.kinds)
            self.kinds.append(kind)
            if number >= len(self._rooms):
                self._rooms = np.pad(self._rooms, ((0, len(self._rooms)), (0, 0)))
            self._rooms[number] = kind.size.room
        return self._numbers[key]

    # --- columns ------------------------------------------------------------------------------------------------
    def _grow(self, kind: DraftKind, nodes: int) -> Indices:
        """So many more nodes of a kind, empty; their places."""
        first, self.size = self.size, self.size + nodes
        width = self._kind.shape[0]
        if self.size > width:
            more = max(width, self.size - width)
            self._free = np.pad(self._free, ((0, 0), (0, more)))
            self._weighed = np.pad(self._weighed, ((0, 0), (0, more)))
            self._length = np.pad(self._length, (0, more))
            self._kind = np.pad(self._kind, (0, more))
            self._limits.grow(more)
            for rows in (self._counts, self._owners):
                for group, row in rows.items():
                    rows[group] = np.pad(row, (0, more))
        places = np.arange(first, self.size, dtype=np.intp)
        self._set_free(places, np.repeat(kind.size.room[:, None], nodes, axis=1))
        self._kind[places] = self._number(kind)
        self.content += ({} for _ in range(nodes))
        return places

    def _row(self, rows: dict[TopologyGroup, Ints], group: TopologyGroup) -> Ints:
        row = rows.get(group)
        if row is None:
            row = rows[group] = np.zeros(self._kind.shape[0], dtype=np.int64)
        return row

    # --- reading ------------------------------------------------------------------------------------------------
    def listed(self) -> list[Draft]:
        """The nodes that have pods, in order."""
        if not self.size:
            return []
        taken = self._used(np.arange(self.size, dtype=np.intp))
        return [
            Draft(self.kinds[kind].requirements, own, content, self.ports.get(node, _NO_PORTS))
            for node, (kind, own, content) in enumerate(
                zip(self._kind[: self.size].tolist(), taken, self.content, strict=True)
            )
            if content
        ]
