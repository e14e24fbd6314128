"""A plan includes the canary of a change: one node goes first, and the others after the soak time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kerf.planning.changes import Change
from kerf.planning.forecast import forecast
from kerf.snapshots.captured import Captured
from kerf.snapshots.reading import read
from kerf.snapshots.writing import lines
from kerf_api import labels
from tests.scenarios.story import Story
from tests.worlds import node_pool

POOL = {"disruption": {"consolidateAfter": "Never", "budgets": [{"nodes": "100%"}]}}
SOAK = timedelta(hours=2)


@pytest.mark.parametrize("plan_first", [False, True])
def test_a_plan_has_the_soak_time_between_the_first_node_and_the_others(plan_first: bool) -> None:
    story = Story()
    story.play({"stage": {"pools": {"general": POOL}}})
    notes = {labels.CANARY_SOAK: "2h", **({labels.PLAN_FIRST: "true"} if plan_first else {})}
    story.play({"annotate": {"NodePool": {"general": notes}}})
    story.play({"deploy": {"web": {"replicas": 3, "alone": True}}, "expect": {"nodes": 3, "within": "3m"}, "run": "1m"})
    found = Captured(story.player.snapshot(), story.world.ec2.region)
    changed = node_pool("general", {**POOL, "labels": {"version": "two"}})
    changed = {**changed, "metadata": {**changed["metadata"], "annotations": notes}}
    outcome = forecast(read(lines(found, b"key")), Change((changed,))).planned
    times = sorted(one.started for one in outcome.departures if one.started is not None)
    assert len(times) == 3
    assert outcome.at_rest
    assert times[1] - times[0] > SOAK
    assert times[2] - times[1] < timedelta(minutes=5)
