"""What is told of each disruption: its reason and the pods that move, in the event and for the log and the metrics."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kerf.disruption.command import command_of
from kerf.disruption.disrupt import disrupt
from kerf.model.plan import STANDING_SECONDS, DeleteObject, Event, Plan
from kerf.model.settings import FeatureGates, Settings
from kerf_api import labels
from tests.unit.disruption.worlds import (
    HOUR,
    LOST,
    NOW,
    World,
    claim,
    condition,
    elsewhere,
    never,
    node,
    pod,
    pool,
    snapshot,
)

PODS = [pod(f"web-{n:02}", "a") for n in range(12)]


def ended(plan: Plan) -> DeleteObject:
    (found,) = [action for action in plan.actions if isinstance(action, DeleteObject)]
    return found


def said(plan: Plan) -> list[tuple[str, str]]:
    return [(e.ref.kind, e.message) for e in plan.events if e.reason == "DisruptionTerminating"]


def finished(world: World) -> Plan:
    """The plan that deletes the claim."""
    for _ in range(10):
        plan = world.tick()
        if any(isinstance(action, DeleteObject) for action in plan.actions):
            return plan
    raise AssertionError("nothing goes")


def test_a_command_says_its_reason_more_of_it_its_id_and_which_pods_move() -> None:
    a = claim("a", drifted=NOW - HOUR)
    changed = {labels.NODEPOOL_HASH: "new", labels.NODEPOOL_HASH_VERSION: "v3"}
    world = World.of(
        pool(annotations=changed), a, node(a), *PODS, pod("log", "a", owner="DaemonSet"), ask=elsewhere("b")
    )
    world.tick()
    command = command_of(world.claim("a").metadata.annotations)
    assert command is not None
    plan = finished(world)
    moving = f"{', '.join(f'shop/web-{n:02}' for n in range(10))} and 2 more"
    words = f"Disrupting the node: Drifted (NodePoolDrifted: {LOST}), command {command.id}; pods that move: {moving}"
    assert said(plan) == [("Node", words), ("NodeClaim", words)]
    assert (ended(plan).moved, ended(plan).policy) == (tuple(p.key for p in PODS), "")


@pytest.mark.parametrize("policy", ["WhenEmpty", "WhenEmptyOrUnderutilized"])
def test_emptiness_names_its_policy_and_that_no_pods_move(policy: str) -> None:
    a = claim("a")
    plan = finished(World.of(pool(consolidationPolicy=policy), a, node(a)))
    assert said(plan)[0][1].startswith("Disrupting the node: Empty (no reschedulable pods), command ")
    assert said(plan)[0][1].endswith("; no pods move")
    assert (ended(plan).moved, ended(plan).policy) == ((), policy)


def forced(*objects: Any, **gates: bool) -> Plan:
    return disrupt(snapshot(objects, settings=Settings("test", gates=FeatureGates(**gates))), never)


def test_expiration_says_so_and_which_pods_move() -> None:
    a = claim("a", since=NOW - 2 * HOUR, expireAfter="1h")
    plan = forced(pool(), a, node(a), pod("web", "a"))
    words = "Disrupting the node: Expired: older than its expireAfter of 1h; pods that move: shop/web"
    assert said(plan) == [("Node", words), ("NodeClaim", words)]
    assert ended(plan).moved == ("shop/web",)


def test_surplus_says_so_and_which_pods_move() -> None:
    a, b = claim("a"), claim("b")
    plan = forced(pool(replicas=1), a, node(a), b, node(b), pod("web", "a"), pod("x", "b"), static_capacity=True)
    words = "Disrupting the node: ScaledDown: NodePool default has more than 1 replica; pods that move: shop/web"
    assert said(plan) == [("Node", words), ("NodeClaim", words)]
    assert ended(plan).moved == ("shop/web",)


def test_a_repair_counts_the_pods_that_move() -> None:
    a = claim("a")
    sick = condition("Ready", NOW - HOUR, status="False")
    plan = forced(pool(), a, node(a, conditions=[sick]), pod("web", "a"), node_repair=True)
    assert ended(plan).moved == ("shop/web",)


def test_what_blocks_is_told_as_something_that_stands() -> None:
    a = claim("a")
    held = pod("web", "a", annotations={labels.DO_NOT_DISRUPT: "true"})
    events = [e for e in forced(pool(), a, node(a), held).events if e.reason == "DisruptionBlocked"]
    assert {stands(event) for event in events} == {True}
    drifted = claim("a", drifted=NOW - HOUR)
    closed = forced(pool(budgets=[{"nodes": "0"}]), drifted, node(drifted))
    assert {stands(e) for e in closed.events if e.ref.kind == "NodePool"} == {True}


def test_another_blocker_is_told_without_waiting_for_the_window_of_the_one_before() -> None:
    a = claim("a")
    marked = {labels.DO_NOT_DISRUPT: "true"}
    by_pod = forced(pool(), a, node(a), pod("web", "a", annotations=marked))
    by_node = forced(pool(), a, node(a, annotations=marked), pod("web", "a"))
    told = [{e.dedupe for e in plan.events if e.reason == "DisruptionBlocked"} for plan in (by_pod, by_node)]
    assert told == [{"PodDoNotDisrupt"}, {"NodeDoNotDisrupt"}]


def stands(event: Event) -> bool:
    return timedelta(seconds=event.same_seconds) == timedelta(seconds=STANDING_SECONDS)
