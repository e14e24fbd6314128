"""What days of a cluster come to is what has happened in them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.simulation.days import Days
from tests.simulation.test_thrift import SMALL, Steady

#: What the small type costs, in dollars an hour.
PRICE = 0.17


def test_two_hours_of_one_node_cost_twice_its_price_and_pods_wait_for_it() -> None:
    days = Days(Steady(3), types=(SMALL,))
    found = days.live(timedelta(hours=2))
    assert found.cost_usd == pytest.approx(2 * PRICE, rel=0.01)
    assert found.bound_usd == pytest.approx(2 * PRICE * 3 / 3.92, rel=0.01)
    assert (found.evictions, found.launches, found.peak_nodes) == (0, 1, 1)
    assert timedelta(minutes=1) < found.waited < timedelta(minutes=5)


def test_a_node_that_has_gone_costs_nothing_more_and_pods_that_left_are_counted() -> None:
    days = Days(Steady(6), {"budgets": [{"nodes": "100%"}]}, types=(SMALL,))
    days.live(timedelta(hours=1))
    days.scale({"web": 2})
    days.world.run(days, timedelta(hours=1))
    found = days.outcome()
    assert found.cost_usd == pytest.approx(3 * PRICE, rel=0.03)
    assert (found.evictions, found.launches, found.peak_nodes) == (1, 2, 2)


def test_a_life_of_the_same_seed_is_the_same() -> None:
    first, second = (Days(Steady(5, seed=3), types=(SMALL,)).live(timedelta(hours=1)) for _ in range(2))
    assert first == second
