"""What sizes of nodes to fill: of all pairs of types, the one that covers a demand in whole nodes for the least money.

Only types that no cheaper one outdoes are looked at. Each is taken a little smaller where that lets five types of about
the same price have it: a claim that can be launched as any of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import mul

import numpy as np
from numpy.typing import NDArray

from kerf.scheduling.offerings.instance_types import Bools, Floats, Ints
from kerf.scheduling.offerings.listing import FLEXIBLE, NEAR
from kerf.scheduling.offerings.nodepools import InstanceTypeOptions, NodeClaimTemplate
from kerf.scheduling.packing.draft import PoolDemand
from kerf.scheduling.packing.linear import duals, most_of
from kerf_api.requirements import Requirements

#: Up to this share of a size's room is given up for five types that have it.
_SACRIFICE = 0.05
#: What a node costs besides its instance, in millionths of a dollar per hour: a root volume of 20 GiB.
PER_NODE = 2200
#: Steps to choose sizes.
_A_MIX = 30
#: So many types of those that give most for their price are looked at, fewer with noise; and so many combinations of
#: two types with a number of the first.
_BEST, _BEST_AT_RANDOM, _WORK = 14, 5, 32_000
#: With noise, demand is taken up to so much larger, and prices up to so much higher.
_MARGIN, _WRONG = 0.05, (0.02, 0.1, 0.3)
#: Nodes that have to be so many anyway are to hold a little more than the demand, for some of their room is lost; and
#: so many types to either side of their average are looked at.
_LOSS, _NEIGHBOURS = 1.06, 1
#: So few pods are placed where whole nodes cost least; what a byte is worth to them is not asked.
_FEW = 4
#: A demand that fits on so few nodes is covered by any number of sizes, not by two.
_WHOLE = 24
#: No more combinations than these are looked at, and none that is not cheaper by a thousandth.
_STEPS, _STEPS_AT_RANDOM, _STRICTLY = 4000, 400, 0.999
#: All that limits still allow is worth so much more than any node.
_SCARCE = 1e9
#: Such a cover is to hold a little more than the demand, for pods do not divide.
_SLACK = 1.01
Noise = np.random.Generator
Rows = NDArray[np.intp]
SizeMix = list[tuple["NodeSize", int]]


@dataclass(frozen=True, slots=True, eq=False)
class NodeSize:
    """A node is filled up to this `room`; the type at this `place` of the table has it, for this price."""

    place: int
    room: Ints
    price: int


@dataclass(frozen=True, slots=True, eq=False)
class _Frontier:
    """The types under some requirements that no cheaper one outdoes, cheapest first, by row of the shape.

    `room` are the columns that are needed of the `whole`.
    """

    rows: Rows
    whole: Ints
    room: Floats
    price: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """By requirements, and by row of their shape."""

    frontiers: dict[Requirements, _Frontier] = field(default_factory=dict)
    sizes: dict[tuple[Requirements, int], NodeSize] = field(default_factory=dict)


class Sizes:
    """The sizes of one pool, as long as its limits do not change. `columns` are those that some pod needs.

    `worth` is what each type's room is worth to a lane, by the demand that the lane had when it was first looked at.
    What depends on the catalogue alone is worked out once for all solves. To `frugal` ones a type costs above all what
    it uses of the limits.
    """

    def __init__(self, template: NodeClaimTemplate, columns: Sequence[int], *, frugal: bool = False) -> None:
        self._template, self._columns = template, np.array(columns, dtype=np.intp)
        self._pods = next((i for i, c in enumerate(columns) if template.table.columns.names[c] == "pods"), None)
        self._limits = template.within_limits()
        self._scarce = template.share_of_limits() * _SCARCE if frugal else None
        self._worth: dict[Requirements, Floats] = {}
        key = tuple(None if part is None else part.tobytes() for part in (self._columns, self._limits, self._scarce))
        self._known: _Known = template.remembered(key, _Known)

    def mix(
        self,
        requirements: Requirements,
        demand: Ints,
        pods: int,
        least: int = 0,
        noise: Noise | None = None,
        unit: Ints | None = None,
        smallest: Ints | None = None,
    ) -> SizeMix:
        """Sizes and how many nodes of each to fill, so that the demand of so many pods is served for the least money.

        There are `least` nodes at least. `noise` makes prices a little wrong, to find other mixes that are as good.
        `unit` is what each pod needs, if all need the same: then pods are counted. None needs less than `smallest`.
        """
        self._template.work.charge(_A_MIX)
        frontier = self._frontier(requirements)
        if not len(frontier.rows):
            return []
        wanted = self._in_units(demand[None, :], unit)[0] if unit is None else np.array([float(pods)])
        every = self._in_units(frontier.whole, unit, smallest)
        price, best, steps = frontier.price, _BEST, _STEPS
        if noise is not None:
            wanted = wanted * (1 + noise.uniform(0, _MARGIN))
            price = price * (1 + noise.random(len(price)) * noise.choice(_WRONG))
            best, steps = _BEST_AT_RANDOM, _STEPS_AT_RANDOM
        rows = np.sort(np.argsort(np.ceil(_times(wanted, every)) * price, kind="stable")[:best])
        if pods > _FEW:
            most = np.maximum(every[:, 0], 1e-9)
            value = most if unit is not None else self._values(requirements, every, frontier.price, wanted)
            rows = _either(rows, np.argsort(price / value, kind="stable")[:best])
        if least > 1:
            rows, wanted = _about(every, wanted / least), wanted * _LOSS
        sizes = [self._at(requirements, int(frontier.rows[row])) for row in rows]
        room = self._in_units(np.array([size.room for size in sizes]), unit, smallest)
        slack = 1.0 if unit is not None else _SLACK
        asked = _Cover.of(room, price[rows], wanted, (max(pods, least), least, slack, steps))
        return [(sizes[i], number) for i, number in _numbers(asked)]

    def _in_units(self, rooms: Ints, unit: Ints | None, smallest: Ints | None = None) -> Floats:
        """Rooms [rooms, columns of the table] by the columns that count, or as numbers of equal pods [rooms, 1].

        There is room for no more pods than there would be if all were as small as the `smallest`.
        """
        if unit is not None:
            return _pods_in(rooms, unit)[:, None].astype(np.float64)
        found = rooms[:, self._columns].astype(np.float64)
        if smallest is not None and self._pods is not None:
            found[:, self._pods] = np.minimum(found[:, self._pods], _pods_in(rooms, smallest))
        return found

    def _values(self, requirements: Requirements, room: Floats, price: Floats, wanted: Floats) -> Floats:
        """What each type's room is worth to the lane, by its demand when it is first looked at."""
        known = self._worth.get(requirements)
        if known is None:
            shares = room / np.maximum(wanted, 1)
            known = self._worth[requirements] = np.maximum(shares @ duals(shares, price), 1e-9)
        return known

    def _at(self, requirements: Requirements, row: int) -> NodeSize:
        known = self._known.sizes.get((requirements, row))
        if known is None:
            known = self._known.sizes[requirements, row] = self._size(self._template.shape(requirements), row)
        return known

    def price(self, requirements: Requirements, used: Ints) -> float:
        """What a node with so much on it costs, its volume included; infinite when no type holds it."""
        frontier = self._frontier(requirements)
        good = (frontier.room >= used[self._columns]).all(axis=1)
        return float(frontier.price[int(good.argmax())]) if good.any() else float("inf")

    def holding(self, requirements: Requirements, used: Ints) -> tuple[Floats, Rows]:
        """For each of some nodes, [nodes, columns of the table], the least price that holds it, and its row."""
        frontier = self._frontier(requirements)
        if not len(frontier.rows):
            return np.full(len(used), np.inf), np.zeros(len(used), dtype=np.intp)
        good: Bools = np.all(frontier.room >= used[:, None, self._columns], axis=2)
        first = good.argmax(axis=1)
        prices: Floats = np.where(good.any(axis=1), frontier.price[first], np.inf)
        return prices, first

    def at(self, requirements: Requirements, row: int) -> NodeSize:
        """The size of a row that `holding` found."""
        return self._at(requirements, int(self._frontier(requirements).rows[row]))

    def alone(self, requirements: Requirements, need: Ints, *, apart: bool = False) -> NodeSize | None:
        """The size that holds a pod for the least price of its share (at all, if pods keep apart); None: none does."""
        shape = self._template.shape(requirements)
        rows = self._open(shape)
        good = rows[(shape.room[rows] >= need).all(axis=1)]
        if not len(good):
            return None
        share = 1.0 if apart else (need / np.maximum(shape.room[good], 1)).max(axis=1)
        return self._size(shape, int(good[np.argmin(share * shape.price[good])]), need)

    def _open(self, shape: InstanceTypeOptions) -> Rows:
        """Rows of the shape's types that limits admit."""
        rows = np.arange(len(shape.types), dtype=np.intp)
        return rows if self._limits is None else rows[self._limits[shape.types]]

    def _frontier(self, requirements: Requirements) -> _Frontier:
        known = self._known.frontiers.get(requirements)
        if known is None:
            shape = self._template.shape(requirements)
            rows = self._open(shape)
            costs = (shape.price + PER_NODE).astype(np.float64)
            if self._scarce is not None:
                costs += self._scarce[shape.types]
                rows = rows[np.argsort(costs[rows], kind="stable")]
            rows = rows[_undominated(shape.room[np.ix_(rows, self._columns)])]
            whole, price = shape.room[rows], costs[rows]
            room = whole[:, self._columns].astype(np.float64)
            known = self._known.frontiers[requirements] = _Frontier(rows, whole, room, price)
        return known

    def _size(self, shape: InstanceTypeOptions, row: int, need: Ints | None = None) -> NodeSize:
        room, place, price = shape.room[row], int(shape.types[row]), int(shape.price[row])
        near = (shape.price >= price) & (shape.price <= price * NEAR)
        if self._limits is not None:
            near &= self._limits[shape.types]
        rows = np.flatnonzero(near)
        cover = (shape.room[np.ix_(rows, self._columns)] / np.maximum(room[self._columns], 1)).min(axis=1).clip(0, 1)
        best = rows[np.argsort(-cover, kind="stable")[:FLEXIBLE]]
        common: Ints = np.minimum(shape.room[best].min(axis=0), room)
        small = (common[self._columns] < room[self._columns] * (1 - _SACRIFICE)).any()
        if small or (need is not None and (common < need).any()):
            common = room
        if self._template.min_values and self._template.strict_min_values:
            common = np.minimum(common, self._in_enough(shape, room, need))
        return NodeSize(place, common, price)

    def _in_enough(self, shape: InstanceTypeOptions, room: Ints, need: Ints | None) -> Ints:
        """What so many types have in common of a room that minValues are met, those that have most of it first."""
        rows = self._open(shape)
        if need is not None:
            rows = rows[(shape.room[rows] >= need).all(axis=1)]
        cover = (shape.room[np.ix_(rows, self._columns)] / np.maximum(room[self._columns], 1)).min(axis=1).clip(0, 1)
        rows = rows[np.argsort(-cover, kind="stable")]
        short = self._template.shortfall
        enough = bisect_left(range(1, len(rows)), True, key=lambda number: not short(shape.types[rows[:number]])) + 1
        return np.asarray(shape.room[rows[:enough]].min(axis=0)) if len(rows) else room


