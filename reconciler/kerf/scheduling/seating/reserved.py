"""Nodes on capacity reservations, before any other is thought of: what is reserved costs nothing more.

Machines of a reservation are few, so they are not opened to cover a demand: they are taken one kind after the other,
first the kind on which most of the pods that still wait may be placed, and of several such the smallest that holds them
all. Pods that have no other place sit down first. What has no seat in the end is packed as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kerf.model.aws.instance_type import InstanceType
from kerf.model.kubernetes.pods import virtual
from kerf.pods.topology_constraints import AFFINITY, TopologyGroup
from kerf.scheduling.answers.solution import PodRefusal
from kerf.scheduling.offerings.instance_types import Columns, Ints
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.offerings.reservations import BOUGHT, ON_RESERVATION, Ledger
from kerf.scheduling.packing.draft import Bin, PoolDemand, needs_company, stocks_of
from kerf.scheduling.packing.drafts import NodeDrafts
from kerf.scheduling.packing.finalize import Packed, close
from kerf.scheduling.packing.sizes import NodeSize
from kerf.scheduling.placing.classes import PodClass
from kerf.scheduling.placing.ways import PodGroup
from kerf.scheduling.seating.colocated import seat_together
from kerf_api import labels
from kerf_api.requirements import IN, NOT_IN, Requirements, requirement


@dataclass(frozen=True, slots=True, eq=False)
class _Slot:
    """The machines of one type of one reservation."""

    id: str
    requirements: Requirements
    size: NodeSize
    on_demand: int


def on_reservations(
    template: NodeClaimTemplate,
    items: Sequence[PodGroup],
    left: dict[PodGroup, int],
    seated: set[TopologyGroup],
    most_types: int,
    ledger: Ledger,
) -> list[Packed]:
    """Nodes of the pool on what the ledger has left; `left` (pods per item) goes down accordingly.

    The ledger records each: the host `<pool>/<number>` has the machine.
    """
    slots = [slot for slot in _slots(template) if ledger.left(slot.id)]
    stocks = stocks_of(template, items, left, ON_RESERVATION) if slots else []
    if not stocks:
        return []
    seating = _Seating(template, slots, stocks, ledger)
    seating.seat_company(seated)
    seating.seat(_wanted([item for item in items if left[item]]))
    closed, _ = close(template, seating.drafts.listed(), most_types)
    for number, packed in enumerate(closed):
        (id_,) = packed.requirements[labels.RESERVATION_ID].values
        ledger.reserve(f"{template.name}/{number}", id_)
        for stock, pods in packed.content:
            left[stock.item] -= pods
            seated.update(stock.item.cls.counted)
    return closed


def buyable(template: NodeClaimTemplate, served: Requirements) -> Requirements | None:
    """What a pool that serves this has besides reservations; None when it has nothing else."""
    return template.join(served, BOUGHT)


def _wanted(items: Sequence[PodGroup]) -> set[TopologyGroup]:
    """Whose pods others must be beside, on the same host."""
    return {
        constraint.group for item in items for constraint in item.relaxation.hosts if constraint.group.kind == AFFINITY
    }


def _slots(template: NodeClaimTemplate) -> Iterator[_Slot]:
    """The kinds of machines that the pool may have on reservations, by reservation."""
    table, within = template.table, template.within_limits()
    for id_ in sorted(table.reservations):
        row = requirement(labels.RESERVATION_ID, IN, (id_,))
        wanted = template.join(template.requirements, ON_RESERVATION & [row])
        shape = template.shape(wanted) if wanted is not None else None
        if wanted is None or shape is None:
            continue
        for place, room, price in zip(shape.types.tolist(), shape.room, shape.price.tolist(), strict=True):
            if within is None or within[place]:
                yield _Slot(id_, wanted, NodeSize(place, room, price), _on_demand(table.types[place], id_))


def _on_demand(type_: InstanceType, reservation: str) -> int:
    """The price on demand of a type's machines of a reservation, which orders what is reserved."""
    found = (o.on_demand for o in type_.offerings if o.reservation is not None and o.reservation.id == reservation)
    return min(found, default=0)


