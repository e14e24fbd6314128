"""Seeds are chosen for what their plans say."""

from __future__ import annotations

from collections.abc import Mapping, Set

import pytest

from tests.simulation.choosing import chosen

FOUND: Mapping[int, Set[str]] = {1: {"a"}, 2: {"a", "b"}, 3: {"c"}, 4: {"a", "b", "c"}, 5: set()}


@pytest.mark.parametrize(("most", "taken"), [(1, [4]), (2, [4, 2]), (9, [4, 2, 3, 1])])
def test_who_adds_most_comes_first_and_who_adds_nothing_never(most: int, taken: list[int]) -> None:
    assert chosen(FOUND, dict.fromkeys(FOUND, 1.0), most) == taken


def test_what_a_seed_adds_is_divided_by_the_time_that_it_takes() -> None:
    assert chosen(FOUND, {**dict.fromkeys(FOUND, 1.0), 4: 4.0}, 2) == [2, 3]
