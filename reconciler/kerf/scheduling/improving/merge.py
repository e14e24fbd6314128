"""Few nodes, made fewer: one takes over all that is on others, or is emptied onto the others, where that costs less.
Where two small ones cost clearly less than one that is large, it is parted.

Nodes that were filled lane by lane are each the best for what was there first. Here whole nodes are looked at, those
with pods that belong together among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from math import prod

from kerf.pods.topology_constraints import AFFINITY, TopologyGroup
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.packing.draft import Bin, needs_company
from kerf.scheduling.packing.drafts import Draft
from kerf.scheduling.packing.effort import Effort
from kerf.scheduling.packing.sizes import PER_NODE
from kerf.scheduling.placing.ways import PodGroup
from kerf_api.requirements import Requirements

#: More nodes than these are left as they are.
_FEW = 16
#: To ask the costs of so many nodes is as much work as to look for one seat.
_COSTS_A_SEAT = 6
#: A node with pods that can be parted in more ways than these is left whole.
_WAYS = 256
#: An answer with a node more has to be better by this share; among answers as good as that, fewer nodes are better.
_BAND = 0.01
#: Nodes that are removed, and those that come instead.
_Step = tuple[Sequence[Bin], Sequence[Bin]]


def merged(template: NodeClaimTemplate, drafts: list[Draft], effort: Effort) -> list[Draft]:
    """These nodes, or cheaper ones for the same pods; what it took is counted."""
    if not 1 < len(drafts) <= _FEW:
        return drafts
    stocks = {stock.item: stock for draft in drafts for stock in draft.content}
    bins = [Bin.filled(template, d.requirements, [(stock.item, n) for stock, n in d.content.items()]) for d in drafts]
    costs = _Costs()
    if any(costs.of(one) is None for one in bins):
        return drafts
    changed = False
    while not template.work.worn and (better := _better(bins, costs)) is not None:
        bins, changed = better, True
    effort.used += costs.asked // _COSTS_A_SEAT
    return [Draft.of(one, stocks) for one in bins] if changed else drafts


class _Costs:
    """What nodes cost, each `asked` once."""

    def __init__(self) -> None:
        self._known: dict[Bin, int | None] = {}

    def of(self, full: Bin) -> int | None:
        """The cheapest type's price that holds all, and what a node costs besides; None when no type does."""
        if full not in self._known:
            full.template.work.charge(2 + len(full.content) // 4)
            types = full.types()
            price_at = full.template.shape(full.requirements).price_at
            self._known[full] = int(price_at[types[0]]) + PER_NODE if len(types) else None
        return self._known[full]

    @property
    def asked(self) -> int:
        return len(self._known)

    def sure(self, full: Bin) -> int:
        """The cost of a node of which it is known that some type holds all."""
        cost = self.of(full)
        if cost is None:
            raise ValueError("no type fits the pods of this node")
        return cost


def _better(bins: Sequence[Bin], costs: _Costs) -> list[Bin] | None:
    """The cheapest nodes that one step leads to, if they cost less than these."""
    most, best = 0, None
    band = int(_BAND * sum(map(costs.sure, bins)))
    for gone, come in (*_taken_over(bins, costs), *_emptied(bins, costs), *_moved(bins, costs), *_parted(bins, costs)):
        gain = sum(map(costs.sure, gone)) - sum(map(costs.sure, come)) - band * (len(come) > len(gone))
        if gain > most:
            most, best = gain, (gone, come)
    if best is None:
        return None
    gone, come = best
    return [*(one for one in bins if one not in gone), *come]


def _taken_over(bins: Sequence[Bin], costs: _Costs) -> Iterator[_Step]:
    """One node takes over all that is on a second one, then on a third, and so on, as long as a type holds it."""
    for first in bins:
        full, gone = first, [first]
        for other in sorted((one for one in bins if one is not first), key=costs.sure):
            joint = _together(full, other)
            if joint is not None and costs.of(joint) is not None:
                full, gone = joint, [*gone, other]
                yield gone, [full]


def _together(full: Bin, other: Bin) -> Bin | None:
    """All pods of two nodes on one, room aside; those that need company bring it along."""
    requirements = full.template.join(full.requirements, other.requirements)
    if requirements is None:
        return None
    joint = full.copy()
    for item, number in other.content:
        if joint.most(item, with_company=True) < number:
            return None
        joint.add(item, number, requirements)
    return joint


def _emptied(bins: Sequence[Bin], costs: _Costs) -> Iterator[_Step]:
    """The pods of one node are placed where each costs least; who needs company waits for it."""
    for gone in bins:
        before = [one for one in bins if one is not gone]
        after = _taken_in(
            before, [item for item, number in gone.content for _ in range(number)], costs.sure(gone), costs
        )
        if after is not None:
            came = [(old, new) for old, new in zip(before, after, strict=True) if old is not new]
            yield [gone, *(old for old, _ in came)], [new for _, new in came]


def _taken_in(bins: Sequence[Bin], waiting: list[PodGroup], budget: int, costs: _Costs) -> list[Bin] | None:
    """The nodes with all these pods, if that costs less than the budget."""
    full = list(bins)
    while waiting:
        still: list[PodGroup] = []
        for item in waiting:
            best = _seated(full, item, budget, costs)
            if best is None:
                still.append(item)
            else:
                extra, place, taken = best
                full[place], budget = taken, budget - extra
        if len(still) == len(waiting):
            return None
        waiting = still
    return full


def _moved(bins: Sequence[Bin], costs: _Costs) -> Iterator[_Step]:
    """All pods of one kind leave a node, which costs less then, for another, unless a pod there needs them."""
    for source in bins:
        for item in dict.fromkeys(item for item, _ in source.content):
            number = sum(n for one, n in source.content if one is item)
            rest = [(one, n) for one, n in source.content if one is not item]
            if not rest or any(_follows(one, item) for one, _ in rest):
                continue
            left = Bin.filled(source.template, source.requirements, rest)
            if costs.sure(left) >= costs.sure(source):
                continue
            for other in bins:
                served = other.template.serve(item.requirements)
                joint = other.template.join(other.requirements, served) if served is not None else None
                kept = all(other.counts.get(g, 0) or _only(item, number, g, source) for g in _groups(item))
                if other is source or joint is None or not kept or other.most(item, with_company=True) < number:
                    continue
                target = other.copy()
                target.add(item, number, joint)
                if costs.of(target) is not None:
                    yield [source, other], [left, target]


def _parted(bins: Sequence[Bin], costs: _Costs) -> Iterator[_Step]:
    """The pods of one node are placed on two, unless some of them need company there.

    Not within limits: two nodes may take more of them than one.
    """
    for full in bins:
        content = Counter[PodGroup]()
        for item, number in full.content:
            content[item] += number
        if full.template.remaining is not None or any(needs_company(item.relaxation.hosts) for item in content):
            continue
        if prod(number + 1 for number in content.values()) > _WAYS:
            continue
        for amounts in islice(product(*(range(number + 1) for number in content.values())), 1, None):
            here = +Counter(dict(zip(content, amounts, strict=True)))
            rest = content - here
            if not rest:
                continue
            one = _alone(full.template, here)
            if one is not None and costs.of(one) is not None and costs.sure(one) < costs.sure(full):
                other = _alone(full.template, rest)
                if other is not None and costs.of(other) is not None:
                    yield [full], [one, other]


def _alone(template: NodeClaimTemplate, content: Mapping[PodGroup, int]) -> Bin | None:
    """A node with these pods, of which it is known that they may be together, and with nothing that others want."""
    joint: Requirements | None = template.requirements
    for item in content:
        served = template.serve(item.requirements)
        joint = template.join(joint, served) if joint is not None and served is not None else None
    return Bin.filled(template, joint, list(content.items())) if joint is not None else None


def _groups(item: PodGroup) -> list[TopologyGroup]:
    """Whose company on a host the item needs."""
    return [constraint.group for constraint in item.relaxation.hosts if constraint.group.kind == AFFINITY]


def _only(item: PodGroup, number: int, group: TopologyGroup, where: Bin) -> bool:
    """Whether so many pods of the item are all the company that they have there."""
    return group in item.cls.counted and where.counts.get(group, 0) == number


def _follows(one: PodGroup, other: PodGroup) -> bool:
    return any(group in other.cls.counted for group in _groups(one))


def _seated(bins: Sequence[Bin], item: PodGroup, budget: int, costs: _Costs) -> tuple[int, int, Bin] | None:
    """For one more pod, what it costs least, the place of that node, and the node with it; less than the budget."""
    best: tuple[int, int, Bin] | None = None
    for place, one in enumerate(bins):
        served = one.template.serve(item.requirements)
        joint = one.template.join(one.requirements, served) if served is not None and one.most(item) else None
        if joint is None:
            continue
        trial = one.copy()
        trial.add(item, 1, joint)
        then = costs.of(trial)
        if then is not None and then - costs.sure(one) < budget:
            best, budget = (then - costs.sure(one), place, trial), then - costs.sure(one)
    return best
