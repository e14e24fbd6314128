"""The limits of a NodePool hold when NodeClaims are launched, whatever created them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from api import labels
from reconciler.lifecycle.launch import BEYOND_LIMITS
from reconciler.model import kinds
from reconciler.model.plan import CreateNodeClaim, DeleteObject
from tests.unit.lifecycle.world import World, node_claim, node_class, node_pool, running


def limited(world: World, **limits: Any) -> World:
    pool = world.get(kinds.NODE_POOL, "default")
    world.put(replace(pool, spec=replace(pool.spec, limits=limits)))
    return world


def asked(number: int, **limits: Any) -> World:
    """So many claims of 2 cpu each, made by hand, in a pool with limits."""
    world = limited(World(node_class(), node_pool()), **limits)
    world.settle()
    for index in range(number):
        world.put(node_claim(f"c{index:02}"))
    world.deeds.clear()
    world.settle()
    return world


def left(world: World) -> list[str]:
    return sorted(ref.name for ref in world.objects if ref.kind == "NodeClaim")


def test_no_more_is_launched_than_limits_allow_and_the_rest_is_deleted_with_a_reason() -> None:
    world = asked(50, cpu="4")
    assert len(world.instances) == 2
    assert left(world) == ["c00", "c01"]
    reasons = {deed.reason for deed in world.done(DeleteObject)}
    assert {reason.code for reason in reasons} == {BEYOND_LIMITS}
    assert all("default (cpu: 4)" in reason.text for reason in reasons)


def test_the_end_of_a_claim_beyond_limits_is_an_event() -> None:
    world = limited(World(node_class(), node_pool(), node_claim("a")), cpu="1")
    events = [event for _ in range(4) for event in _obeyed(world)]
    assert {(event.reason, event.type) for event in events} == {(BEYOND_LIMITS, "Warning")}
    assert not world.instances


def _obeyed(world: World) -> list[Any]:
    plan = world.decide()
    world.obey(plan)
    return [event for event in plan.events if event.ref.kind == "NodeClaim"]


def test_nodes_that_are_there_count() -> None:
    world = limited(running(node_claim("a")), cpu="4")
    for name in ("b", "c"):
        world.put(node_claim(name))
    world.settle()
    assert left(world) == ["a", "b"]


def test_calls_under_way_count() -> None:
    """One claim comes after the call of the first was written down, and before it was made."""
    world = limited(World(node_class(), node_pool()), cpu="2")
    world.settle()
    world.put(node_claim("a"))
    world.obey(world.decide())
    world.put(node_claim("b"))
    world.settle()
    assert left(world) == ["a"]
    assert len(world.instances) == 1


def test_calls_of_one_look_leave_the_rest_to_each_other() -> None:
    world = limited(World(node_class(), node_pool()), cpu="4")
    world.settle()
    for name in ("a", "b", "c"):
        world.put(node_claim(name, resources={"requests": {"cpu": "1", "memory": f"{ord(name)}Mi"}}))
    world.settle()
    assert left(world) == ["a", "b"]
    assert len(world.instances) == 2


def test_limits_without_a_number_of_the_resource_or_of_other_pools_do_not_count() -> None:
    assert len(asked(3, **{"example.com/gpu": "0"}).instances) == 3
    assert len(asked(3).instances) == 3


def test_the_number_of_nodes_is_a_limit() -> None:
    assert len(asked(3, nodes="2").instances) == 2


def test_malformed_limits_launch_nothing_and_say_why() -> None:
    world = asked(2, cpu="many")
    assert not world.instances
    assert left(world) == ["c00", "c01"]
    assert any("many" in refusal.reason.text for refusal in world.decide().refusals)


def test_a_replacement_is_launched_beside_the_node_that_it_replaces() -> None:
    world = limited(running(node_claim("a")), cpu="2")
    claim = world.claim("a")
    notes = {**claim.metadata.annotations, labels.COMMAND: "{}"}
    world.put(replace(claim, metadata=replace(claim.metadata, annotations=notes)))
    world.put(node_claim("b"))
    world.settle()
    assert left(world) == ["a", "b"]
    assert len(world.instances) == 2


def test_commands_that_others_write_on_every_node_at_most_double_the_limits() -> None:
    world = limited(World(node_class(), node_pool()), cpu="4")
    world.settle()
    for index in range(20):
        world.put(node_claim(f"c{index:02}"))
        world.settle()
        for name in left(world):
            claim = world.claim(name)
            notes = {**claim.metadata.annotations, labels.COMMAND: "{}"}
            world.put(replace(claim, metadata=replace(claim.metadata, annotations=notes)))
    assert len(world.instances) == 4
    assert not world.done(CreateNodeClaim)
