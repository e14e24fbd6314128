"""Amounts as vectors, one by one and many at once."""

from __future__ import annotations

import pytest

from kerf.scheduling.offerings.instance_types import MOST, Columns
from kerf_api.resources import Resources

COLUMNS = Columns(["cpu", "memory", "pods"])
BAGS = [
    Resources({"cpu": 500, "memory": 1 << 30}),
    Resources(),
    Resources({"pods": -3, "example.com/x": 7}),
    Resources({"memory": 10**30, "cpu": MOST + 1}),
]


def test_absent_is_nothing_negative_too_and_beyond_the_most_all_are_alike() -> None:
    rows = [COLUMNS.vector(bag).tolist() for bag in BAGS]
    assert rows == [[500, 1 << 30, 0], [0, 0, 0], [0, 0, 0], [MOST, MOST, 0]]


@pytest.mark.parametrize("number", range(len(BAGS) + 1))
def test_many_at_once_are_what_they_are_one_by_one(number: int) -> None:
    found = COLUMNS.vectors(BAGS[:number])
    assert found.shape == (number, 3)
    assert found.tolist() == [COLUMNS.vector(bag).tolist() for bag in BAGS[:number]]
