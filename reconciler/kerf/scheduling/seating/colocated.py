"""Pods that must share a host (affinity by hostname) are seated together before anything else is packed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from kerf.pods.topology_constraints import AFFINITY, TopologyGroup
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.packing.draft import Bin, PoolDemand, needs_company
from kerf.scheduling.placing.ways import PodGroup
from kerf.scheduling.topology.admits import bounds, founded_on_nodes

#: So many stocks are looked at for the company of one pod.
_MOST_ASKED: Final = 200
#: Steps to look for the company of one pod, its constraints aside.
_A_SEARCH: Final = 4


@dataclass(slots=True, eq=False)
class Table:
    """Who is seated so far: `left` are the pods of each stock that are not.

    `seated` are affinity groups that have a pod on some new node, in any pool; `counted` are the stocks whose pods a
    group counts.
    """

    template: NodeClaimTemplate
    left: dict[PoolDemand, int]
    seated: set[TopologyGroup]
    counted: dict[TopologyGroup, list[PoolDemand]] = field(init=False)

    def __post_init__(self) -> None:
        self.counted = {}
        for stock in self.left:
            for group in stock.item.cls.counted:
                self.counted.setdefault(group, []).append(stock)


def seat_together(
    template: NodeClaimTemplate, stocks: Sequence[PoolDemand], seated: set[TopologyGroup], started: Sequence[Bin] = ()
) -> list[Bin]:
    """Start bins for all pods with affinity by hostname, each with the pods that it needs beside it.

    Some bins may have been `started` for pods that claim devices; others join these.
    """
    bins = list(started)
    waiting = [stock for stock in stocks if needs_company(stock.hosts)]
    if not waiting:
        return bins
    table = Table(template, {stock: 0 if stock.item.cls.claiming else stock.left for stock in stocks}, seated)
    while sum([_seated(table, stock, bins) for stock in waiting]):
        pass  # who has a seat now may be the company of one who had none
    return bins


def _seated(table: Table, stock: PoolDemand, bins: list[Bin]) -> int:
    """Seat as many pods of a stock as can be, on the bins or on further ones; how many."""
    before = table.left[stock]
    while table.left[stock]:
        table.template.work.charge(4 + len(bins))
        if table.template.work.over:
            break
        if any(_join(table, full, stock) for full in bins):
            continue
        started = _start(table, stock)
        if started is None:
            break
        bins.append(started)
    return before - table.left[stock]


def _join(table: Table, full: Bin, stock: PoolDemand) -> bool:
    """Put one pod on a started bin if constraints and some type allow it."""
    if not table.left[stock] or not full.most(stock.item):
        return False
    joint = table.template.join(full.requirements, stock.served)
    if joint is None:
        return False
    trial = full.copy()
    trial.add(stock.item, 1, joint)
    if not len(trial.types()):
        return False
    full.add(stock.item, 1, joint)
    table.left[stock] -= 1
    table.seated.update(stock.item.cls.counted)
    return True


def _start(table: Table, stock: PoolDemand) -> Bin | None:
    """A new bin with the pod and all whom it needs, the needed first; None when that cannot be."""
    crew = _crew(table, stock, (), set())
    if crew is None:
        return None
    full = Bin(table.template, table.template.requirements, np.zeros_like(stock.item.need))
    for member in crew:
        joint = table.template.join(full.requirements, member.served)
        if joint is None or not full.most(member.item, with_company=True):
            return None
        full.add(member.item, 1, joint)
    if not len(full.types()):
        return None
    for member in crew:
        table.left[member] -= 1
        table.seated.update(member.item.cls.counted)
    return full


def _crew(
    table: Table, stock: PoolDemand, already: tuple[PoolDemand, ...], asked: set[PodGroup]
) -> tuple[PoolDemand, ...] | None:
    """The stocks to take one pod of each from, those that others need before those who need them.

    `asked` have been looked at and are not looked at again; there is an end to them, for chains can be long.
    """
    crew = already
    asked.add(stock.item)
    table.template.work.charge(_A_SEARCH + len(stock.hosts))
    if len(asked) > _MOST_ASKED:
        return None
    for group in _missing(table, stock, (*crew, stock)):
        options = (s for s in table.counted.get(group, ()) if s.item not in asked and _helps(table, s, group))
        found = next((c for s in options if (c := _crew(table, s, crew, asked)) is not None), None)
        if found is None:
            return None
        crew = found
    return (*crew, stock)


def _helps(table: Table, stock: PoolDemand, group: TopologyGroup) -> bool:
    """Whether pods of the stock are left and may be the first of the group; pods that wait for it themselves do not."""
    table.template.work.charge(1)
    return bool(table.left[stock]) and group not in _missing(table, stock, (stock,))


def _missing(table: Table, stock: PoolDemand, crew: tuple[PoolDemand, ...]) -> Iterator[TopologyGroup]:
    """Groups that the stock has affinity to and the crew no pod of; a pod of its own may be the first of one."""
    for constraint in stock.hosts:
        if constraint.group.kind != AFFINITY:
            continue
        first = bounds(constraint, founded=founded_on_nodes(constraint, table.seated)).admits(0)
        others = [s for s in crew if s.item is not stock.item]
        if not first and not any(constraint.group in s.item.cls.counted for s in others):
            yield constraint.group
