"""Commands step by step: start, taint, replacements, deletion; roll back; a crash between any two actions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from kerf.disruption.command import Command, Failure, command_of, failure_of
from kerf.model.annotations import text_of
from kerf.model.plan import CreateNodeClaim, DeleteObject, Plan, Source
from kerf_api import labels
from tests.unit.disruption.worlds import (
    NOW,
    World,
    claim,
    node,
    nowhere,
    on_new_nodes,
    pdb,
    pod,
    pool,
    torn,
)

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def empty_world() -> World:
    a = claim("a")
    return World.of(pool(), a, node(a), pod("log", "a", owner="DaemonSet"))


def drifted_world() -> World:
    a = claim("a", drifted=NOW - 5 * MINUTE, consolidatable=False)
    hashes = {labels.NODEPOOL_HASH: "new", labels.NODEPOOL_HASH_VERSION: "v3"}
    own = pool(annotations=hashes, consolidateAfter="Never")
    return World.of(own, a, node(a), pod("web", "a"), ask=on_new_nodes("m5.large"))


def deletions(plan: Plan) -> list[DeleteObject]:
    return [a for a in plan.actions if isinstance(a, DeleteObject)]


def test_an_empty_node_is_claimed_tainted_told_and_then_deleted() -> None:
    world = empty_world()
    world.tick()
    assert labels.COMMAND in world.claim("a").metadata.annotations
    assert not world.tainted("a")
    world.tick()
    assert world.tainted("a")
    assert world.claim("a").condition("DisruptionReason").reason == "Empty"  # type: ignore[union-attr]
    plan = world.tick()
    (deletion,) = deletions(plan)
    assert deletion.node_name == "node-a"
    assert deletion.expected_pods == frozenset({"pod-log"})
    assert deletion.sources == {Source.PODS, Source.PDBS, Source.NODES, Source.NODE_CLAIMS, Source.NODE_POOLS}
    assert {(e.ref.kind, e.reason) for e in plan.events} >= {
        ("Node", "DisruptionTerminating"),
        ("NodeClaim", "DisruptionTerminating"),
    }
    assert world.plan().actions == ()


def test_replacements_are_created_after_the_taint_and_awaited_before_the_deletion() -> None:
    world = drifted_world()
    world.tick()
    assert world.replacements == []
    world.tick()
    assert world.tainted("a")
    assert world.replacements == []
    world.tick()
    (name,) = world.replacements
    assert world.claim(name).metadata.annotations[labels.REPLACES] == "a"
    world.settle()
    command = command_of(world.claim("a").metadata.annotations)
    assert command is not None
    assert command.created
    assert command.claims == ()
    waiting = world.plan()
    assert deletions(waiting) == []
    assert {e.reason for e in waiting.events} == {"DisruptionLaunching", "DisruptionWaitingReadiness"}
    assert waiting.next_due == NOW + 10 * MINUTE
    world.join(name)
    assert [d.ref.name for d in deletions(world.plan())] == ["a"]


@pytest.mark.parametrize("crash_at", range(12))
@pytest.mark.parametrize("kind", ["empty", "drifted"])
def test_a_crash_between_any_two_actions_leaves_a_world_that_goes_on(kind: str, crash_at: int) -> None:
    world = empty_world() if kind == "empty" else drifted_world()
    left = crash_at
    for _ in range(20):
        plan = world.plan()
        if left < len(plan.actions):
            world.perform(plan.actions[:left])
            break
        world.perform(plan.actions)
        left -= len(plan.actions)
        _join_all(world)
    for _ in range(20):
        world.tick()
        _join_all(world)
    assert world.claim("a").metadata.deleting
    assert len(world.replacements) == (0 if kind == "empty" else 1)


def _join_all(world: World) -> None:
    for name in world.replacements:
        if not world.claim(name).is_true("Initialized"):
            world.join(name)


def test_a_pod_that_came_to_an_empty_node_rolls_the_command_back() -> None:
    world = empty_world()
    world.tick()
    world.tick()
    world.add(pod("late", "a"))
    world.settle()
    assert not world.claim("a").metadata.deleting
    assert not world.tainted("a")
    assert world.claim("a").condition("DisruptionReason") is None
    assert labels.COMMAND not in world.claim("a").metadata.annotations
    assert failure_of(world.claim("a").metadata.annotations, world.now) is None


def test_a_pod_that_tolerates_the_taint_does_not_stop_a_command() -> None:
    world = drifted_world()
    world.settle()
    world.add(pod("job", "a", tolerations=[{"operator": "Exists"}]))
    world.join(world.replacements[0])
    (deletion,) = deletions(world.plan())
    assert deletion.expected_pods == frozenset({"pod-web", "pod-job"})


@pytest.mark.parametrize("blocker", ["pdb", "annotation", "node", "nominated"])
def test_a_new_blocker_rolls_back_before_anything_is_bought(blocker: str) -> None:
    world = empty_world() if blocker == "nominated" else drifted_world()
    world.tick()
    if blocker == "pdb":
        world.add(pdb("tight"))
    elif blocker == "annotation":
        world.edit("pod/shop/web", {"metadata": {"annotations": {labels.DO_NOT_DISRUPT: "true"}}})
    elif blocker == "node":
        world.edit("node/node-a", {"metadata": {"annotations": {labels.DO_NOT_DISRUPT: "true"}}})
    else:
        world.facts["nominated_until"] = {"a": NOW + MINUTE}
    world.settle()
    assert labels.COMMAND not in world.claim("a").metadata.annotations
    assert not world.tainted("a")
    assert world.replacements == []


def test_once_the_replacement_is_bought_a_disruption_budget_delays_only_the_drain() -> None:
    world = drifted_world()
    world.settle()
    world.add(pdb("tight"))
    world.join(world.replacements[0])
    assert [d.ref.name for d in deletions(world.plan())] == ["a"]


def failed(world: World) -> tuple[datetime, int]:
    """When the latest replacement of the node failed, and how many have."""
    found = failure_of(world.claim("a").metadata.annotations, world.now)
    assert found is not None
    return found.at, found.count


@pytest.mark.parametrize("how", ["gone", "deleting"])
def test_a_lost_replacement_rolls_back_and_the_candidate_is_left_alone_for_a_while(how: str) -> None:
    world = drifted_world()
    world.settle()
    (name,) = world.replacements
    if how == "gone":
        del world.objects[f"nodeclaim/{name}"]
    else:
        world.edit(f"nodeclaim/{name}", {"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}})
    world.settle()
    assert not world.tainted("a")
    assert failed(world) == (NOW, 1)
    world.objects.pop(f"nodeclaim/{name}", None)
    plan = world.plan()
    assert plan.actions == ()
    assert plan.next_due == NOW + MINUTE
    assert [r.reason.code for r in plan.refusals] == ["BackingOff"]
    world.now = NOW + MINUTE
    world.settle()
    assert len(world.replacements) == 1
    del world.objects[f"nodeclaim/{world.replacements[0]}"]
    world.settle()
    assert failed(world) == (NOW + MINUTE, 2)
    assert Failure(at=NOW, count=2).until == NOW + 2 * MINUTE
    assert Failure(at=NOW, count=9).until == NOW + 10 * MINUTE


def test_a_node_that_is_no_longer_drifted_is_spared() -> None:
    world = drifted_world()
    world.settle()
    world.edit("nodeclaim/a", {"metadata": {"annotations": {labels.NODEPOOL_HASH: "new"}}})
    world.settle()
    assert not world.tainted("a")
    assert world.claim("a").condition("Drifted") is None


def test_a_replacement_that_cannot_be_created_ends_the_command_after_a_minute() -> None:
    world = drifted_world()
    for _ in range(5):
        plan = world.plan()
        world.perform(a for a in plan.actions if not isinstance(a, CreateNodeClaim))
    assert world.tainted("a")
    world.now += timedelta(seconds=61)
    world.tick()
    assert labels.COMMAND not in world.claim("a").metadata.annotations


@pytest.mark.parametrize("lane", ["nodeclaim/a", "node/node-a", "nodepool/default"])
def test_what_can_be_read_only_in_part_any_more_ends_a_command_and_is_not_written(lane: str) -> None:
    world = drifted_world()
    world.settle()
    world.objects[lane] = torn(world.objects[lane])
    taints = world.objects["node/node-a"].spec.taints
    world.settle()
    assert labels.COMMAND not in world.claim("a").metadata.annotations
    assert world.tainted("a") == (lane != "nodepool/default")
    if lane == "node/node-a":
        assert world.objects[lane].spec.taints == taints, "taints that could not be read would be lost"


@pytest.mark.parametrize("started", [datetime.max.replace(tzinfo=UTC), NOW + HOUR])
def test_a_command_that_a_clock_ahead_started_is_rolled_back_and_holds_up_no_other(started: datetime) -> None:
    world = empty_world()
    world.settle()
    world = World.of(*world.objects.values(), pool("odd"))
    b = claim("b", pool_name="odd", consolidatable=False)
    endless = text_of(Command(id="x", reason="Empty", started=started))
    b = replace(b, metadata=replace(b.metadata, annotations={labels.COMMAND: endless}))
    c = claim("c")
    world.add(b, node(b), c, node(c))
    plan = world.tick()
    assert ("nodeclaim/b", "TimedOut") in [(r.subject, r.reason.code) for r in plan.refusals]
    assert "RollBackCommand nodeclaim/b" in world.done
    assert "StartCommand nodeclaim/c" in world.done


@pytest.mark.parametrize("text", ["", "{", '{"id": 3}'])
def test_a_command_that_cannot_be_read_is_removed(text: str) -> None:
    world = empty_world()
    world.edit("nodeclaim/a", {"metadata": {"annotations": {labels.COMMAND: text}}})
    world.tick(1)
    assert world.done == ["RemoveCommand nodeclaim/a"]
    assert labels.COMMAND not in world.claim("a").metadata.annotations


def test_a_taint_without_a_command_is_removed_unless_the_node_goes() -> None:
    a, b, c = claim("a", consolidatable=False), claim("b"), claim("c")
    taints = [{"key": "team", "effect": "NoSchedule"}, {"key": labels.DISRUPTED_TAINT, "effect": "NoSchedule"}]
    world = World.of(pool(consolidateAfter="Never"), a, node(a, taints=taints), b, node(b, taints=taints))
    world.edit("nodeclaim/b", {"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}})
    unready = node(c, taints=taints)
    world.add(c, replace(unready, metadata=replace(unready.metadata, labels={})))
    world.settle()
    assert [t.key for t in world.objects["node/node-a"].spec.taints] == ["team"]
    assert world.tainted("b")
    assert world.tainted("c")


def test_a_command_on_a_claim_that_is_gone_on_its_own_ends_quietly() -> None:
    world = drifted_world()
    world.settle()
    world.edit("nodeclaim/a", {"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}})
    assert world.plan().actions == ()


def test_pods_without_a_place_keep_a_drifted_node() -> None:
    world = drifted_world()
    world.ask = nowhere
    plan = world.tick()
    assert plan.actions == ()
    assert [r.reason.code for r in plan.refusals] == ["PodsWouldNotSchedule"]
    assert {e.reason for e in plan.events} == {"DisruptionBlocked"}
