"""What the new nodes of a pass must cost at least: the least price of nodes that need not be whole for the same pods.

Pods that ask for the same and may use the same offerings are a kind; an offering is a type at a zone and
capacity type that one of the NodePools may buy, with the room that daemon sets leave. Further costs of real nodes are
left out: that nodes and pods are whole, topology, volumes, host ports, preferences, limits, minValues, weights. Nodes
on capacity reservations are paid for already: they, and the pods on them, are not in it.

The program is put as its dual: each offering says what it takes for each resource, so that no node of it gets more than
its price, and no kind pays more than what any offering that holds it takes. Whatever satisfies that is a bound; the
program finds the largest.

A program that would be too much work for the pass, or comes when that is used up, is not solved, and the bound is not
known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kerf.model.kubernetes.objects import Toleration
from kerf.pods.requirements import tolerates_all
from kerf.scheduling.offerings.instance_types import NO_PRICE, Bools, Floats, Ints
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.offerings.reservations import BOUGHT
from kerf.scheduling.packing.finalize import Packed
from kerf.scheduling.packing.linear import Entries, most_under
from kerf.scheduling.placing.classes import PodClass
from kerf_api.requirements import Requirements
from kerf_api.v1.meta import Taint

#: The program may have so many numbers for each seat that the search for a cheaper answer may look for: to solve it is
#: then a few hundredths of the search's work.
_NUMBERS_A_SEAT = 8
#: Kinds times offerings may be so many times that at first: most offerings are outdone by others.
_BEFORE = 40
#: Steps to find the offerings for one set of requirements that pods ask for.
_A_LOOK = 4


@dataclass(frozen=True, slots=True)
class _Look:
    """What decides by labels and taints where a pod may be placed: it wants one of these, and tolerates that."""

    wanted: tuple[Requirements, ...]
    tolerations: tuple[Toleration, ...]

    @classmethod
    def of(cls, group: PodClass) -> _Look:
        wanted = dict.fromkeys(
            relaxation.demand.strict for relaxation in group.relaxations if relaxation.demand.possible
        )
        return cls(tuple(wanted), group.relaxations[-1].demand.tolerations)

    def tolerates(self, taints: Iterable[Taint]) -> bool:
        return tolerates_all(self.tolerations, taints)


@dataclass(frozen=True, slots=True, eq=False)
class _Kinds:
    """`look` [kinds] is a row of the looks; `numbers` [kinds] pods; `needs` [kinds, resources] of each. `content` has
    for each node the kinds on it, with the number of pods of each."""

    look: NDArray[np.intp]
    numbers: Floats
    needs: Ints
    content: Sequence[Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True, eq=False)
class _Offers:
    """`price` [offerings]; `room` [offerings, resources]; `open` [offerings, ...] to which looks, later kinds."""

    price: Ints
    room: Ints
    open: Bools

    def only(self, rows: NDArray[np.intp], open_: Bools | None = None) -> _Offers:
        return _Offers(self.price[rows], self.room[rows], (self.open if open_ is None else open_)[rows])


def least_price(templates: Sequence[NodeClaimTemplate], packed: Sequence[Packed], effort: int) -> int | None:
    """In millionths of a dollar per hour; None when that is too much work beside a search of so many seats."""
    if not effort:
        return None
    bought = [done for done in packed if done.requirements.conflict(BOUGHT) is None]
    if not bought:
        return 0
    found = _payments(templates, bought, effort)
    return None if found is None else round(float(found[1] @ found[0].numbers)) or None


def values(templates: Sequence[NodeClaimTemplate], packed: Sequence[Packed], effort: int) -> Sequence[float | None]:
    """For each node, which is none on a reservation: what its pods pay at the dual prices, in millionths of a dollar
    per hour. None when that is too much work.

    The nodes of NodePools of one weight have a program of their own: weights come before prices.
    """
    found: list[float | None] = [None] * len(packed)
    for weight in {done.template.pool.spec.weight for done in packed}:
        alike = [template for template in templates if template.pool.spec.weight == weight]
        rows = [row for row, done in enumerate(packed) if done.template.pool.spec.weight == weight]
        solved = _payments(alike, [packed[row] for row in rows], effort) if effort else None
        if solved is not None:
            kinds, pays = solved
            for row, content in zip(rows, kinds.content, strict=True):
                found[row] = float(sum(pays[kind] * number for kind, number in content))
    return found


def _payments(
    templates: Sequence[NodeClaimTemplate], bought: Sequence[Packed], effort: int
) -> tuple[_Kinds, Floats] | None:
    """The kinds of pods and what a pod of each pays; None when that is too much work."""
    most = effort * _NUMBERS_A_SEAT
    looks, kinds, columns = _kinds(bought)
    every = _offers(templates, looks, columns)
    if every is None:
        return None
    offers = _cheapest_markets(every)
    if len(kinds.numbers) * len(offers.price) > most * _BEFORE:
        return None
    fit = offers.open[:, kinds.look]
    for column in range(len(columns)):
        fit &= offers.room[:, column, None] >= kinds.needs[:, column]
    offers = _undominated(_Offers(offers.price, offers.room, fit))
    if int(offers.open.sum()) * (len(columns) + 1) > most or not offers.open.any(axis=0).all():
        return None
    return kinds, _solved(kinds, offers)


# --- pods -------------------------------------------------------------------------------------------------------
def _kinds(packed: Iterable[Packed]) -> tuple[list[_Look], _Kinds, NDArray[np.intp]]:
    """The looks, the kinds, and the columns of which some pod needs anything."""
    looks: dict[_Look, int] = {}
    known: dict[PodClass, int] = {}
    needs: dict[bytes, Ints] = {}
    rows: dict[tuple[int, bytes], int] = {}
    numbers, content = list[int](), list[list[tuple[int, int]]]()
    for done in packed:
        content.append([])
        for stock, number in done.content:
            group, need = stock.item.cls, stock.item.need.tobytes()
            if group not in known:
                known[group] = looks.setdefault(_Look.of(group), len(looks))
            needs.setdefault(need, stock.item.need)
            row = rows.setdefault((known[group], need), len(rows))
            numbers += [0] * (len(rows) - len(numbers))
            numbers[row] += number
            content[-1].append((row, number))
    every = np.array([needs[need] for _, need in rows], dtype=np.int64)
    columns = np.flatnonzero(every.any(axis=0))
    look = [look for look, _ in rows]
    found = _Kinds(np.array(look, dtype=np.intp), np.array(numbers, dtype=np.float64), every[:, columns], content)
    return list(looks), found, columns


# --- offerings --------------------------------------------------------------------------------------------------
def _offers(
    templates: Sequence[NodeClaimTemplate], looks: Sequence[_Look], columns: NDArray[np.intp]
) -> _Offers | None:
    """Every offering that pods of some look may use; None when the work of the pass is used up before all are found."""
    prices, rooms, opens = [], [], []
    for template in templates:
        table = template.table
        every = _markets_of(template, template.requirements)
        opened = np.array([_opened(template, look, every) for look in looks], dtype=np.bool_)
        if template.work.worn:
            return None
        types, markets = np.nonzero(opened.any(axis=0))
        prices.append(table.price[types, markets])
        rooms.append((table.allocatable - template.overhead)[np.ix_(np.arange(len(table.types)), columns)][types])
        opens.append(opened[:, types, markets].T)
    return _Offers(np.concatenate(prices), np.concatenate(rooms), np.concatenate(opens))


def _opened(template: NodeClaimTemplate, look: _Look, every: Bools) -> Bools:
    """Which offerings [types, markets] a node of the pool for such a pod may be; `every` are those of any pod."""
    table = template.table
    found = np.zeros(table.price.shape, dtype=np.bool_)
    for wanted in look.wanted if look.tolerates(template.taints) else ():
        template.work.charge(_A_LOOK)
        if template.work.worn:
            break
        served = template.serve(wanted)
        if served is not None:
            found |= _markets_of(template, served)
            if (found == every).all():  # further terms open none
                break
    return found & table.market_mask(BOUGHT)


def _markets_of(template: NodeClaimTemplate, served: Requirements) -> Bools:
    """The offerings [types, markets] that are on sale for a node of the pool under these requirements."""
    table = template.table
    types = template.shape(served).price_at < NO_PRICE
    return types[:, None] & table.market_mask(served) & (table.price < NO_PRICE)


def _cheapest_markets(offers: _Offers) -> _Offers:
    """Of offerings with equal room that are open to the same looks, the cheapest."""
    keys = np.hstack([np.packbits(offers.open, axis=1).astype(np.int64), offers.room])
    order = np.argsort(offers.price, kind="stable")
    _, first = np.unique(keys[order], axis=0, return_index=True)
    return offers.only(order[np.sort(first)])


def _undominated(offers: _Offers) -> _Offers:
    """Without those than which another is open to all the same kinds and has, for the same money, as much of all.

    As nodes need not be whole, the other can take the place of what it outdoes.
    """
    useful = np.flatnonzero(offers.open.any(axis=1))
    worth = offers.room[useful] / np.maximum(offers.price[useful], 1)[:, None]
    worth /= np.maximum(worth.max(axis=0, initial=0.0), 1e-300)
    closed = np.packbits(~offers.open[useful], axis=1)
    rest = np.lexsort((-worth.sum(axis=1), closed.sum(axis=1)))
    kept: list[int] = []
    while len(rest):
        best = rest[0]
        kept.append(int(useful[best]))
        outdone = (worth[rest] <= worth[best]).all(axis=1) & ~(closed[best] & ~closed[rest]).any(axis=1)
        rest = rest[~outdone]
    return offers.only(np.array(kept, dtype=np.intp))


# --- the program ------------------------------------------------------------------------------------------------
def _solved(kinds: _Kinds, offers: _Offers) -> Floats:
    """What a pod of each kind pays, in millionths of a dollar per hour; zeros when the solver finds nothing.

    Columns: what a pod of each kind pays, then what each offering takes for all its room of each resource.

    Rows: for each kind on each offering that holds it, what it pays less what is taken for its parts of the room is at
    most nothing; what an offering takes for all its room is at most its price.
    """
    where, kind = np.nonzero(offers.open)
    fits, (number, resources) = len(kind), offers.room.shape
    takes = len(kinds.numbers) + np.arange(number * resources).reshape(number, resources)
    parts = kinds.needs[kind] / np.maximum(offers.room[where], 1)
    pays = Entries(np.arange(fits), kind, np.ones(fits))
    for_parts = Entries(np.repeat(np.arange(fits), resources), takes[where].ravel(), -parts.ravel())
    in_all = Entries(fits + np.repeat(np.arange(number), resources), takes.ravel(), np.ones(number * resources))
    dearest = float(max(offers.price.max(), 1))
    upper = np.concatenate([np.zeros(fits), offers.price / dearest])
    share = kinds.numbers / kinds.numbers.sum()
    gain = np.concatenate([share, np.zeros(number * resources)])
    found = most_under(gain, Entries.together(pays, for_parts, in_all), upper)
    prices: Floats = found[: len(kinds.numbers)] * dearest
    return prices
