"""Second half of a solve: pods that need new nodes are packed into them, by price.

One node at a time: for the largest pods left, every type is filled with what may join them; the type that serves most
(pods weighed by the least price of the share they need) per dollar wins, and its filling is repeated while pods last.
Then the filling is trimmed a little where that lets more types hold it. A later pool gets what a heavier one refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from api.requirements import Requirements
from reconciler.scheduling.assign import Item
from reconciler.scheduling.bins import Bin, Stock, needs_company
from reconciler.scheduling.company import seat_together
from reconciler.scheduling.estimate import served_worth
from reconciler.scheduling.groups import Group
from reconciler.scheduling.listing import FLEXIBLE, NEAR, listing
from reconciler.scheduling.template import Template
from reconciler.scheduling.types import Ints

#: How many types get an exact filling after the estimate.
_TRIED = 3
#: This share of a filling's worth per dollar is given up for five types that hold it.
_SACRIFICE = 0.05
#: A joiner may narrow a node's offerings if its price stays within this factor.
_NARROWING = 1.02


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """A closed bin and the types it lists (places in the table), cheapest first."""

    full: Bin
    types: NDArray[np.intp]


def pack(
    template: Template, items: Sequence[Item], left: dict[Item, int], seated: set[Group], most_types: int
) -> list[Packed]:
    """Bins for as many pods as the pool can take; `left` (pods per item) goes down accordingly."""
    packing = _Packing(template, _stocks(template, items, left), most_types)
    for start in seat_together(template, packing.stocks, seated):
        packing.close(start, repeat=False)
    for seed in packing.stocks:
        while seed.left and not needs_company(seed.item) and packing.open(seed):
            pass
    for stock in packing.stocks:
        left[stock.item] = stock.left
    return packing.done


def _stocks(template: Template, items: Sequence[Item], left: dict[Item, int]) -> list[Stock]:
    """Items that the pool can serve: those with the fewest offerings first, then by worth."""
    found: list[tuple[int, Stock]] = []
    for item in items:
        if not left[item] or not item.rung.demand.tolerates(template.taints):
            continue
        served = template.serve(item.requirements)
        worth = template.unit_cost(served, item.need, item.cls.ports) if served is not None else None
        if served is not None and worth is not None:
            steps = tuple((int(c), int(item.need[c])) for c in np.flatnonzero(item.need))
            found.append((template.breadth(served), Stock(item, served, left[item], max(worth, 1), steps)))
    found.sort(key=lambda pair: (pair[0], -pair[1].worth, pair[1].item.key))
    return [stock for _, stock in found]


class _Packing:
    """The bins of one pool in the making."""

    def __init__(self, template: Template, stocks: list[Stock], most_types: int) -> None:
        self.template, self.stocks, self.most_types = template, stocks, most_types
        self.done: list[Packed] = []
        self._worth = {stock.item: stock.worth for stock in stocks}
        self._by_item = {stock.item: stock for stock in stocks}

    def open(self, seed: Stock) -> bool:
        """Start a bin with one pod of the seed; False when no node can be had for it."""
        start = Bin(self.template, self.template.requirements, np.zeros_like(seed.item.need))
        if not start.most(seed.item):
            return False
        start.add(seed.item, 1, seed.served)
        seed.left -= 1
        return self.close(start, repeat=True)

    def close(self, start: Bin, *, repeat: bool) -> bool:
        """Fill up a started bin and list its types; its pods go back to their stocks when that cannot be."""
        full = self._best(start)
        types = listing(full, self.most_types) if full is not None else None
        if full is None or types is None:
            for item, number in start.content:
                self._by_item[item].left += number
            return False
        parts = _parts(full)
        for item, number in start.content:
            self._by_item[item].left += number
        self._commit(full, types, parts)
        while repeat and all(self._by_item[item].left >= number for item, number in parts.items()):
            again = listing(full, self.most_types)
            if again is None:
                break
            self._commit(full.copy(), again, parts)
        return True

    def _commit(self, full: Bin, types: NDArray[np.intp], parts: dict[Item, int]) -> None:
        for item, number in parts.items():
            self._by_item[item].left -= number
        self.template.deduct(types)
        self.done.append(Packed(full, types))

    # --- fillings -----------------------------------------------------------------------------------------------
    def _best(self, start: Bin) -> Bin | None:
        """The filling that serves most per dollar; None when not even the start has a type."""
        shape = self.template.shape(start.requirements)
        holding = np.isin(shape.types, start.types())
        if not holding.any():
            return None
        rooms, prices, types = shape.room[holding], shape.price[holding], shape.types[holding]
        scores = served_worth(start, self.stocks, rooms) / np.maximum(prices, 1)
        tried = sorted(range(len(types)), key=lambda i: (-scores[i], int(prices[i]), int(types[i])))[:_TRIED]
        fillings = [self._fill(start, rooms[i], int(types[i])) for i in tried]
        rated = [(self._density(full), -n, full) for n, full in enumerate(fillings) if len(full.types())]
        if not rated:
            return start
        density, _, best = max(rated, key=lambda r: r[:2])
        return self._flexible(start, best, density, rooms, types)

    def _flexible(self, start: Bin, best: Bin, density: float, rooms: Ints, types: NDArray[np.intp]) -> Bin:
        """The best filling, or a little less of it if then five types of about its price hold it."""
        prices = self.template.shape(best.requirements).price_at
        ceiling = prices[best.types()[0]] * NEAR
        if int((prices[best.types()] <= ceiling).sum()) >= FLEXIBLE:
            return best
        near = np.flatnonzero(prices[types] <= ceiling)
        if len(near) < 2:
            return best
        tightness = (best.used / np.maximum(rooms[near], 1)).max(axis=1)
        chosen = near[np.argsort(tightness, kind="stable")[:FLEXIBLE]]
        less = self._fill(start, rooms[chosen].min(axis=0), int(types[chosen[0]]))
        usable = len(less.types()) and self._density(less) >= density * (1 - _SACRIFICE)
        return less if usable else best

    def _density(self, full: Bin) -> float:
        """Worth per price of the cheapest type that holds the bin."""
        price = self.template.shape(full.requirements).price_at[full.types()[0]]
        worth = sum(self._worth[item] * number for item, number in full.content)
        return float(worth) / float(max(price, 1))

    def _fill(self, start: Bin, room: Ints, type_: int) -> Bin:
        """Add what fits in a type's room: first pods that narrow nothing, then those that hardly raise its price."""
        full = start.copy()
        free = [int(v) for v in room - start.used]
        taken: dict[Item, int] = {}
        for narrowing in (False, True):
            for stock in self.stocks:
                left = stock.left - taken.get(stock.item, 0)
                if left <= 0 or any(free[c] < need for c, need in stock.steps):
                    continue
                joint = self.template.join(full.requirements, stock.served)
                if joint is None or not self._welcome(full, joint, type_, narrowing):
                    continue
                number = min(left, full.most(stock.item), *(free[c] // need for c, need in stock.steps))
                if number <= 0:
                    continue
                full.add(stock.item, number, joint)
                taken[stock.item] = taken.get(stock.item, 0) + number
                for c, need in stock.steps:
                    free[c] -= need * number
        return full

    def _welcome(self, full: Bin, joint: Requirements, type_: int, narrowing: bool) -> bool:
        """Whether a joiner leaves the node's offerings alone, or hardly makes the type dearer."""
        if joint == full.requirements:
            return True
        now, then = (self.template.shape(r).price_at[type_] for r in (full.requirements, joint))
        return narrowing and bool(then <= now * _NARROWING)


def _parts(full: Bin) -> dict[Item, int]:
    parts: dict[Item, int] = {}
    for item, number in full.content:
        parts[item] = parts.get(item, 0) + number
    return parts
