"""The beginning of a problem while controllers start again: what outlives a process has it, or it is a lower bound."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from kerf.judgement import troubles
from kerf.judgement.troubles import Trouble
from kerf.model.aws.cloud import FleetRequest, FleetResult
from kerf.ports import Forbidden
from kerf.runtime.observe import reported
from kerf_api import labels
from tests.simulation.test_stock_out import ON_DEMAND, Shop, family
from tests.worlds import deployment

MINUTE = timedelta(minutes=1)


def trouble(stage: Shop, code: str) -> Trouble:
    (found,) = [one for one in stage.controller.status().troubles if one.code == code]
    return found


def lower_bound(stage: Shop, code: str) -> datetime:
    """The beginning of a problem, which may have begun before."""
    found = trouble(stage, code)
    assert found.at_least
    assert found.since is not None
    return found.since


def used_up() -> Shop:
    """A quota that is used up from the start, after a launch that did not fail."""
    stage = Shop(general={"requirements": [ON_DEMAND]}, other={"requirements": [ON_DEMAND, family("r")]})
    stage.world.apply(deployment("old", {"cpu": "1500m", "nodeSelector": {labels.NODEPOOL: "other"}}))
    stage.until_launched(MINUTE)
    stage.live(minutes=6)
    stage.cloud.no_vcpus = True
    stage.world.apply(deployment("web", {"cpu": "1800m"}))
    stage.live(seconds=20)
    return stage


def test_launches_that_fail_for_an_hour_have_the_time_of_the_first_one() -> None:
    """Failures themselves are forgotten after half an hour."""
    stage = used_up()
    began = trouble(stage, troubles.LAUNCH_REFUSED).since
    assert began is not None
    stage.live(minutes=60)
    found = trouble(stage, troubles.LAUNCH_REFUSED)
    assert (found.since, found.at_least) == (began, False)


def test_a_new_leader_has_its_own_first_refusal_as_a_lower_bound() -> None:
    stage = used_up()
    stage.live(minutes=10)
    stage.restart()
    started = stage.world.clock.now()
    stage.live(minutes=4)
    assert started <= lower_bound(stage, troubles.LAUNCH_REFUSED) <= started + 4 * MINUTE


def test_events_have_the_beginning_whichever_leader_wrote_them() -> None:
    stage = used_up()
    began = trouble(stage, troubles.LAUNCH_REFUSED).since
    assert began is not None
    for _ in range(4):
        stage.live(minutes=3)
        stage.restart()
    stage.live(seconds=30)
    launches = reported.read(Events(stage), stage.world.clock.now()).launches.values()
    (found,) = troubles.refused(launches, (), 1, stage.world.clock.now())
    assert found.since is not None
    assert (abs(found.since - began) <= timedelta(seconds=5), found.at_least) == (True, False)


def test_a_condition_keeps_its_time_when_the_controller_starts_again() -> None:
    stage = Shop(general={"requirements": [ON_DEMAND]})
    (node_class,) = stage.world.objects("EC2NodeClass")
    terms = [{"id": "ami-0123456789abcdef0"}]
    stage.world.apply({**node_class, "spec": {**node_class["spec"], "amiFamily": "AL2023", "amiSelectorTerms": terms}})
    stage.live(minutes=3)
    before = {one.object: one.since for one in stage.controller.status().troubles if one.code == troubles.NOT_READY}
    assert before
    stage.restart()
    stage.live(minutes=5)
    after = {one.object: one.since for one in stage.controller.status().troubles if one.code == troubles.NOT_READY}
    assert after == before


@pytest.mark.parametrize("minutes", [0.5, 10])
def test_a_failing_action_of_a_new_leader_is_as_old_as_its_first_attempt_at_least(minutes: float) -> None:
    stage = Shop(general={"requirements": [ON_DEMAND]})
    stage.live(minutes=5)

    def refuse(request: FleetRequest, may_act: Callable[[], bool] = lambda: True) -> FleetResult:
        raise Forbidden("no")

    stage.cloud.create_fleet = refuse  # type: ignore[method-assign]
    stage.world.apply(deployment("web", {"cpu": "1800m"}))
    stage.live(minutes=minutes)
    stage.restart()
    started = stage.world.clock.now()
    stage.live(minutes=3)
    assert lower_bound(stage, troubles.ACTION_FAILS) >= started
    assert "since at least" in "\n".join(
        one.standing(started) for one in stage.controller.state.failures.at(stage.world.clock.now()).values()
    )


class Events:
    """The events of a world as the API server lists them."""

    def __init__(self, stage: Shop) -> None:
        self._stage = stage

    def request(self, method: str, path: str) -> object:
        return {"items": [one for one in self._stage.world.objects("Event") if one["type"] == "Warning"]}
