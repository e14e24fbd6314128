"""Prices that cannot be read: types have estimates meanwhile, and AWS is asked again soon, for these alone."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from kerf.model.aws.cloud import Region
from kerf.ports import Throttled
from kerf.runtime.controller import Controller
from kerf.runtime.inbox import ChoreFailed
from kerf.runtime.observe.observer import REGION_EVERY
from kerf.sandbox.faults import Call, Faults
from kerf.sandbox.world import World
from tests.unit.ec2.ec2_facts import SETTINGS

PRICES = ("on_demand_prices", "spot_prices")


class Down(Faults):
    """Calls of these verbs fail. All are counted."""

    def __init__(self, *verbs: str) -> None:
        self.verbs, self.calls = set(verbs), Counter[str]()

    def before(self, call: Call) -> None:
        self.calls[call.verb] += 1
        if call.verb in self.verbs:
            raise Throttled(f"ec2:{call.verb}: slow down")


class Life:
    """A controller in the sandbox."""

    def __init__(self, *down: str) -> None:
        self.faults = Down(*down)
        self.world = World(faults=self.faults)
        world: Any = self.world
        self.loop = Controller(world.ports, settings=SETTINGS, inline=True)

    def run(self, seconds: float) -> Region | None:
        self.world.run(self.loop, timedelta(seconds=seconds))
        return self.loop.state.catalogues.region

    @property
    def truth(self) -> Region:
        return self.world.ec2.region


@pytest.mark.parametrize("down", [("spot_prices",), ("on_demand_prices",), PRICES])
def test_a_failure_at_the_start_is_repaired_within_two_minutes_of_the_services_return(down: tuple[str, ...]) -> None:
    life = Life(*down)
    found = life.run(1800)
    assert found is not None
    assert set(found.on_demand) == set(life.truth.on_demand)
    assert set(found.spot) == set(life.truth.spot)
    assert (found.spot == life.truth.spot) is ("spot_prices" not in down)
    life.faults.verbs.clear()
    assert life.run(120) == life.truth


def test_only_the_failed_prices_are_read_again_and_once_a_minute_at_most() -> None:
    life = Life("spot_prices")
    life.run(1)
    before = life.faults.calls.copy()
    life.run(3600)
    asked = life.faults.calls - before
    assert (asked["region"], asked["on_demand_prices"]) == (0, 0)
    assert 50 <= asked["spot_prices"] <= 70


def test_nothing_is_known_of_types_before_their_prices_are_read_or_have_failed() -> None:
    life = Life()
    life.loop.state.catalogues.await_prices("other prices")
    assert life.run(60) is None
    life.loop.state.catalogues.read(ChoreFailed("other prices", Throttled("slow down"), life.world.clock.now()))
    assert life.run(1) == life.truth


def test_prices_that_are_known_stay_while_they_cannot_be_read() -> None:
    life = Life()
    before = life.run(1)
    life.faults.verbs.update(PRICES)
    assert life.run(REGION_EVERY.total_seconds() + 600) is before
    assert life.faults.calls["spot_prices"] > 2
