"""`kerf plan` against what then happens: the same change in a world whose seed, and so whose launches and pods, the
plan has not seen. The world is read by itself: NodeClaims that are gone, the cost of instances, pods that had to leave.
"""

from __future__ import annotations

import pytest

from tests.simulation.plan_cases import CASES, EXPLAINED, LONG, SHORT
from tests.simulation.plan_table import played


@pytest.mark.parametrize("name", SHORT)
def test_what_is_planned_happens(name: str) -> None:
    found = played(name)
    assert found.planned == found.gone
    assert found.cost_off <= 0.02
    assert found.planned_waiting == found.waiting
    assert found.planned_moves == found.moves
    assert found.order == 1
    assert found.in_time


@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
def test_what_is_planned_happens_in_the_long_run(name: str) -> None:
    found = played(name)
    missed = min(found.precision, found.recall) < 0.95 or found.cost_off > 0.02
    assert missed == (name in EXPLAINED)
    assert found.order == 1
    assert found.in_time


def test_there_are_as_many_cases_as_are_promised() -> None:
    assert len(CASES) >= 40
