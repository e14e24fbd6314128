"""Pods that limits left over are tried again when the answer is there, at any price.

Nodes are chosen by what they give for their price, each pool has its turn before the next, and what a round has learned
bounds the following ones. So where limits are short some pods stay without a place that would have one: on a planned
node if that became a larger one of its types, or on one more node, from whichever NodePool. No pod loses the place that
he has, and all other rules hold as ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from kerf.pods.topology_constraints import AFFINITY
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.packing.draft import Bin, PoolDemand, stocks_of
from kerf.scheduling.packing.drafts import Draft
from kerf.scheduling.packing.finalize import Packed, close
from kerf.scheduling.packing.late_nodes import LateNodes
from kerf.scheduling.packing.sizes import PER_NODE
from kerf.scheduling.placing.assign import Assignment
from kerf.scheduling.placing.second_tries import on_new_nodes
from kerf.scheduling.placing.ways import PodGroup
from kerf.scheduling.topology.admits import bounds
from kerf_api.requirements import EMPTY, Requirements

#: So many nodes of a pool are looked at, those that were planned last; and so often one is held against a pod.
_MOST_NODES, _MOST_TRIALS = 32, 2000


def with_leftovers(
    assignment: Assignment,
    templates: Sequence[NodeClaimTemplate],
    packed: Sequence[Packed],
    most_types: int,
    *,
    frugal: bool,
    late: LateNodes | None = None,
) -> tuple[list[Packed], int]:
    """These nodes and others for pods that had no place, and how many trials it took; pods that have one now are in the
    assignment.

    Where no NodePool has limits, these have left over none: nothing is tried, except for pods that come `late`, on such
    nodes.
    """
    if not assignment.left or not (late is not None or any(template.remaining is not None for template in templates)):
        return list(packed), 0
    table = _Table(templates, packed, most_types, frugal, late)
    on_new_nodes(assignment, table.place, late=late is not None)
    return table.nodes(), table.trials


@dataclass(slots=True, eq=False)
class _Node:
    """A planned node and what is on it; `packed` changes when more pods come, `before` is what it was at first."""

    before: Packed | None
    packed: Packed
    full: Bin
    stocks: dict[PodGroup, PoolDemand]


@dataclass(frozen=True, slots=True, eq=False)
class _Seat:
    """Room for so many pods of a stock on a planned node, or on one more, and what that costs on top."""

    template: NodeClaimTemplate
    node: _Node | None
    stock: PoolDemand
    requirements: Requirements
    number: int
    cost: int


class _Table:
    """The planned nodes of all pools, each as one of the types that use least of limits, until all have been asked."""

    def __init__(
        self,
        templates: Sequence[NodeClaimTemplate],
        packed: Sequence[Packed],
        most_types: int,
        frugal: bool,
        late: LateNodes | None,
    ) -> None:
        self._templates, self._packed, self._late = templates, packed, late
        self._most_types, self._frugal = most_types, frugal
        self._open: dict[NodeClaimTemplate, list[_Node]] = {}
        self._remaining: dict[NodeClaimTemplate, dict[str, int] | None] = {}
        self._changed: set[NodeClaimTemplate] = set()
        self.trials = 0

    def place(self, item: PodGroup, number: int) -> int:
        """Find room for so many more pods of an item, heavier NodePools first; how many have it."""
        found = 0
        for _, equals in groupby(self._templates, key=lambda template: template.pool.spec.weight):
            alike = list(equals)
            while found < number and self.trials < _MOST_TRIALS:
                seats = [seat for template in alike for seat in self._seats(template, item, number - found)]
                seats.sort(key=lambda seat: (-seat.number, seat.cost))
                taken = next((seat.number for seat in seats if self._take(seat)), 0)
                if not taken:
                    break
                found += taken
        return found

    def nodes(self) -> list[Packed]:
        """All nodes, with all types that limits then still allow."""
        now: dict[Packed, Packed] = {}
        more: list[Packed] = []
        for template, nodes in self._open.items():
            if template not in self._changed:
                template.remaining = self._remaining[template]
                continue
            for node in nodes:
                self._close(node, node.full, frugal=self._frugal)
                if node.before is None:
                    more.append(node.packed)
                else:
                    now[node.before] = node.packed
        return [now.get(packed, packed) for packed in self._packed] + more

    # --- seats --------------------------------------------------------------------------------------------------
    def _seats(self, template: NodeClaimTemplate, item: PodGroup, number: int) -> Iterator[_Seat]:
        for stock in stocks_of(template, [item], {item: number}, EMPTY):
            for node in self._nodes_of(template):
                self.trials += 1
                joint = template.join(node.full.requirements, stock.served)
                most = min(node.full.most(item), number)
                if joint is not None and most:
                    template.credit(node.packed.types)
                    room = _room(node.full, joint, item, most)
                    template.deduct(node.packed.types)
                    if room is not None:
                        yield _Seat(template, node, stock, joint, room[0], room[1] - _price(node.packed))
            empty = Bin(template, stock.served, np.zeros_like(item.need))
            most = min(empty.most(item, with_company=_founds(item, number)), number)
            room = _room(empty, stock.served, item, most) if most else None
            if room is not None:
                yield _Seat(template, None, stock, stock.served, room[0], room[1] + PER_NODE)

    def _nodes_of(self, template: NodeClaimTemplate) -> list[_Node]:
        if template not in self._open:
            self._remaining[template] = None if template.remaining is None else dict(template.remaining)
            own = [one for one in self._packed if one.template is template and not _claims(one)][-_MOST_NODES:]
            self._open[template] = [self._opened(one) for one in own]
        return self._open[template]

    def _opened(self, packed: Packed) -> _Node:
        content = [(stock.item, number) for stock, number in packed.content]
        full = Bin.filled(packed.template, packed.requirements, content)
        node = _Node(packed, packed, full, {stock.item: stock for stock, _ in packed.content})
        self._close(node, full, frugal=True)
        return node

    def _take(self, seat: _Seat) -> bool:
        """Seat the pods; whether there are types enough then, and spreads admit a new node."""
        item = seat.stock.item
        if seat.node is None:
            full = Bin(seat.template, seat.requirements, np.zeros_like(item.need))
            full.add(item, seat.number, seat.requirements)
            closed = self._closed(seat.template, Draft.of(full, {item: seat.stock}), frugal=True)
            if closed is None:
                return False
            if self._late is not None and not self._late.admits(closed, item):
                seat.template.credit(closed.types)
                return False
            self._open[seat.template].append(_Node(None, closed, full, {item: seat.stock}))
        else:
            full = seat.node.full.copy()
            full.add(item, seat.number, seat.requirements)
            seat.node.stocks.setdefault(item, seat.stock)
            if not self._close(seat.node, full, frugal=True):
                return False
        self._changed.add(seat.template)
        return True

    def _close(self, node: _Node, full: Bin, *, frugal: bool) -> bool:
        """Have the node be what is in the bin, if there are types for that; else it stays as it is."""
        template = full.template
        template.credit(node.packed.types)
        closed = self._closed(template, Draft.of(full, node.stocks), frugal=frugal)
        if closed is None:
            template.deduct(node.packed.types)
            return False
        node.packed, node.full = closed, full
        return True

    def _closed(self, template: NodeClaimTemplate, draft: Draft, *, frugal: bool) -> Packed | None:
        closed, _ = close(template, [draft], self._most_types, frugal=frugal)
        return closed[0] if closed else None


def _room(full: Bin, requirements: Requirements, item: PodGroup, most: int) -> tuple[int, int] | None:
    """How many more pods of an item the node can have as one of the types that limits allow, or as enough of them for
    minValues, and the price of the cheapest type that holds these; None for none."""
    template, shape = full.template, full.template.shape(requirements)
    good = (shape.room >= full.used + item.need).all(axis=1)
    for mask in (template.within_limits(), template.free_of_ports((*full.ports, *item.cls.ports))):
        if mask is not None:
            good &= mask[shape.types]
    if not good.any():
        return None
    columns, types = np.flatnonzero(item.need), shape.types[good]
    holds = ((shape.room[good] - full.used)[:, columns] // item.need[columns]).min(axis=1, initial=most)
    strict = template.strict_min_values and template.min_values
    for number in sorted(set(holds.tolist()), reverse=True):
        if not strict or not template.shortfall(types[holds >= number]):
            return number, int(shape.price[good][holds >= number].min())
    return None


def _founds(item: PodGroup, number: int) -> bool:
    """Whether pods of the item, of which so many are planned just now, may be the first of those whom they must be near
    on a host."""
    near = (constraint for constraint in item.relaxation.hosts if constraint.group.kind == AFFINITY)
    return all(bounds(constraint, founded=constraint.group.anywhere() != number).admits(0) for constraint in near)


def _price(packed: Packed) -> int:
    return int(packed.template.shape(packed.requirements).price_at[packed.types].min())


def _claims(packed: Packed) -> bool:
    return any(stock.item.cls.claiming for stock, _ in packed.content)
