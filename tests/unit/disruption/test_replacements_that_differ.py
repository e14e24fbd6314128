"""A replacement that came up other than planned: no pod is moved there, and Kerf does not buy it again and again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.command import Failure, failure_of
from kerf.model.memory import Memory
from kerf.scheduling.mismatch.replacements import MISFITS, Misfit
from kerf_api import labels
from kerf_api.v1.meta import Taint
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.disruption.test_commands import HOUR, MINUTE, deletions, drifted_world
from tests.unit.disruption.worlds import NOW, World, pod

FOREIGN = Taint(key="corp.example.com/agent", value="missing", effect="NoSchedule")


def joined(**node: Any) -> tuple[World, str]:
    """A drifted node, and its replacement that has joined with another spec or status than planned."""
    world = drifted_world()
    world.settle()
    (name,) = world.replacements
    world.join(name)
    its = world.claim(name)
    own = replace(its, status=replace(its.status, allocatable={"cpu": "1930m", "memory": "6Gi", "pods": "29"}))
    world.add(replace(own, spec=replace(own.spec, resources=replace(own.spec.resources, requests={"cpu": "1800m"}))))
    world.edit(f"node/node-{name}", node)
    return world, name


def has(cpu: str) -> dict[str, Any]:
    return {"status": {"allocatable": {"cpu": cpu, "memory": "6Gi", "pods": "29"}}}


def tainted() -> dict[str, Any]:
    return {"spec": {"taints": [{"key": FOREIGN.key, "value": FOREIGN.value, "effect": FOREIGN.effect}]}}


def misfit(world: World, name: str) -> Misfit | None:
    turn = Memory().turn(world.snapshot())
    return turn.one(MISFITS, turn.noted, name)


def test_one_that_has_too_little_for_the_pods_ends_the_command() -> None:
    world, name = joined(**has("1500m"))
    plan = world.plan()
    assert deletions(plan) == []
    (why,) = [one.reason for one in plan.refusals if one.subject == "nodeclaim/a"]
    assert (why.code, why.text) == (
        "ReplacementDiffers",
        f"node node-{name} is other than planned: allocatable cpu is 1500m, expected 1930m",
    )
    world.settle()
    assert labels.COMMAND not in world.claim("a").metadata.annotations
    failure = failure_of(world.claim("a").metadata.annotations, world.now)
    assert failure is not None
    assert failure.template.startswith("new/")


@pytest.mark.parametrize("cpu", ["1800m", "1930m", "nonsense"])
def test_one_that_has_enough_or_cannot_be_judged_is_used(cpu: str) -> None:
    world, _ = joined(**has(cpu))
    assert [one.ref.name for one in deletions(world.plan())] == ["a"]


def test_a_taint_that_the_node_pool_does_not_declare_has_time_to_go() -> None:
    world, name = joined(**tainted())
    plan = world.plan()
    assert deletions(plan) == []
    assert plan.next_due == NOW + timedelta(minutes=4, seconds=50)
    world.edit(f"node/node-{name}", {"spec": {"taints": []}})
    assert [one.ref.name for one in deletions(world.plan())] == ["a"]


def test_a_taint_that_stays_ends_the_command() -> None:
    world, _ = joined(**tainted())
    world.now += 5 * MINUTE
    world.settle()
    assert labels.COMMAND not in world.claim("a").metadata.annotations
    assert not world.claim("a").metadata.deleting


def test_a_taint_that_the_pods_tolerate_is_none() -> None:
    world, _ = joined(**tainted())
    world.add(pod("web", "a", tolerations=[{"key": FOREIGN.key, "operator": "Exists"}]))
    assert [one.ref.name for one in deletions(world.plan())] == ["a"]


@pytest.mark.parametrize("unready", ["cordoned", "late"])
def test_what_says_nothing_of_the_plan_is_no_misfit(unready: str) -> None:
    world, name = joined(**has("1500m"))
    assert misfit(world, name) is not None
    if unready == "cordoned":
        world.edit(f"node/node-{name}", {"spec": {"unschedulable": True}})
    else:
        world.now += 11 * MINUTE
    assert misfit(world, name) is None


def test_a_second_one_of_the_same_template_is_followed_by_one_a_day() -> None:
    once, twice = (Failure(at=NOW, count=count, template="new/") for count in (1, 2))
    assert once.until == NOW + MINUTE
    assert twice.until == NOW + 24 * HOUR
    assert Failure(at=NOW, count=2).until == NOW + 2 * MINUTE


@pytest.mark.parametrize(("template", "blocked"), [("new/", True), ("old/", False)])
def test_another_template_is_tried_at_once(template: str, blocked: bool) -> None:
    world = drifted_world()
    failed = replace(
        world.claim("a").metadata,
        annotations={
            **world.claim("a").metadata.annotations,
            labels.COMMAND_FAILED: f'{{"at":"2026-03-04T11:00:00Z","count":2,"template":"{template}"}}',
        },
    )
    world.add(replace(world.claim("a"), metadata=failed))
    claims: list[NodeClaim] = [one for one in world.objects.values() if isinstance(one, NodeClaim)]
    assert len(claims) == 1
    refusals = [one.reason for one in world.plan().refusals if one.reason.code == "BackingOff"]
    assert bool(refusals) is blocked
    if blocked:
        assert refusals[0].text.startswith("its replacement came up other than planned 2 times; next try at ")