class _Seating:
    """Pods on the machines of some slots. A node that is opened and stays empty is dropped.

    `_need` is [stocks, columns], `_room` [slots, columns], `_able` [slots, stocks]: who may go where, others aside.
    """

    def __init__(
        self, template: NodeClaimTemplate, slots: Sequence[_Slot], stocks: Sequence[PoolDemand], ledger: Ledger
    ) -> None:
        self._template, self._slots, self._ledger = template, slots, ledger
        columns = sorted({column for stock in stocks for column, _ in stock.steps})
        whole = sum((stock.item.need * stock.left for stock in stocks), template.table.columns.vector({}))
        weights = {column: 1.0 / max(int(whole[column]), 1) for column in columns}
        self._stocks = sorted(stocks, key=lambda stock: _turn(template, stock, weights))
        self._left = np.array([stock.left for stock in self._stocks], dtype=np.int64)
        self._need = np.array([stock.item.need[columns] for stock in self._stocks], dtype=np.int64)
        self._room = np.array([slot.size.room[columns] for slot in slots], dtype=np.int64)
        joins = [[template.join(s.requirements, stock.served) is not None for stock in self._stocks] for s in slots]
        self._able = np.array(joins, dtype=np.bool_) & (self._room[:, None] >= self._need).all(axis=2)
        self._prices = [slot.on_demand for slot in slots]
        self._free = [ledger.left(slot.id) for slot in slots]
        self.drafts = NodeDrafts(template, weights)

    def _open(self, slot: _Slot, number: int) -> None:
        for i, other in enumerate(self._slots):
            self._free[i] -= number if other.id == slot.id else 0

    # --- one after the other ------------------------------------------------------------------------------------
    def seat(self, wanted: set[TopologyGroup]) -> None:
        """Let pods sit down for as long as there are machines that some can be placed on.

        Whom others must be beside (`wanted`) stays with them: both wait for nodes that hold them together.
        """
        bound = [needs_company(s.hosts) or not wanted.isdisjoint(s.item.cls.counted) for s in self._stocks]
        self._left[np.array(bound, dtype=np.bool_)] = 0
        self._sit()
        while (chosen := self._next()) is not None:
            place, number = chosen
            slot = self._slots[place]
            self._open(slot, number)
            self.drafts.open(number, slot.size, slot.requirements)
            if not self._sit():
                self._able[place] = False

    def _sit(self) -> int:
        """Seats on the machines that are open; how many pods found one."""
        before = int(self._left.sum())
        for place in np.flatnonzero(self._left).tolist():
            self._left[place] -= self.drafts.seat(self._stocks[place], int(self._left[place]))
        return before - int(self._left.sum())

    def _next(self) -> tuple[int, int] | None:
        """The slot to open next and how many machines of it; None when there is none that anybody could be placed
        on."""
        best: tuple[tuple[object, ...], int, int] | None = None
        for place, slot in enumerate(self._slots):
            able = self._able[place] * self._left
            pods = int(able.sum())
            if pods and self._free[place] > 0:
                share = float(((able @ self._need) / np.maximum(self._room[place], 1)).max())
                rank = (-pods, share > 1, share if share > 1 else -share, slot.on_demand, slot.id)
                if best is None or rank < best[0]:
                    best = rank, place, min(self._free[place], max(int(share), 1))
        return None if best is None else best[1:]

    # --- together -----------------------------------------------------------------------------------------------
    def seat_company(self, seated: set[TopologyGroup]) -> None:
        """Pods that must share a host: whole companies, each on the smallest machine that holds it; then, of those that
        can go nowhere else, as many as there are machines for."""
        if not any(needs_company(stock.hosts) for stock in self._stocks):
            return
        known, order = set(seated), np.lexsort((self._prices, self._room.sum(axis=1))).tolist()
        for place in order:
            self._together(self._slots[place], known, self._whole)
        for place in reversed(order):
            self._together(self._slots[place], known, self._stuck)

    def _whole(self, place: int, number: int) -> bool:
        return number == int(self._left[place])

    def _stuck(self, place: int, _: int) -> bool:
        return _nowhere_else(self._template, self._stocks[place])

    def _together(self, slot: _Slot, seated: set[TopologyGroup], accept: Callable[[int, int], bool]) -> None:
        """Companies on machines of a slot, of which all parts (a stock, by place, and how many pods) are acceptable."""
        here: dict[PodGroup, tuple[int, PoolDemand]] = {}
        for place, stock in enumerate(self._stocks):
            joint = self._template.join(slot.requirements, stock.served)
            if joint is not None and self._left[place]:
                here[stock.item] = place, replace(stock, served=joint, left=int(self._left[place]))
        for full in seat_together(self._template, [stock for _, stock in here.values()], set(seated)):
            content: dict[int, int] = {}
            for item, number in full.content:
                content[here[item][0]] = content.get(here[item][0], 0) + number
            fits = self._free[self._slots.index(slot)] > 0 and (full.used <= slot.size.room).all()
            if fits and all(accept(place, number) for place, number in content.items()):
                self._adopt(slot, full, content, seated)

    def _adopt(self, slot: _Slot, full: Bin, content: dict[int, int], seated: set[TopologyGroup]) -> None:
        self._open(slot, 1)
        for place, number in content.items():
            self._left[place] -= number
            seated.update(self._stocks[place].item.cls.counted)
        self.drafts.adopt({self._stocks[p]: number for p, number in content.items()}, slot.size, full.requirements)


