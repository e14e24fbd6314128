"""Which types a planned node lists: all that hold its pods, cheapest first, up to 60, within limits and minValues."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf_api.requirements import Requirements

#: A node's types should number this many within this factor of the cheapest price.
FLEXIBLE, NEAR = 5, 1.2
Places = NDArray[np.intp]


def listing(
    template: NodeClaimTemplate, requirements: Requirements, types: Places, most: int, *, frugal: bool = False
) -> Places | None:
    """Which of these types (cheapest first) to list; None when there is none, or too few for minValues (Strict).

    A `frugal` list has none that uses more of limits than must be.
    """
    if not len(types):
        return None
    if frugal and template.remaining is not None:
        types = _frugal(template, types)
    missing = template.shortfall(types) if template.min_values else {}
    if missing and template.strict_min_values:
        return None
    if not template.min_values:
        return _modest(template, requirements, types)[:most]
    wanted = {key: min(count, missing.get(key, count)) for key, count in template.min_values.items()}
    covering = _covering(template, types, wanted)
    if len(covering) > most:
        return None if template.strict_min_values else types[:most]
    rest = [t for t in types if t not in set(covering)]
    chosen = set(covering) | set(rest[: most - len(covering)])
    return np.array([t for t in types if t in chosen], dtype=np.intp)


def _modest(template: NodeClaimTemplate, requirements: Requirements, types: Places) -> Places:
    """Under limits, only types no larger than the first few: whichever is launched, the limit was reckoned with it."""
    if template.remaining is None:
        return types
    prices = template.shape(requirements).price_at[types]
    first = max(int((prices <= prices[0] * NEAR).sum()), 1)
    good = np.ones(len(types), dtype=np.bool_)
    for resource in template.remaining:
        size = template.table.capacity(resource)[types]
        good &= size <= size[:first].max()
    return types[good]


def _frugal(template: NodeClaimTemplate, types: Places) -> Places:
    """Those that use least of limits, so many that minValues are met."""
    shares = template.share_of_limits()[types]
    order = np.argsort(shares, kind="stable")
    enough = next((n for n in range(1, len(types)) if not template.shortfall(types[order[:n]])), len(types))
    return np.asarray(types[shares <= shares[order[enough - 1]]])


def _covering(template: NodeClaimTemplate, types: Places, wanted: Mapping[str, int]) -> list[int]:
    """The cheapest types that bring enough distinct values for every key, taken greedily in order of price."""
    covering: dict[int, None] = {}
    for key, count in wanted.items():
        seen: set[str] = set()
        for place in types:
            if len(seen) >= count:
                break
            values = template.values_at(key, int(place))
            if values - seen:
                seen |= values
                covering[int(place)] = None
    return list(covering)
