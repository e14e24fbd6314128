"""Pods dealt out to nodes in the making: the likest nodes first, and how many each takes."""

from __future__ import annotations

from typing import Final

import numpy as np

from kerf.scheduling.offerings.instance_types import Floats, Indices, Ints


def best_first(likeness: Floats, number: int) -> Indices:
    """The places of the likest, best first: no more than there can be pods."""
    if number * 4 > len(likeness):
        return (-likeness).argsort(kind="stable")[:number]
    less = -likeness
    best = less.argpartition(number)[:number]
    best.sort()
    return np.asarray(best[less[best].argsort(kind="stable")])


#: One pod each.
_ONES: Final = np.ones(1024, dtype=np.int64)
_ONES.setflags(write=False)


def ones(number: int) -> Ints:
    """One pod for each of so many nodes; not to be written to."""
    return _ONES[:number] if number <= len(_ONES) else np.ones(number, dtype=np.int64)


def dealt(nodes: Indices, most: Ints, number: int, each: int) -> tuple[Indices, Ints]:
    """So many pods dealt out in order, so many to each node and none more than it can take; then what is left."""
    if len(nodes) == 1:
        return nodes, np.minimum(most, number)
    taken = _in_turn(np.minimum(most, each), number)
    rest = number - int(taken.sum())
    if rest:
        taken = taken + _in_turn(most - taken, rest)
    some = taken > 0
    return nodes[some], taken[some]


def _in_turn(most: Ints, number: int) -> Ints:
    """So many pods, each place filled before the next one."""
    return np.asarray(np.maximum(np.minimum(number - (np.cumsum(most) - most), most), 0))
