"""Nodes of every age are taken over: which go when, and how many at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from kerf.disruption.forced.expiration import LEAD
from kerf.model import kinds
from kerf_api import labels

from . import sample
from .world import Adopted

HOUR, STEP = timedelta(hours=1), timedelta(minutes=5)
#: Parts of their lives that the nodes of the pool `default` have behind them when Kerf comes, in percent.
AGES = (50, 50, 50, 92, 92, 98, 98, 103, 103, 103)
#: Only the pool `default`, its class, nodes and pods are there.
OTHERS = ("batch", "web")
#: `Adopted.settle` makes objects so old.
AGE = 24 * HOUR


def taken_over(budget: str, ages: Sequence[int] = AGES, *, led: timedelta = timedelta(0)) -> Adopted:
    """The recorded cluster, of which Kerf has been the leader for so long; the pool `default` has this one budget."""
    manifests = [one for one in sample.manifests() if not _is_of_others(one["metadata"])]
    for manifest in manifests:
        if manifest["kind"] == "NodePool":
            manifest["spec"]["disruption"]["budgets"] = [{"nodes": budget}]
        if manifest["kind"] == "NodeClaim":
            life = AGE * 100 / ages[_number(manifest["metadata"]["name"])]
            manifest["spec"]["expireAfter"] = f"{int(life.total_seconds())}s"
    play = Adopted(manifests, cluster=sample.CLUSTER)
    play.settle()
    began = play.world.clock.now() - led
    play.controller.state.leading_since = lambda: began
    return play


def _is_of_others(metadata: Mapping[str, Any]) -> bool:
    return metadata["name"].startswith(OTHERS) or metadata.get("labels", {}).get(labels.NODEPOOL) in OTHERS


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])


def departures(play: Adopted, time: timedelta, step: timedelta) -> list[tuple[int, timedelta]]:
    """Which nodes went in this time, by number, and when, in the order in which they did."""
    began, gone = play.world.clock.now(), dict[int, timedelta]()
    while (now := play.world.clock.now()) < began + time:
        there = {claim.name for claim in play.values(kinds.NODE_CLAIM) if not claim.metadata.deleting}
        for number in range(sample.EACH):
            if f"default-{number:05d}" not in there:
                gone.setdefault(number, now - began)
        play.live(seconds=step.total_seconds())
    return list(gone.items())


@pytest.mark.parametrize(("age", "number", "hours"), [(98, 2, 24 / 0.98 - 24), (92, 2, 24 / 0.92 - 24), (50, 3, 24.0)])
def test_each_goes_when_its_life_is_over(
    one_at_a_time: Sequence[tuple[int, timedelta]], age: int, number: int, hours: float
) -> None:
    """As with Karpenter, and not up to a tenth earlier. The successor is made ready in the ten minutes before."""
    times = [at for one, at in one_at_a_time if AGES[one] == age]
    assert len(times) == number
    assert hours * HOUR - LEAD <= min(times) <= max(times) <= hours * HOUR + STEP


@pytest.fixture(scope="module")
def one_at_a_time() -> Sequence[tuple[int, timedelta]]:
    return departures(taken_over("1"), 24 * HOUR + 2 * STEP, STEP)


def test_those_that_were_over_go_one_after_the_other() -> None:
    second = timedelta(seconds=1)
    found = departures(taken_over("1"), timedelta(minutes=10), second)
    assert [AGES[number] for number, _ in found] == [103, 103, 103]
    times = [at for _, at in found]
    assert all(later - earlier > 20 * second for earlier, later in pairwise(times)), times


def test_those_that_no_budget_lets_go_are_gone_a_day_after_kerf_began_to_lead() -> None:
    """With a life of an hour they were over half an hour before."""
    play = taken_over("0", (2400, 2400, 2400, *[50] * 7), led=22.5 * HOUR)
    found = departures(play, 2 * HOUR, STEP)
    assert [number for number, _ in found] == [0, 1, 2]
    assert {at for _, at in found} == {1.5 * HOUR + STEP} or {at for _, at in found} == {1.5 * HOUR}
