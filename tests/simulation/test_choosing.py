"""Seeds are chosen for what their plans say."""

from __future__ import annotations

from collections.abc import Mapping, Set

import pytest

from tests.simulation.choosing import chosen

FOUND: Mapping[int, Set[str]] = {1: {"a"}, 2: {"a", "b"}, 3: {"c"}, 4: {"a", "b", "c"}, 5: set()}


@pytest.mark.parametrize(("most", "taken"), [(1, [4]), (2, [4, 2]), (9, [4, 2, 3, 1])])
def test_who_adds_most_comes_first_and_who_adds_nothing_never(most: int, taken: list[int]) -> None:
    assert chosen(FOUND, most) == taken
