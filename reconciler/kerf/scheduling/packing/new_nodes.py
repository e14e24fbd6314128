"""From packed bins to planned nodes: pods by name, types by name, requests with the daemons' share, price."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from kerf.scheduling.answers.solution import NewNode
from kerf.scheduling.offerings.instance_types import NO_PRICE, Ints
from kerf.scheduling.packing.finalize import Packed
from kerf.scheduling.placing.ways import PodGroup
from kerf_api import labels
from kerf_api.requirements import Requirements


@dataclass(frozen=True, slots=True, eq=False)
class _Listed:
    """What is the same of all nodes that meet the same requirements and list the same types."""

    requirements: Requirements
    relaxed: bool
    names: tuple[str, ...]
    overhead: Ints
    price: int
    zones: tuple[str, ...]
    capacity_types: tuple[str, ...]


def new_nodes(packed: Iterable[Packed]) -> tuple[NewNode, ...]:
    """In the order in which they were packed; the pods of an item are dealt out in their order."""
    dealt: dict[PodGroup, Iterator[str]] = {}
    known: dict[tuple[str, Requirements, bytes], _Listed] = {}
    return tuple(_new_node(done, dealt, known) for done in packed)


def _new_node(
    done: Packed, dealt: dict[PodGroup, Iterator[str]], known: dict[tuple[str, Requirements, bytes], _Listed]
) -> NewNode:
    key = (done.template.name, done.requirements, done.types.tobytes())
    listed = known.get(key)
    if listed is None:
        listed = known[key] = _listed(done)
    pods: list[str] = []
    for stock, number in done.content:
        left = dealt.get(stock.item)
        if left is None:
            left = dealt[stock.item] = iter(stock.item.keys)
        pods += islice(left, number)
    return NewNode(
        pool=done.template.name,
        requirements=listed.requirements,
        instance_types=listed.names,
        requests=done.template.table.columns.resources((done.used + listed.overhead).tolist()),
        pods=tuple(pods),
        price=listed.price,
        zones=listed.zones,
        capacity_types=listed.capacity_types,
        min_values_relaxed=listed.relaxed,
    )


def _listed(done: Packed) -> _Listed:
    template, table = done.template, done.template.table
    allowed = table.market_mask(done.requirements)
    on_sale = np.flatnonzero(allowed & (table.price[done.types] < NO_PRICE).any(axis=0))
    markets = [table.markets[int(i)] for i in on_sale]
    requirements, relaxed = done.requirements, False
    missing = template.shortfall(done.types) if template.min_values else {}
    for key, count in sorted(missing.items()):
        requirements, relaxed = requirements.with_min_values(key, count or None), True
    return _Listed(
        requirements.without(labels.HOSTNAME, labels.NAME_FIELD),
        relaxed,
        tuple(dict.fromkeys(table.names[int(i)] for i in done.types)),
        template.overhead[done.types].min(axis=0),
        int(template.shape(done.requirements).price_at[done.types].min()),
        tuple(sorted({m[0] for m in markets})),
        tuple(sorted({m[1] for m in markets})),
    )
