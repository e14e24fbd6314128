"""Drifted members of static pools: how many are replaced at once, and what makes them wait."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from kerf.disruption.command import Failure
from kerf.disruption.disrupt import disrupt
from kerf.model.annotations import text_of
from kerf.model.plan import Plan
from kerf.model.settings import FeatureGates, Settings
from kerf.provisioning.static import keep_replicas
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaimStatus
from tests.unit.disruption import worlds as w

ON = Settings("test", gates=FeatureGates(static_capacity=True))
HASHES = {labels.NODEPOOL_HASH: "new", labels.NODEPOOL_HASH_VERSION: "v3"}


def pool(replicas: int, limit: int | None = None, name: str = "default", nodes: str = "100%") -> Any:
    made = w.pool(name, replicas=replicas, budgets=[{"nodes": nodes}], annotations=HASHES)
    limits = {} if limit is None else {"nodes": str(limit)}
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, limits=limits))


def drifted(count: int, pool_name: str = "default", **more: Any) -> list[Any]:
    """So many, the first of which has drifted longest."""
    found: list[Any] = []
    for i in range(count):
        since = w.NOW - timedelta(minutes=30 - i)
        one = w.claim(f"{pool_name[0]}{i}", pool_name=pool_name, drifted=since, **more)
        found += [one, w.node(one), w.pod(f"{pool_name}-{i}", one.name)]
    return found


def look(*objects: Any, settings: Settings = ON, **facts: Any) -> Plan:
    return disrupt(w.snapshot(objects, settings=settings, **facts), w.never)


def started(plan: Plan) -> list[str]:
    return [action.lane.split("/")[1] for action in plan.actions if action.key.startswith("StartCommand")]


def test_without_the_gate_nothing_is_replaced() -> None:
    assert started(look(pool(1), *drifted(1), settings=Settings("test"))) == []


def test_one_that_is_protected_or_failed_a_moment_ago_waits_and_another_is_taken() -> None:
    tired = {labels.COMMAND_FAILED: text_of(Failure(at=w.NOW))}
    one = w.claim("a", drifted=w.NOW - w.HOUR, annotations=tired)
    two = w.claim("b", drifted=w.NOW - w.HOUR)
    three = w.claim("c", drifted=w.NOW - w.HOUR)
    held = w.pod("p", "b", annotations={labels.DO_NOT_DISRUPT: "true"})
    world = [x for claim in (one, two, three) for x in (claim, w.node(claim))]
    assert started(look(pool(3, nodes="1"), *world, held)) == ["c"]


def test_a_member_and_its_successor_from_the_command_to_the_end() -> None:
    """Never more than the limit, and never fewer than wanted."""
    world = w.World.of(pool(2, 3), *drifted(2), facts={"settings": ON}, ask=w.never)
    world.tick(1)
    assert len(started(world.plan())) == 0
    for _ in range(4):
        world.tick()
    (successor,) = world.replacements
    assert world.tainted("d0")
    assert not world.tainted("d1")
    world.join(successor)
    world.tick()
    assert world.claim("d0").metadata.deleting
    assert not world.claim("d1").metadata.deleting
    assert not world.claim(successor).metadata.deleting


def test_successors_and_new_members_share_the_limit() -> None:
    """Two drifted ones of five that are wanted, five allowed: two are replaced, and one is made beside that."""
    world = w.World.of(pool(5, 5), *drifted(2), facts={"settings": ON}, ask=w.never)
    before, plan = world.snapshot(), world.plan()
    assert started(plan) == ["d0", "d1"]
    assert len(keep_replicas(before).actions) == 3
    assert len(keep_replicas(before, replaced=started(plan)).actions) == 1
    world.perform(action for action in plan.actions if action.key.startswith("StartCommand"))
    assert len(keep_replicas(world.snapshot()).actions) == 1
    world.perform(keep_replicas(world.snapshot()).actions)
    assert keep_replicas(world.snapshot()).actions == ()


def test_after_members_that_did_not_join_there_is_one_at_a_time() -> None:
    """While one has yet to join there is none."""
    assert len(started(look(w.unjoined(pool(4), 1), *drifted(4)))) == 4
    plan = look(w.unjoined(pool(4), 2), *drifted(4))
    assert len(started(plan)) == 1
    texts = [one.reason.text for one in plan.refusals if one.reason.code == "NodesNotRegistered"]
    assert texts == ["the latest nodes of its NodePool have not joined: Kerf launches one at a time until one does"] * 3
    coming = msgspec.structs.replace(w.claim("new"), status=NodeClaimStatus())
    assert started(look(w.unjoined(pool(5), 2), *drifted(4), coming)) == []
