"""From nodes in the making to nodes with types: each gets all that hold its pods, within limits and minValues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kerf.scheduling.offerings.instance_types import Bools, Ints
from kerf.scheduling.offerings.listing import listing
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.packing.draft import PoolDemand
from kerf.scheduling.packing.drafts import Draft
from kerf_api.requirements import Requirements

#: So many nodes are held against all types at a time.
_CHUNK = 512
_Known = dict[tuple[Requirements, bytes], NDArray[np.intp] | None]


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """A closed node: pods per stock, and the types it lists (places in the table), cheapest first."""

    template: NodeClaimTemplate
    requirements: Requirements
    used: Ints
    content: tuple[tuple[PoolDemand, int], ...]
    types: NDArray[np.intp]


def close(
    template: NodeClaimTemplate, drafts: Sequence[Draft], most: int, *, frugal: bool = False
) -> tuple[list[Packed], list[Draft]]:
    """The nodes that may be had, and those that may not; `frugal` ones list no type that uses more of limits.

    Within limits those with the most important pods come first, then those that serve most for their price.
    """
    holding = _holding(template, drafts)
    order = list(range(len(drafts)))
    if template.remaining is not None:
        order.sort(key=lambda i: (-_priority(drafts[i]), -_density(template, drafts[i], holding[i])))
    known: _Known = {}
    done: list[Packed] = []
    refused: list[Draft] = []
    for i in order:
        draft, types = drafts[i], _types(template, drafts[i], holding[i], most, known, frugal)
        if types is None:
            refused.append(draft)
        else:
            template.deduct(types)
            done.append(Packed(template, draft.requirements, draft.used, tuple(draft.content.items()), types))
    return done, refused


def _holding(template: NodeClaimTemplate, drafts: Sequence[Draft]) -> list[Bools]:
    """For each node the types that hold its pods, as a mask over its shape's."""
    found: dict[int, Bools] = {}
    together: dict[Requirements, list[int]] = {}
    for i, draft in enumerate(drafts):
        together.setdefault(draft.requirements, []).append(i)
    for requirements, places in together.items():
        for part in _chunks(places):
            room, used = template.shape(requirements).room, np.array([drafts[i].used for i in part])
            holding = np.ones((len(part), len(room)), dtype=np.bool_)
            for column in np.flatnonzero(used.any(axis=0)):
                holding &= room[:, column] >= used[:, column, None]
            found |= zip(part, holding, strict=True)
    return [found[i] for i in range(len(drafts))]


def _chunks(places: Sequence[int]) -> Iterator[Sequence[int]]:
    return (places[start : start + _CHUNK] for start in range(0, len(places), _CHUNK))


def _types(
    template: NodeClaimTemplate, draft: Draft, good: Bools, most: int, known: _Known, frugal: bool
) -> NDArray[np.intp] | None:
    """The types to list; nodes that the same types hold list the same, unless limits shrink from one to the next."""
    shape = template.shape(draft.requirements)
    for mask in (template.within_limits(), template.free_of_ports(draft.ports)):
        if mask is not None:
            good = good & mask[shape.types]
    good = _agreeing(template, draft, good)
    key = (draft.requirements, good.tobytes())
    if template.remaining is not None or key not in known:
        types = shape.types[good]
        known[key] = listing(template, draft.requirements, types, most, frugal=frugal) if len(types) else None
    return known[key]


def _agreeing(template: NodeClaimTemplate, draft: Draft, good: Bools) -> Bools:
    """The types that carry the same pods as the cheapest one, of the DaemonSets that a spread of the pass counts.

    All of them where too few agree for minValues.
    """
    spreads = {group for stock in draft.content for group in stock.item.cls.daemon_spreads}
    if not spreads or not good.any():
        return good
    types = template.shape(draft.requirements).types
    found = good
    for daemon in {daemon.key: daemon for group in spreads for daemon in group.daemons}.values():
        here = template.carrying(daemon, types)
        found = found & (here == here[found.argmax()])
    if template.strict_min_values and template.min_values and template.shortfall(types[found]):
        return good
    return found


def _priority(draft: Draft) -> int:
    return max((stock.item.cls.sample.spec.priority for stock in draft.content), default=0)


def _density(template: NodeClaimTemplate, draft: Draft, good: Bools) -> float:
    """What the pods of a node are worth, per price of the cheapest type that holds them."""
    prices = template.shape(draft.requirements).price[good]
    worth = sum(stock.worth * number for stock, number in draft.content.items())
    return worth / max(int(prices[0]), 1) if len(prices) else 0.0
