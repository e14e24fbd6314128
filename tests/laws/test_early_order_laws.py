"""The law of early orders: nodes that are ordered before the close of their batch cost hardly more.

A few seeds are played here; `make long` plays three hundred.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from random import Random
from statistics import mean
from typing import Final

import pytest

from tests.laws.arrivals import Life, arrivals, lived

SOME: Final = (3, 25, 64, 87)
MANY: Final = range(300)
#: Pods of one life at most.
PODS: Final = 300
#: The mean, and the most of nineteen in twenty.
MEAN: Final = 1.01
OF_TWENTY: Final = 1.03


@cache
def lives(seed: int) -> tuple[Life, Life]:
    """With early orders, and without."""
    given = arrivals(Random(seed), PODS)
    return lived(given, early=True), lived(given, early=False)


def costs(seeds: Iterable[int]) -> list[float]:
    """For each seed the price with early orders as a part of the price without, sorted."""
    found = list[float]()
    for seed in seeds:
        early, late = lives(seed)
        assert early.lost == late.lost
        assert late.early == 0
        found.append(early.price / late.price if late.price else 1.0)
    return sorted(found)


def within(found: list[float]) -> bool:
    return mean(found) <= MEAN and found[len(found) * 19 // 20] <= OF_TWENTY


def test_early_orders_cost_hardly_more() -> None:
    assert within(costs(SOME))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_early_orders_cost_hardly_more_over_many_seeds() -> None:
    assert within(costs(MANY))


def test_early_orders_come_before_the_close() -> None:
    early, late = lives(SOME[-1])
    assert early.early
    assert early.ordered[0] < late.ordered[0] - 1
