"""Days of a load that comes and goes: consolidation comes back to nothing that it has left, and makes nothing dearer.

The rises between are the load's. `tests/simulation/test_thrift.py` breaks both rules.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from kerf.simulating.autoscalers.greedy import greedy
from kerf.simulating.autoscalers.threshold import threshold
from tests.simulation.days import Days
from tests.simulation.load import SERVICES, STEP, Load

#: A third of the usual replicas: a day takes some seconds.
FEW = tuple(replace(service, most=service.most // 3) for service in SERVICES)
THURSDAY, SATURDAY = datetime(2026, 1, 1), datetime(2026, 1, 3)


def lived(load: Load, span: timedelta, after: str) -> Days:
    """So long with that `consolidateAfter`, in which consolidation has kept its two promises."""
    days = Days(load, {"consolidateAfter": after})
    days.live(span)
    assert days.thrift.returned == []
    assert days.thrift.dearer == []
    assert {names: (old, new) for names, (old, new) in days.thrift.replacements().items() if new >= old} == {}
    return days


def test_a_day() -> None:
    days = lived(Load(1, FEW), timedelta(days=1), "0s")
    assert days.thrift.replacements()
    assert days.thrift.compared > 5


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("seed", "after"), [(1, "0s"), (2, "0s"), (3, "15m")])
def test_two_weeks(seed: int, after: str) -> None:
    assert lived(Load(seed), timedelta(days=14), after).thrift.compared > 100


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [4, 5])
def test_it_costs_less_than_by_a_threshold_or_by_the_references_order(seed: int) -> None:
    ours, *theirs = (Days(Load(seed), rival=rival).live(timedelta(days=3)) for rival in (None, threshold, greedy))
    assert all(ours.cost_usd < other.cost_usd for other in theirs)


def test_the_load_follows_the_days() -> None:
    load = Load(1)
    afternoon, night = load.at(THURSDAY + timedelta(hours=15)), load.at(THURSDAY + timedelta(hours=3))
    weekend = load.at(SATURDAY + timedelta(hours=15))
    assert afternoon["web"] > 3 * night["web"]
    assert afternoon["web"] > 1.3 * weekend["web"] > 1.3 * night["web"]
    assert afternoon["batch"] < night["batch"]
    assert load.at(THURSDAY) == Load(1).at(THURSDAY) != Load(2).at(THURSDAY)
    assert load.at(THURSDAY) != load.at(THURSDAY + STEP)
