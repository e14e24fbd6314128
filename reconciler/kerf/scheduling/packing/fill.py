"""Nodes for pods, quickly: each stock takes what room there is and opens nodes of sizes that cover its lane's demand.

A lane are the stocks with the same requirements. Pods that keep apart from each other may need more nodes than all the
demand would fill; these nodes are then of a size that shares the demand out among them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np

from kerf.scheduling.offerings.instance_types import Ints
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.packing.draft import Bin, PoolDemand, goes_first, needs_company
from kerf.scheduling.packing.drafts import Draft, NodeDrafts
from kerf.scheduling.packing.sizes import PER_NODE, Noise, SizeMix, Sizes, shares
from kerf_api.requirements import Requirements

#: Among sizes, no more stocks than this are shared out beforehand.
_MOST_SHARED = 300
#: The last of a lane's pods, this share of all, make nodes larger rather than more.
_FEW = 0.02
#: Types cost as much as others if they cost no more than so many times their price.
_AS_DEAR = 1.02
#: To begin again is as much work as to look for so many seats.
_SEATS_A_START = 5
#: How many nodes a lane needs at least for the pods that each group, or host port, keeps apart.
_Apart = Mapping[int, Mapping[Hashable, int]]


class Filling:
    """Fills nodes of one pool, as often as is asked; `seats` counts how often a seat was looked for.

    `frugal` sizes use up little of limits. Pods that need company on a host come with the nodes that they have been
    seated on beforehand or, `late`, join those that were filled for others.
    """

    def __init__(
        self, template: NodeClaimTemplate, stocks: Sequence[PoolDemand], *, frugal: bool = False, late: bool = False
    ) -> None:
        self.template = template
        self.columns = sorted({column for stock in stocks for column, _ in stock.steps})
        self.sizes = Sizes(template, self.columns, frugal=frugal)
        self.seats = 0
        self._late = late
        self._few = sum(stock.left for stock in stocks) * _FEW
        self._joinable: dict[int, set[int]] = {}
        self._served = {stock.lane: stock.served for stock in stocks}
        apart = _apart({stock: stock.left for stock in stocks})
        self._forced = self._forced_lanes(stocks, apart)
        self.stocks = self._ordered(stocks, apart)

    def fill(
        self, amounts: Mapping[PoolDemand, int], together: Iterable[Bin] = (), noise: Noise | None = None
    ) -> list[Draft]:
        """Nodes for so many pods of each stock, in the order of the stocks, as far as any can be had.

        `together` are started with pods that share a host. With `noise` sizes are chosen a little at random.
        """
        self.seats += _SEATS_A_START
        left = dict(amounts)
        drafts = NodeDrafts(self.template, self._weights(left))
        self._adopt(drafts, together, left)
        followers = {stock: number for stock, number in left.items() if number and needs_company(stock.hosts)}
        left = {stock: number for stock, number in left.items() if not goes_first(stock)}
        for stock in left:
            self.seats += 1
            left[stock] -= self._seat(drafts, stock, left[stock])
            if left[stock] and self._odd(drafts, left, stock):
                left[stock] -= self._grow(drafts, stock, left[stock])
            if left[stock]:
                self._open(drafts, stock, left, noise)
                left[stock] -= self._seat(drafts, stock, left[stock])
            if left[stock]:
                left[stock] -= self._add(drafts, stock, left[stock])
        if self._late:
            for stock, number in followers.items():
                found = self._seat(drafts, stock, number)
                self._grow(drafts, stock, number - found)
        return drafts.listed()

    def _weights(self, amounts: Mapping[PoolDemand, int]) -> dict[int, float]:
        whole = self._demand(amounts, None)
        return {column: 1.0 / max(int(whole[column]), 1) for column in self.columns}

    def _demand(self, amounts: Mapping[PoolDemand, int], lanes: set[int] | None) -> Ints:
        stocks = [stock for stock, number in amounts.items() if number and (lanes is None or stock.lane in lanes)]
        if not stocks:
            return self.template.table.columns.vector({})
        numbers = np.array([amounts[stock] for stock in stocks], dtype=np.int64)
        return np.asarray(numbers @ np.array([stock.item.need for stock in stocks]))

    def _adopt(self, drafts: NodeDrafts, together: Iterable[Bin], left: dict[PoolDemand, int]) -> None:
        stocks = {stock.item: stock for stock in self.stocks}
        for full in together:
            size = self.sizes.alone(full.requirements, full.used)
            content: dict[PoolDemand, int] = {}
            for item, number in full.content:
                content[stocks[item]] = content.get(stocks[item], 0) + number
            for stock, number in content.items():
                left[stock] -= number
            if size is not None:
                drafts.adopt(content, size, full.requirements)

    def _seat(self, drafts: NodeDrafts, stock: PoolDemand, number: int) -> int:
        """Seats for so many pods, first on nodes of the sizes that they are meant for."""
        found = 0
        for size, share in drafts.meant.pop(stock, ()):
            found += drafts.seat(stock, min(share, number - found), size)
        return found + drafts.seat(stock, number - found)

    def _odd(self, drafts: NodeDrafts, left: Mapping[PoolDemand, int], stock: PoolDemand) -> bool:
        """Whether the lane has few pods left, or room enough for all in the sum: nodes may rather grow a little."""
        rest = sum(number for other, number in left.items() if other.lane == stock.lane)
        if rest <= self._few:
            return True
        return bool((drafts.room(stock)[self.columns] >= self._demand(left, {stock.lane})[self.columns]).all())

    def _grow(self, drafts: NodeDrafts, stock: PoolDemand, number: int) -> int:
        """Let nodes grow for so many pods while that costs less than nodes for them alone; how many found a place."""
        mix = self.sizes.mix(stock.served, stock.item.need * number, number, unit=stock.item.need)
        budget = float(sum((size.price + PER_NODE) * nodes for size, nodes in mix))
        found = 0
        while found < number and (extra := drafts.grow(stock, self.sizes, budget)) is not None:
            found, budget = found + 1, budget - extra
        return found

    def _add(self, drafts: NodeDrafts, stock: PoolDemand, number: int) -> int:
        """Nodes for these pods alone; how many they hold."""
        size = self.sizes.alone(stock.served, stock.item.need, apart=stock.together < number)
        return drafts.add(stock, number, size, stock.served) if size is not None else 0

    # --- new nodes ----------------------------------------------------------------------------------------------
    def _forced_lanes(self, stocks: Sequence[PoolDemand], apart: _Apart) -> dict[int, int]:
        """Lanes whose pods keep apart so much that more nodes are needed than their demand fills, with the number.

        A lane that may join the nodes of one which needs more is none.
        """
        amounts = {stock: stock.left for stock in stocks}
        least = {lane: max(apart.get(lane, {}).values(), default=0) for lane in self._served}
        samples = {stock.lane: stock for stock in reversed(stocks)}
        found: dict[int, int] = {}
        for lane in sorted(self._served, key=lambda lane: -least[lane]):
            if least[lane] <= 1 or self._hosts(lane) & found.keys():
                continue
            if least[lane] > sum(number for _, number in self._mix(samples[lane], amounts)):
                found[lane] = least[lane]
        return found

    def _ordered(self, stocks: Sequence[PoolDemand], apart: _Apart) -> list[PoolDemand]:
        """Pods that force nodes first; then lane by lane, those with the fewest offerings first.

        What a narrow lane leaves free is there for broader ones, and none of its nodes is filled by pods that could be
        placed anywhere.
        """
        breadths = {lane: self.template.breadth(served) for lane, served in self._served.items()}

        def order(stock: PoolDemand) -> tuple[object, ...]:
            nodes = apart.get(stock.lane, {})
            most = max((nodes.get(group, 0) for group in stock.apart(1)), default=0) if nodes else 0
            forced = self._forced.get(stock.lane, 0) if most else 0
            return (-forced, breadths[stock.lane], stock.lane, -most, -stock.worth, stock.item.key)

        return sorted(stocks, key=order)

    def _mix(self, stock: PoolDemand, left: Mapping[PoolDemand, int], noise: Noise | None = None) -> SizeMix:
        """What serves what is left of the stock's lane."""
        lane = {other: number for other, number in left.items() if number and other.lane == stock.lane}
        needs = list({id(other.item.need): other.item.need for other in lane}.values())
        unit, smallest = (needs[0], None) if len(needs) == 1 else (None, np.min(needs, axis=0) if needs else None)
        demand = self._demand(left, {stock.lane})
        return self.sizes.mix(stock.served, demand, sum(lane.values()), 0, noise, unit, smallest)

    def _open(self, drafts: NodeDrafts, stock: PoolDemand, left: Mapping[PoolDemand, int], noise: Noise | None) -> None:
        """Empty nodes for what is left of a stock's lane."""
        mix = self._mix(stock, left, noise)
        lane = {other: number for other, number in left.items() if number and other.lane == stock.lane}
        least = max(_apart(lane).get(stock.lane, {}).values(), default=0)
        if least > sum(number for _, number in mix):
            mix = self._shared(stock, left, least, noise)
        for size, number in mix:
            drafts.open(number, size, stock.served)
        drafts.fullness = self._fullness(mix, left, stock)
        if len(mix) > 1 and 1 < len(lane) <= _MOST_SHARED:
            drafts.meant.update(shares(lane, mix, self.columns))

    def _fullness(self, mix: SizeMix, left: Mapping[PoolDemand, int], stock: PoolDemand) -> float:
        """The share of these nodes that the lane's demand fills."""
        if not mix:
            return 1.0
        room = sum(size.room[self.columns] * number for size, number in mix)
        demand = self._demand(left, {stock.lane})[self.columns]
        return min(max(float((demand / np.maximum(room, 1)).max()), 0.01), 1.0)

    def _shared(self, stock: PoolDemand, left: Mapping[PoolDemand, int], least: int, noise: Noise | None) -> SizeMix:
        """So many nodes for a lane that must have them: large enough for others to fill them, if there are any."""
        pods = sum(number for other, number in left.items() if other.lane == stock.lane)
        whole = self._with_company(stock, left, least)
        mix = self.sizes.mix(stock.served, whole, pods + least, 0, noise)
        if sum(number for _, number in mix) >= least:
            return _part(mix, least)
        return self.sizes.mix(stock.served, whole, pods, least, noise)

    def _with_company(self, stock: PoolDemand, left: Mapping[PoolDemand, int], least: int) -> Ints:
        """The lane's demand, and its share of the lanes that may join it.

        Such a lane is shared out among all that it may join, by how many nodes each of these must have.
        """
        whole = self._demand(left, {stock.lane})
        for lane in self._served:
            hosts = {host for host in self._hosts(lane) if host in self._forced}
            if lane != stock.lane and lane not in self._forced and stock.lane in hosts:
                share = least / (least + sum(self._forced[host] for host in hosts if host != stock.lane))
                whole = whole + (self._demand(left, {lane}) * share).astype(np.int64)
        return whole

    def _hosts(self, lane: int) -> set[int]:
        """Lanes whose nodes the pods of a lane may join for no more than they cost by themselves."""
        if lane not in self._joinable:
            own = self._served[lane]
            self._joinable[lane] = {host for host, served in self._served.items() if self._joins(own, served)}
        return self._joinable[lane]

    def _joins(self, other: Requirements, served: Requirements) -> bool:
        joint = self.template.join(served, other)
        if joint is None:
            return False
        own = self.template.shape(other)
        factors = np.sort(self.template.shape(joint).price_at[own.types] / np.maximum(own.price, 1))
        # np.median would load masked arrays first, which takes longer than all that is to be decided here
        return bool(factors[[(len(factors) - 1) // 2, len(factors) // 2]].mean() <= _AS_DEAR)


def _part(mix: SizeMix, number: int) -> SizeMix:
    """So many of these nodes, the sizes in proportion."""
    whole = sum(each for _, each in mix)
    ends = np.rint(np.cumsum([0] + [each for _, each in mix]) * number / whole).astype(int).tolist()
    return [(size, end - start) for (size, _), start, end in zip(mix, ends, ends[1:], strict=False) if end > start]


def _apart(left: Mapping[PoolDemand, int]) -> _Apart:
    found: dict[int, dict[Hashable, int]] = {}
    for stock, number in left.items():
        if number and (stock.hosts or stock.item.cls.ports):
            nodes = found.setdefault(stock.lane, {})
            for group, each in stock.apart(number).items():
                nodes[group] = nodes.get(group, 0) + each
    return found