def _nowhere_else(template: NodeClaimTemplate, stock: PoolDemand) -> bool:
    served = template.serve(stock.item.requirements)
    return served is not None and buyable(template, served) is None


def _turn(template: NodeClaimTemplate, stock: PoolDemand, weights: dict[int, float]) -> tuple[object, ...]:
    """Pods that exist first; of those that have no other place, then who is more important, then large ones."""
    size, pod = max((need * weights[column] for column, need in stock.steps), default=0.0), stock.item.cls.sample
    return (virtual(pod), not _nowhere_else(template, stock), -pod.spec.priority, -size, stock.item.key)


# --- who waits ----------------------------------------------------------------------------------------------------
DEFERRED = PodRefusal(
    "Deferred", "waits for a capacity reservation of which other nodes that are planned have all there is"
)


def waits_for_reservation(
    templates: Sequence[NodeClaimTemplate], columns: Columns, cls: PodClass, taken: frozenset[str]
) -> bool:
    """Whether nothing but reservations that others have `taken` is left for a class: they may give some back."""
    if not taken or columns.unknown(cls.requests) or not cls.relaxations[-1].demand.possible:
        return False
    need = columns.vector(cls.requests)
    return any(_held_by_others(template, cls, volume, need, taken) for volume in cls.volumes for template in templates)


def _held_by_others(
    template: NodeClaimTemplate, cls: PodClass, volume: Requirements, need: Ints, taken: frozenset[str]
) -> bool:
    demand = cls.relaxations[-1].demand
    if not demand.tolerates(template.taints) or demand.requirements.conflict(volume):
        return False
    served = template.serve(demand.requirements & volume)
    reserved = template.join(served, ON_RESERVATION) if served is not None else None
    if served is None or reserved is None or template.unit_cost(reserved, need, cls.ports) is None:
        return False
    bought = buyable(template, served)
    if bought is not None and template.unit_cost(bought, need, cls.ports) is not None:
        return False
    free = requirement(labels.RESERVATION_ID, NOT_IN, taken)
    return template.join(reserved, Requirements([free])) is None
