"""Node repair: what is sick for too long goes, unless too much is. Numbers are those of the disruption catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.disrupt import disrupt
from kerf.disruption.forced.repair import repair
from kerf.model.memory import Memory
from kerf.model.plan import DeleteObject, PatchObject, Plan, Source
from kerf.model.settings import FeatureGates, Settings
from kerf_api import labels
from tests.unit.disruption.worlds import (
    HOUR,
    NOW,
    World,
    claim,
    condition,
    never,
    node,
    pdb,
    pod,
    pool,
    snapshot,
    torn,
)

MINUTE = timedelta(minutes=1)
OPEN = Settings("test", gates=FeatureGates(node_repair=True))


def ill(name: str, type_: str = "Ready", status: str = "False", since: datetime = NOW - HOUR, **more: Any) -> list[Any]:
    """A claim and its node, whose condition says this."""
    own = claim(name, **more)
    return [own, node(own, conditions=[condition(type_, since, status=status)])]


def well(*names: str, **more: Any) -> list[Any]:
    return [value for name in names for own in [claim(name, **more)] for value in (own, node(own))]


def looked(objects: Iterable[Any], settings: Settings = OPEN, **facts: Any) -> Plan:
    return repair(Memory().turn(snapshot([pool(), *objects], settings=settings, **facts)))


def _without_pool(own: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in own.items() if key != labels.NODEPOOL}


def gone(plan: Plan) -> list[str]:
    return [action.ref.name for action in plan.actions if isinstance(action, DeleteObject)]


# --- 128 --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("type_", "status", "minutes"),
    [
        ("Ready", "False", 30),
        ("Ready", "Unknown", 30),
        ("AcceleratedHardwareReady", "False", 10),
        ("StorageReady", "False", 30),
        ("NetworkingReady", "False", 30),
        ("KernelReady", "False", 30),
        ("ContainerRuntimeReady", "False", 30),
    ],
)
def test_128_each_policy_bears_its_condition_for_so_long(type_: str, status: str, minutes: int) -> None:
    young = looked(ill("a", type_, status, NOW - minutes * MINUTE + timedelta(seconds=1)))
    assert gone(young) == []
    assert young.next_due == NOW + timedelta(seconds=1)
    old = looked(ill("a", type_, status, NOW - minutes * MINUTE))
    assert gone(old) == ["a"]
    (deletion,) = old.actions
    assert isinstance(deletion, DeleteObject)
    assert (deletion.reason.code, deletion.condition, deletion.uid) == ("Unhealthy", type_, "uid-a")
    assert type_ in deletion.reason.text


@pytest.mark.parametrize(
    ("type_", "status"),
    [("MemoryPressure", "True"), ("AcceleratedHardwareReady", "Unknown"), ("Ready", "True"), ("KernelReady", "True")],
)
def test_128_another_condition_or_status_is_no_sickness(type_: str, status: str) -> None:
    plan = looked(ill("a", type_, status, NOW - 99 * HOUR))
    assert plan.actions == ()
    assert plan.next_due is None


def test_128_of_two_conditions_the_one_whose_patience_ends_first_counts() -> None:
    own = claim("a")
    rows = [
        condition("KernelReady", NOW - 29 * MINUTE, status="False"),
        condition("AcceleratedHardwareReady", NOW - 5 * MINUTE, status="False"),
    ]
    assert looked([own, node(own, conditions=rows)]).next_due == NOW + MINUTE
    rows[0]["lastTransitionTime"] = rows[1]["lastTransitionTime"]
    assert looked([own, node(own, conditions=rows)]).next_due == NOW + 5 * MINUTE


# --- 129 --------------------------------------------------------------------------------------------------------
def test_129_neither_budgets_nor_protection_nor_pods_hold_it() -> None:
    own = claim("a")
    objects = [
        pool(budgets=[{"nodes": "0"}]),
        own,
        node(own, annotations={labels.DO_NOT_DISRUPT: "true"}, ready=False),
        pod("p", "a", annotations={labels.DO_NOT_DISRUPT: "true"}),
        pdb("held"),
    ]
    plan = disrupt(snapshot(objects, settings=OPEN), never)
    assert gone(plan) == ["a"]
    assert {event.reason for event in plan.events if event.ref.name in ("a", "node-a")} >= {"NodeUnhealthy"}


@pytest.mark.parametrize(
    ("known", "written"),
    [
        (None, True),
        (NOW + HOUR, True),
        (NOW - MINUTE, False),
        (NOW, False),
    ],
    ids=["none", "later", "past", "now"],
)
def test_129_a_drain_gets_no_more_time_and_a_deadline_that_is_past_stays(known: datetime | None, written: bool) -> None:
    annotations = {} if known is None else {labels.TERMINATION_TIMESTAMP: known.isoformat()}
    own, sick = ill("a", annotations=annotations)
    going = replace(own, metadata=replace(own.metadata, deletion_timestamp=NOW - MINUTE))
    plan = looked([going, sick])
    patches = [action.patch for action in plan.actions if isinstance(action, PatchObject)]
    wanted = {"metadata": {"annotations": {labels.TERMINATION_TIMESTAMP: "2026-03-04T12:00:00Z"}}}
    assert patches == ([wanted] if written else [])
    assert gone(plan) == []


def test_a_claim_has_no_deadline_before_its_deletion_shows() -> None:
    """A crash between the two leaves a node that recovers with an ordinary deletion, or none."""
    world = World.of(pool(), *ill("a"), facts={"settings": OPEN})
    world.tick()
    assert labels.TERMINATION_TIMESTAMP not in world.objects["nodeclaim/a"].metadata.annotations
    assert world.objects["nodeclaim/a"].metadata.deleting
    world.tick()
    assert world.objects["nodeclaim/a"].metadata.annotations[labels.TERMINATION_TIMESTAMP] == "2026-03-04T12:00:00Z"
    before = len(world.done)
    world.tick()
    assert world.done[before:] == []


# --- 130 --------------------------------------------------------------------------------------------------------
def fleet(nodes: int, sick: int, pool_name: str = "default", since: datetime = NOW - HOUR) -> list[Any]:
    objects = [v for i in range(sick) for v in ill(f"{pool_name}-{i}", since=since, pool_name=pool_name)]
    return objects + well(*(f"{pool_name}-{i}" for i in range(sick, nodes)), pool_name=pool_name)


@pytest.mark.parametrize(
    ("nodes", "sick", "repaired"),
    [(10, 2, 2), (10, 3, 0), (3, 1, 1), (3, 2, 0), (1, 1, 1), (11, 3, 3), (5, 2, 0), (5, 1, 1)],
)
def test_130_more_than_a_fifth_is_not_repaired(nodes: int, sick: int, repaired: int) -> None:
    plan = looked(fleet(nodes, sick))
    assert len(gone(plan)) == repaired
    blocked = {(e.ref.kind, e.ref.name) for e in plan.events if e.reason == "NodeRepairBlocked"}
    names = [f"default-{i}" for i in range(sick)] if not repaired else []
    everybody = {("NodeClaim", n) for n in names} | {("Node", f"node-{n}") for n in names}
    assert blocked == everybody | ({("NodePool", "default")} if names else set())
    assert [r.reason.code for r in plan.refusals] == ["NodeRepairBlocked"] * len(names)
    assert all(f"{sick} of {nodes} nodes of NodePool default" in r.reason.text for r in plan.refusals)


def test_130_nodes_count_as_unhealthy_before_their_toleration_is_over() -> None:
    objects = fleet(7, 1) + [v for n in ("x", "y") for v in ill(n, since=NOW - MINUTE)]
    assert gone(looked(objects)) == []


def test_130_each_pool_is_judged_by_itself() -> None:
    objects = [*fleet(10, 1), pool("other"), *fleet(2, 2, "other")]
    assert gone(looked(objects)) == ["default-0"]


def test_130_a_claim_without_a_pool_is_judged_by_the_whole_cluster() -> None:
    def orphan(name: str) -> list[Any]:
        return [replace(v, metadata=replace(v.metadata, labels=_without_pool(v.metadata.labels))) for v in ill(name)]

    assert gone(looked([*orphan("a"), *well("c", "d", "e")])) == ["a"]
    assert gone(looked([*orphan("a"), *orphan("b"), *well("c", "d", "e")])) == []
    assert gone(looked([*orphan("a"), *orphan("b"), *well(*"cdefgh")])) == ["a", "b"]


# --- whose ------------------------------------------------------------------------------------------------------
def test_with_its_gate_closed_nothing_is_repaired() -> None:
    plan = looked(ill("a"), Settings("test"))
    assert plan.actions == ()
    assert plan.next_due is None


def test_foreign_claims_and_what_can_be_read_only_in_part_are_left_alone() -> None:
    foreign = ill("f", nodeClassRef={"group": "other.io", "kind": "Thing", "name": "x"})
    one, two = ill("one"), ill("two")
    bare = node(claim("bare"), ready=False)
    objects = [*foreign, torn(one[0]), one[1], two[0], torn(two[1]), bare, *well(*"abcdefghijklmnopqrst")]
    assert gone(looked(objects)) == []


def test_nothing_is_repaired_on_old_news_of_nodes() -> None:
    (deletion,) = looked(ill("a")).actions
    assert {Source.NODES, Source.NODE_CLAIMS} <= deletion.sources


def test_a_claim_that_goes_anyway_is_deleted_once() -> None:
    objects = [pool(), *ill("a", expireAfter="30m")]
    assert gone(disrupt(snapshot(objects, settings=OPEN), never)) == ["a"]


def test_what_is_repaired_uses_up_budget_at_once() -> None:
    """A sick node and an empty one under a budget of one: the empty one stays."""
    budget = pool(budgets=[{"nodes": "1"}], consolidateAfter="0s")
    objects = [budget, *ill("a"), *well("b", "c", "d", "e"), pod("p", "a")]
    plan = disrupt(snapshot(objects, settings=OPEN), never)
    assert gone(plan) == ["a"]
    assert not [action for action in plan.actions if isinstance(action, PatchObject) and action.verb == "StartCommand"]
