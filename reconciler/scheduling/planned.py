"""From packed bins to planned nodes: pods by name, types by name, requests with the daemons' share, price."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from api import labels
from reconciler.scheduling.assign import Item
from reconciler.scheduling.pack import Packed
from reconciler.scheduling.solution import NewNode
from reconciler.scheduling.types import NO_PRICE


def new_nodes(packed: Iterable[Packed]) -> tuple[NewNode, ...]:
    """In the order in which they were packed; the pods of an item are dealt out in their order."""
    dealt: dict[Item, int] = {}
    return tuple(_new_node(done, dealt) for done in packed)


def _new_node(done: Packed, dealt: dict[Item, int]) -> NewNode:
    full, template = done.full, done.full.template
    table, shape = template.table, template.shape(full.requirements)
    pods: list[str] = []
    for item, number in full.content:
        start = dealt.get(item, 0)
        pods += [pod.key for pod in item.pods[start : start + number]]
        dealt[item] = start + number
    allowed = table.market_mask(full.requirements)
    on_sale = np.flatnonzero(allowed & (table.price[done.types] < NO_PRICE).any(axis=0))
    markets = [table.markets[int(i)] for i in on_sale]
    requirements, relaxed = full.requirements, False
    missing = template.shortfall(done.types) if template.min_values else {}
    for key, count in sorted(missing.items()):
        requirements, relaxed = requirements.with_min_values(key, count or None), True
    overhead = template.overhead[done.types].min(axis=0)
    return NewNode(
        pool=template.name,
        requirements=requirements.without(labels.HOSTNAME),
        instance_types=tuple(dict.fromkeys(table.names[int(i)] for i in done.types)),
        requests=table.columns.resources(full.used + overhead),
        pods=tuple(pods),
        price=int(shape.price_at[done.types].min()),
        zones=tuple(sorted({m[0] for m in markets})),
        capacity_types=tuple(sorted({m[1] for m in markets})),
        min_values_relaxed=relaxed,
    )
