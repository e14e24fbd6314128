"""The spread of figures over many runs."""

from __future__ import annotations

import random

import pytest

from kerf.cli.verbs.simulation.spreads import Spread, spread


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([7], Spread(7, 7, 7, 7)),
        ([1, 2], Spread(1, 1.5, 2, 2)),
        ([*range(1, 21)], Spread(1, 10.5, 19, 20)),
        ([*range(1, 101)], Spread(1, 50.5, 95, 100)),
    ],
    ids=("one", "two", "twenty", "hundred"),
)
def test_the_95th_percentile_is_the_nearest_rank(values: list[float], found: Spread) -> None:
    mixed = random.Random(0).sample(values, len(values))
    assert spread(mixed) == found
