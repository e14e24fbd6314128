"""Expiration, from end to end: the successor is ready when the old node goes, whatever becomes of the controller."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.simulation.stage import SETTINGS, STILL, Stage

LIFE = 40 * 60


class Ageing(Stage):
    """Nodes that live forty minutes; a look at each write through the ports."""

    twice = True

    @property
    def ready(self) -> int:
        """Nodes on which pods may run, the tainted ones not counted."""
        good = [c for c in self.claims if c.is_true("Initialized") and not c.metadata.deleting]
        return sum(not c.is_true("DisruptionReason") for c in good)

    def evicted(self) -> bool:
        return bool(self.seam.writes("evict"))


def test_the_successor_is_ready_before_the_first_pod_leaves_and_nothing_outlives_its_time() -> None:
    stage = Ageing(replicas=2, pool={"expireAfter": "40m"})
    stage.settle()
    old = {claim.name: claim.metadata.creation_timestamp for claim in stage.claims}
    stage.run(LIFE, until=stage.evicted)
    assert stage.ready >= 1
    assert {claim.name for claim in stage.claims} > set(old)
    stage.run(LIFE, until=lambda: not any(c.name in old and not c.metadata.deleting for c in stage.claims))
    assert stage.world.clock.now() <= max(old.values()) + timedelta(seconds=LIFE)
    stage.run(300, until=lambda: len(stage.claims) == 2)
    stage.run(120, until=stage.all_run)


def test_a_controller_that_dies_goes_on_with_the_successor_it_finds() -> None:
    stage = Ageing(replicas=1, pool={"expireAfter": "40m"})
    stage.settle()
    old = stage.claims[0].name
    stage.run(LIFE, until=lambda: len(stage.claims) == 2)
    stage.restart()
    stage.run(LIFE, until=lambda: old not in {claim.name for claim in stage.claims})
    stage.run(120, until=stage.all_run)
    assert len(stage.world.ec2.instances) == 2


@pytest.mark.parametrize("within", [False, True])
def test_within_budgets_no_node_expires_that_the_budget_keeps(within: bool) -> None:
    closed = {**STILL, "budgets": [{"nodes": "0"}]}
    settings = replace(SETTINGS, expire_within_budgets=within)
    stage = Ageing(replicas=1, disruption=closed, pool={"expireAfter": "40m"}, settings=settings)
    stage.settle()
    old = stage.claims[0].name
    stage.run(LIFE + 600)
    assert (old in {claim.name for claim in stage.claims}) is within
