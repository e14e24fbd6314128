"""How much each type could serve: all types are filled side by side, by vectors, with the first joiners in order.

An estimate only: it proposes the types that are then filled exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from api import labels
from reconciler.scheduling.bins import MANY, Bin, Stock
from reconciler.scheduling.groups import ANTI, SPREAD, Group
from reconciler.scheduling.types import Ints

#: How many joiners are looked at.
_JOINERS = 96


def served_worth(start: Bin, stocks: Sequence[Stock], rooms: Ints) -> NDArray[np.float64]:
    """The worth that a bin of each type could hold. `rooms` is [types, columns]; the answer [types]."""
    free = rooms - start.used
    worth = np.zeros(len(rooms), dtype=np.float64)
    own = {stock.item: stock.worth for stock in stocks}
    worth += sum(own.get(item, 0) * number for item, number in start.content)
    counts = {group: np.full(len(rooms), number) for group, number in start.counts.items()}
    looked_at = 0
    for stock in stocks:
        if looked_at == _JOINERS:
            break
        if not stock.left or not start.most(stock.item):
            continue
        if start.template.join(start.requirements, stock.served) != start.requirements:
            continue
        looked_at += 1
        most = _most(stock, counts, len(rooms))
        for column, need in stock.steps:
            most = np.minimum(most, free[:, column] // need)
        most = np.clip(most, 0, stock.left)
        for column, need in stock.steps:
            free[:, column] -= need * most
        for group in stock.item.cls.counted:
            if group.key == labels.HOSTNAME:
                counts[group] = counts.get(group, 0) + most
        worth += stock.worth * most
    return worth


def _most(stock: Stock, counts: dict[Group, Ints], size: int) -> Ints:
    """The hostname constraints that a class owns, as bounds per type."""
    most = np.full(size, 1 if stock.item.cls.ports else MANY, dtype=np.int64)
    for bond in stock.item.rung.bonds:
        if bond.key != labels.HOSTNAME:
            continue
        here = counts.get(bond.group, np.zeros(size, dtype=np.int64))
        if bond.group.kind == SPREAD and bond.self_match:
            most = np.minimum(most, bond.max_skew - here)
        elif bond.group.kind == ANTI:
            most = np.where(here > 0, 0, np.minimum(most, 1 if bond.self_match else MANY))
    return most
