"""How often AWS is asked what a node class selects: seldom while nothing happens, and at once when something does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kerf.model.aws.cloud import Impairment
from kerf.ports import Forbidden, Unavailable
from kerf.runtime.state.catalogues import RESOLVE_EVERY
from kerf.sandbox.aws.cloud import SandboxCloud
from kerf.sandbox.faults import Call, Faults
from kerf.sandbox.world import World
from tests.simulation.stage import EAGER, SETTINGS, Play, Stage
from tests.worlds import deployment, node_class, node_pool

REFRESH = SETTINGS.refresh.total_seconds()
MINUTE = RESOLVE_EVERY.total_seconds()


def looks(stage: Stage) -> int:
    """How many looks at the class since they were last counted."""
    found = sum(call.verb == "resolve" for call in stage.seam.calls)
    stage.seam.calls.clear()
    return found


def selecting(**spec: Any) -> dict[str, Any]:
    """The class, with something else in its spec."""
    found = node_class()
    return {**found, "spec": {**found["spec"], **spec}}


def test_while_nothing_happens_a_class_is_looked_at_every_few_minutes() -> None:
    stage = Stage()
    stage.settle()
    stage.run(4 * REFRESH)
    assert looks(stage) in (3, 4)


def test_how_seldom_is_a_setting() -> None:
    stage = Stage(settings=replace(SETTINGS, refresh=timedelta(minutes=20)))
    stage.settle()
    stage.run(60 * MINUTE)
    assert looks(stage) in (2, 3)


def test_a_pod_that_asks_for_a_machine_has_it_looked_at_at_once() -> None:
    stage = Stage()
    stage.settle()
    stage.run(2 * MINUTE)
    assert looks(stage) == 0
    stage.scale(2)
    stage.run(2)
    assert looks(stage) == 1


def test_a_pod_that_has_no_place_anywhere_has_it_looked_at_once() -> None:
    """It may wait for ever."""
    stage = Stage(pool={"limits": {"nodes": "1"}})
    stage.settle()
    stage.run(2 * MINUTE)
    assert looks(stage) == 0
    stage.scale(2)
    stage.run(2)
    assert looks(stage) == 1
    stage.run(4 * REFRESH)
    assert looks(stage) in (3, 4)


def test_while_a_machine_goes_it_is_looked_at_every_minute() -> None:
    stage = Stage(disruption=EAGER)
    stage.settle()
    stage.seam.fails["cloud", "terminate"] = Unavailable("not now")
    stage.scale(0)
    stage.run(10 * MINUTE)
    assert looks(stage) in (10, 11)


def test_a_class_that_is_not_ready_is_looked_at_every_minute() -> None:
    stage = Stage(replicas=0)
    stage.world.apply(selecting(subnetSelectorTerms=[{"id": "subnet-0123456789abcdef0"}]))
    stage.run(30)
    stage.seam.calls.clear()
    stage.run(10 * MINUTE)
    assert looks(stage) in (10, 11)


def test_a_class_that_was_changed_is_looked_at_at_once() -> None:
    stage = Stage()
    stage.settle()
    stage.world.apply(selecting(tags={"team": "x"}))
    stage.run(2)
    assert looks(stage) == 1


def test_a_class_with_capacity_reservations_is_looked_at_every_minute() -> None:
    """They fill and end by themselves."""
    stage = Stage(replicas=0)
    stage.world.apply(selecting(capacityReservationSelectorTerms=[{"tags": {"team": "x"}}]))
    stage.run(30)
    stage.seam.calls.clear()
    stage.run(10 * MINUTE)
    assert looks(stage) in (10, 11)


# --- status checks ------------------------------------------------------------------------------------------------
class Examined(SandboxCloud):
    """Knows of which instances it was asked what ails them."""

    def __init__(self, world: World) -> None:
        super().__init__(world.ec2, world.clock, world.faults, "sandbox")
        self.asked = list[set[str] | None]()

    def impairments(self, of: Sequence[str] | None = None) -> Sequence[Impairment]:
        self.asked.append(None if of is None else set(of))
        return super().impairments(of)


@pytest.mark.parametrize("replicas", [0, 2])
def test_what_ails_instances_is_asked_of_those_that_have_claims(replicas: int) -> None:
    world = World(seed=7)
    cloud = Examined(world)
    play = Play(world, cloud)
    for manifest in (node_class(), node_pool("general", {}), deployment("web", {"replicas": replicas, "cpu": "3"})):
        world.apply(manifest)
    play.live(minutes=3)
    ours = {id_ for id_, machine in world.ec2.instances.items() if machine.state == "running"}
    assert cloud.asked[-1] == ours
    assert bool(ours) == bool(replicas)


class Refused(Faults):
    """Refuses one call of AWS, as long as it is named."""

    def __init__(self, verb: str) -> None:
        self.verb = verb

    def before(self, call: Call) -> None:
        if (call.port, call.verb) == ("cloud", self.verb):
            raise Forbidden("ssm:GetParameter: AccessDenied: no")


@pytest.mark.parametrize(
    ("verb", "type_", "reason"),
    [
        ("resolve", "AMIsReady", "ReadFailed"),
        ("cluster", "SubnetsReady", "ReadFailed"),
        ("region", "ValidationSucceeded", "ReadFailed"),
        ("dry_run", "ValidationSucceeded", "ValidateClassFailed"),
    ],
)
def test_a_condition_that_waits_for_a_failing_call_names_the_failure(verb: str, type_: str, reason: str) -> None:
    faults = Refused(verb)
    world = World(seed=1, faults=faults)
    world.apply(node_class())
    world.apply(node_pool("general", {}))
    world.apply(deployment("web", {}))
    play = Play(world)
    play.live(minutes=2)
    (found,) = (one for one in world.objects("EC2NodeClass")[0]["status"]["conditions"] if one["type"] == type_)
    assert (found["status"], found["reason"]) == ("Unknown", reason)
    assert found["message"].endswith("is forbidden: ssm:GetParameter: AccessDenied: no")
    told = {one["message"] for one in world.objects("Event") if one["reason"] == "FailedScheduling"}
    assert told
    assert all(text.count("AccessDenied") == 1 for text in told)
    faults.verb = ""
    play.live(minutes=3)
    assert {one["status"] for one in world.objects("EC2NodeClass")[0]["status"]["conditions"]} == {"True"}
