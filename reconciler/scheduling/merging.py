"""Few nodes, made fewer: one takes over all that is on others, or is emptied onto the others, where that costs less.

Nodes that were filled lane by lane are each the best for what was there first. Here whole nodes are looked at, those
with pods that belong together among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from api import labels
from api.requirements import Requirements
from reconciler.scheduling.bins import Bin, Stock
from reconciler.scheduling.groups import AFFINITY, Group
from reconciler.scheduling.opening import Item
from reconciler.scheduling.rack import Draft
from reconciler.scheduling.sizes import PER_NODE
from reconciler.scheduling.template import Template

#: More nodes than these are left as they are.
_FEW = 16


def merged(template: Template, drafts: list[Draft]) -> list[Draft]:
    """These nodes, or cheaper ones for the same pods."""
    if not 1 < len(drafts) <= _FEW:
        return drafts
    stocks = {stock.item: stock for draft in drafts for stock in draft.content}
    bins = [_filled(template, d.requirements, [(stock.item, n) for stock, n in d.content.items()]) for d in drafts]
    if any(_price(one) is None for one in bins):
        return drafts
    changed = False
    while (better := _better(bins)) is not None:
        bins, changed = better, True
    return [_draft(one, stocks) for one in bins] if changed else drafts


def _better(bins: Sequence[Bin]) -> list[Bin] | None:
    """The cheapest nodes that one step leads to, if they cost less than these."""
    now, best = _whole(bins), None
    for candidate in (*_taken_over(bins), *_emptied(bins), *_moved(bins)):
        then = _whole(candidate)
        if then < now:
            now, best = then, candidate
    return best


def _taken_over(bins: Sequence[Bin]) -> Iterator[list[Bin]]:
    """One node takes over all that is on a second one, then on a third, and so on, as long as a type holds it."""
    for first in bins:
        full, rest = first, [one for one in bins if one is not first]
        for other in sorted(rest, key=lambda one: _price(one) or 0):
            joint = _together(full, other)
            if joint is not None:
                full, rest = joint, [one for one in rest if one is not other]
                yield [*rest, full]


def _together(full: Bin, other: Bin) -> Bin | None:
    """All pods of two nodes on one; those that need company bring it along."""
    requirements = full.template.join(full.requirements, other.requirements)
    if requirements is None:
        return None
    joint = full.copy()
    for item, number in other.content:
        if joint.most(item, with_company=True) < number:
            return None
        joint.add(item, number, requirements)
    return joint if _price(joint) is not None else None


def _emptied(bins: Sequence[Bin]) -> Iterator[list[Bin]]:
    """The pods of one node go where each costs least; who needs company waits for it."""
    for gone in bins:
        rest: list[Bin] | None = [one for one in bins if one is not gone]
        waiting = [item for item, number in gone.content for _ in range(number)]
        while rest is not None and waiting:
            still: list[Item] = []
            for item in waiting:
                rest_with = _seated(rest, item)
                if rest_with is None:
                    still.append(item)
                else:
                    rest = rest_with
            rest, waiting = (None if len(still) == len(waiting) else rest), still
        if rest is not None:
            yield rest


def _moved(bins: Sequence[Bin]) -> Iterator[list[Bin]]:
    """All pods of one kind leave a node for another, unless somebody there needs them."""
    for source in bins:
        for item in dict.fromkeys(item for item, _ in source.content):
            number = sum(n for one, n in source.content if one is item)
            rest = [(one, n) for one, n in source.content if one is not item]
            if not rest or any(_follows(one, item) for one, _ in rest):
                continue
            left = _filled(source.template, source.requirements, rest)
            for other in bins:
                served = other.template.serve(item.requirements)
                joint = other.template.join(other.requirements, served) if served is not None else None
                kept = all(other.counts.get(g, 0) or _only(item, number, g, source) for g in _groups(item))
                if other is source or joint is None or not kept or other.most(item, with_company=True) < number:
                    continue
                target = other.copy()
                target.add(item, number, joint)
                if _price(target) is not None:
                    yield [left if one is source else target if one is other else one for one in bins]


def _groups(item: Item) -> list[Group]:
    """Whose company on a host the item needs."""
    return [b.group for b in item.rung.bonds if b.key == labels.HOSTNAME and b.group.kind == AFFINITY]


def _only(item: Item, number: int, group: Group, where: Bin) -> bool:
    """Whether so many pods of the item are all the company that they have there."""
    return group in item.cls.counted and where.counts.get(group, 0) == number


def _follows(one: Item, other: Item) -> bool:
    return any(group in other.cls.counted for group in _groups(one))


def _seated(bins: list[Bin], item: Item) -> list[Bin] | None:
    """The nodes with one more pod on that one which costs least for it."""
    best: tuple[int, int, Bin] | None = None
    for place, one in enumerate(bins):
        served = one.template.serve(item.requirements)
        joint = one.template.join(one.requirements, served) if served is not None and one.most(item) else None
        if joint is None:
            continue
        trial = one.copy()
        trial.add(item, 1, joint)
        then = _price(trial)
        if then is not None and (best is None or then - (_price(one) or 0) < best[0]):
            best = (then - (_price(one) or 0), place, trial)
    return None if best is None else [*bins[: best[1]], best[2], *bins[best[1] + 1 :]]


def _whole(bins: Iterable[Bin]) -> int:
    return sum((_price(one) or 0) + PER_NODE for one in bins)


def _price(full: Bin) -> int | None:
    """What the cheapest type costs that holds all; None when none does."""
    types = full.types()
    return int(full.template.shape(full.requirements).price_at[types[0]]) if len(types) else None


def _filled(template: Template, requirements: Requirements, content: Sequence[tuple[Item, int]]) -> Bin:
    made = Bin(template, requirements, np.zeros_like(content[0][0].need))
    for item, number in content:
        made.add(item, number, requirements)
    return made


def _draft(full: Bin, stocks: dict[Item, Stock]) -> Draft:
    content: dict[Stock, int] = {}
    for item, number in full.content:
        content[stocks[item]] = content.get(stocks[item], 0) + number
    return Draft(full.requirements, full.used, content, tuple(full.ports))
