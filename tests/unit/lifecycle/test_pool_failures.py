"""A NodePool whose launches come to nothing is left alone, longer each time, until one of its claims registers."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta
from itertools import pairwise

import pytest
from msgspec.structs import replace

from kerf.model import backoff, kinds
from kerf.model.aws.cloud import FleetError
from kerf.model.backoff import POOL_STEPS, PoolFailures
from kerf.model.plan import DeleteObject
from kerf_api import labels
from kerf_api.v1.nodepool import NodePool
from tests.unit.lifecycle.world import World, node_claim, prepared

QUOTA = FleetError("MaxFleetCountExceeded", "the fleet quota is used up", capacity=True)
SOLD_OUT = FleetError("InsufficientInstanceCapacity", "none left", "m5.large", "us-west-2a", capacity=True)


def pool(world: World) -> NodePool:
    found: NodePool = world.get(kinds.NODE_POOL, "default")
    return found


def remembered(world: World) -> PoolFailures | None:
    return backoff.remembered(pool(world), world.now)


def failing(world: World, *names: str, error: FleetError = QUOTA) -> None:
    """Claims for which the fleet call gives nothing."""
    world.given, world.errors = 0, (error,)
    for name in names:
        world.put(node_claim(name))
    world.settle()


def joins(world: World, name: str) -> None:
    world.given = None
    world.put(node_claim(name))
    world.settle()
    world.join(world.claim(name))
    world.settle()


def count(world: World) -> int:
    known = remembered(world)
    return known.count if known is not None else 0


def test_a_quota_that_is_used_up_counts_and_an_offering_that_is_sold_out_does_not() -> None:
    world = prepared()
    failing(world, "a", error=SOLD_OUT)
    assert count(world) == 0
    failing(world, "b")
    assert count(world) == 1
    assert world.get(kinds.NODE_CLAIM, "b") is None


def test_a_claim_that_never_registered_counts() -> None:
    world = prepared(node_claim("a"))
    world.settle()
    world.pass_time(15 * 60 + 1)
    world.settle()
    assert count(world) == 1


def test_claims_of_one_attempt_count_once_and_the_wait_begins_once() -> None:
    world = prepared()
    failing(world, "a", "b", "c")
    first = backoff.until(pool(world), world.now)
    world.pass_time(2)
    failing(world, "d")
    assert count(world) == 1
    assert backoff.until(pool(world), world.now) == first


def test_a_claim_counts_once_however_many_fail_beside_it_and_stay() -> None:
    world = prepared()
    world.given, world.errors = 0, (QUOTA,)
    for number in range(60):
        world.put(node_claim(f"c{number:02}"))

    def look() -> list[str]:
        plan = world.decide()
        world.obey(changed(plan, actions=tuple(a for a in plan.actions if not isinstance(a, DeleteObject))))
        return [action.key for action in plan.actions if action.lane == "nodepool/default"]

    for _ in range(5):
        look()
    assert count(world) == 1
    assert look() == [], "what is counted is not written again"
    world.pass_time(20)
    look()
    assert count(world) == 1
    failing(world, "late")
    assert count(world) == 2


def test_each_attempt_after_the_wait_doubles_it() -> None:
    world, waits = prepared(), list[timedelta]()
    for name in "abcdefgh":
        failing(world, name)
        until = backoff.until(pool(world), world.now)
        assert until is not None
        waits.append(until - world.now)
        world.pass_time(waits[-1].total_seconds() + 1)
    assert count(world) == 8
    assert all(POOL_STEPS.first <= wait <= POOL_STEPS.longest * 1.1 for wait in waits)
    assert all(1.7 < later / before < 2.3 for before, later in pairwise(waits[:5]))


def test_two_pools_do_not_wait_equally_long() -> None:
    known = PoolFailures(count=3, at=prepared().now)
    first = pool(prepared())
    other = replace(first, metadata=replace(first.metadata, uid="another"))
    assert backoff.ends(known, first) != backoff.ends(known, other)


def test_one_claim_that_registers_ends_it() -> None:
    world = prepared()
    failing(world, "a")
    world.pass_time(60)
    joins(world, "b")
    assert remembered(world) is None
    assert labels.BACK_OFF not in pool(world).metadata.annotations


def test_a_change_of_the_pool_ends_it() -> None:
    world = prepared()
    failing(world, "a")
    changed = pool(world)
    world.put(replace(changed, metadata=replace(changed.metadata, generation=2)))
    world.settle()
    assert remembered(world) is None


#: The second one has a time without a zone.
@pytest.mark.parametrize("text", ["{", '{"count":3,"at":"2026-01-01T12:00:00"}'])
def test_a_note_that_cannot_be_read_counts_as_none(text: str) -> None:
    world = prepared()
    known = pool(world)
    notes = {**known.metadata.annotations, labels.BACK_OFF: text}
    world.put(replace(known, metadata=replace(known.metadata, annotations=notes)))
    failing(world, "a")
    assert count(world) == 1