def _pods_in(rooms: Ints, need: Ints) -> Ints:
    """How many pods of this need each room holds."""
    needed = np.flatnonzero(need)
    return np.asarray((rooms[:, needed] // need[needed]).min(axis=1).clip(min=0))


def _undominated(room: Ints) -> Rows:
    """Rows that have more of something than every row before them."""
    outdone = np.tri(len(room), k=-1, dtype=np.bool_)
    for column in room.T:
        outdone &= column >= column[:, None]
    return np.flatnonzero(~outdone.any(axis=1))


def _either(some: Rows, others: Rows) -> Rows:
    """Both, sorted, each once: a few numbers, for which a set is quicker than an array's functions."""
    return np.array(sorted({*some.tolist(), *others.tolist()}), dtype=np.intp)


def _about(room: Floats, share: Floats) -> Rows:
    """Rows of the cheapest that have a share, and of a few that cost about as much."""
    holding = np.flatnonzero((room >= share).all(axis=1))
    first = int(holding[0]) if len(holding) else len(room) - 1
    return np.arange(max(first - _NEIGHBOURS, 0), min(first + _NEIGHBOURS + 1, len(room)))


@dataclass(frozen=True, slots=True)
class _Cover:
    """A demand that is `wanted`, for sizes with this `room` [sizes, columns] and price; compared by content.

    `bounds` are the largest number of one size, the least number of all, the factor for pods that do not divide, and
    the steps of the search.
    """

    key: tuple[object, ...]
    bounds: tuple[int, int, float, int]
    room: Floats = field(compare=False)
    price: Floats = field(compare=False)
    wanted: Floats = field(compare=False)

    @classmethod
    def of(cls, room: Floats, price: Floats, wanted: Floats, bounds: tuple[int, int, float, int]) -> _Cover:
        key = (room.shape, room.tobytes(), price.tobytes(), wanted.tobytes())
        return cls(key, bounds, room, price, wanted)


# One pass asks about the same demand for several strategies, and the next passes about pods that did not change.
@lru_cache(maxsize=2048)
def _numbers(asked: _Cover) -> tuple[tuple[int, int], ...]:
    """The number of each size by its row, of those with any: a pair, or a cheaper cover of few nodes."""
    most, least, slack, steps = asked.bounds
    numbers = _best_pair(asked.room, asked.price, asked.wanted, most, least)
    if least <= 1 and 1 < sum(numbers.values()) <= _WHOLE:
        numbers = _cheaper_cover(asked.room, asked.price, asked.wanted * slack, numbers, steps)
    return tuple((i, number) for i, number in sorted(numbers.items()) if number)


def _best_pair(room: Floats, price: Floats, wanted: Floats, most: int, least: int) -> dict[int, int]:
    """The numbers of two sizes (the second may be left out) that cover what is wanted at the least price, by row.

    Both together are `least` at least, and neither more than `most`; empty when no pair covers it.
    """
    alone = np.minimum(np.maximum(np.ceil(_times(wanted, room)), least), most)
    steps = max(min(_WORK // len(room) ** 2, int(alone.max())), 1)
    stride = np.maximum(np.ceil(alone / steps), 1)
    first = np.minimum(np.arange(steps + 1) * stride[:, None], alone[:, None])
    rest = np.maximum(wanted - first[:, :, None] * room[:, None, :], 0)
    second = np.maximum(np.ceil(_times(rest[:, :, None, :], room) - 1e-9), least - first[:, :, None])
    cost = first[:, :, None] * price[:, None, None] + np.where(second <= most, second, np.inf) * price
    i, step, j = (int(k) for k in np.unravel_index(int(cost.argmin()), cost.shape))
    if not np.isfinite(cost[i, step, j]):
        return {}
    numbers = {i: int(first[i, step])}
    numbers[j] = numbers.get(j, 0) + int(second[i, step, j])
    return numbers


def _cheaper_cover(room: Floats, price: Floats, wanted: Floats, known: dict[int, int], most: int) -> dict[int, int]:
    """Numbers of any of the sizes that cover what is wanted for less than the `known` ones, if some are found.

    Sizes are tried in the order of what they give for their price. What the demand is worth at the prices of a linear
    program is the least that it can cost, so most combinations need no look.
    """
    shares = room / np.maximum(wanted, 1)
    worth = duals(shares, price)
    order = np.argsort(price / np.maximum(shares @ worth, 1e-9), kind="stable").tolist()
    rows: list[list[float]] = shares[order].tolist()
    costs: list[float] = price[order].tolist()
    worths: list[float] = worth.tolist()
    limit = sum(price[i] * number for i, number in known.items()) * _STRICTLY
    found, steps = dict(known), 0
    open_: list[tuple[int, float, list[float], tuple[int, ...]]] = [(0, 0.0, [1.0] * len(wanted), ())]
    while open_ and steps < most:
        first, cost, rest, taken = open_.pop()
        for i in range(len(rows) - 1, first - 1, -1):
            steps += 1
            then = cost + costs[i]
            left = [have - more if have > more else 0.0 for have, more in zip(rest, rows[i], strict=True)]
            if then + sum(map(mul, left, worths)) >= limit:
                continue
            if max(left) <= 1e-12:
                limit, found = then * _STRICTLY, _counted(order[k] for k in (*taken, i))
            else:
                open_.append((i, then, left, (*taken, i)))
    return found


def _counted(rows: Iterable[int]) -> dict[int, int]:
    return dict(sorted(Counter(rows).items()))


def _times(wanted: Floats, room: Floats) -> Floats:
    """How many of each room cover what is wanted; infinite where something wanted is not in it at all."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(wanted > 0, wanted / room, 0.0)
    return np.asarray(shares.max(axis=-1))


def shares(
    amounts: Mapping[PoolDemand, int], mix: SizeMix, columns: Sequence[int]
) -> dict[PoolDemand, list[tuple[NodeSize, int]]]:
    """How many pods of each stock are meant for nodes of each size, so that these are filled as well as can be."""
    needs = np.array([stock.item.need[columns] for stock in amounts], dtype=np.float64)
    numbers = np.array(list(amounts.values()), dtype=np.float64)
    whole = np.maximum(numbers @ needs, 1)
    rooms = np.array([size.room[columns] * number for size, number in mix], dtype=np.float64) / whole
    taken = most_of(needs / whole, numbers, rooms)
    return {
        stock: [(size, int(taken[s, i] + 1e-6)) for s, (size, _) in enumerate(mix) if taken[s, i] >= 1]
        for i, stock in enumerate(amounts)
    }
