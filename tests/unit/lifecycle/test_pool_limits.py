"""The limits of a NodePool hold when NodeClaims are launched, whatever created them."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.lifecycle.nodeclaim.launch import BEYOND_LIMITS
from kerf.model import kinds
from kerf.model.plan import CreateNodeClaim, DeleteObject, LaunchInstances
from kerf_api import labels
from kerf_api.resources import Resources
from tests.unit.lifecycle.world import NOW, World, large, node_claim, node_class, node_pool, running


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
    waiting = [name for name in left(world) if not world.claim(name).is_true("Launched")]
    assert {world.condition("Launched", name) for name in waiting} == {("Unknown", BEYOND_LIMITS)}


def test_a_replacement_waits_while_the_nodes_of_lowered_limits_take_more_than_double() -> None:
    """To delete it would have its command started again and again."""
    world = limited(running(*(node_claim(f"a{n}") for n in range(3))), cpu="2")
    for name in left(world):
        claim = world.claim(name)
        notes = {**claim.metadata.annotations, labels.COMMAND: "{}"}
        world.put(replace(claim, metadata=replace(claim.metadata, annotations=notes)))
    world.put(node_claim("b"))
    world.settle()
    assert not world.done(DeleteObject)
    for name in ("a0", "a1"):
        world.delete(kinds.ref(world.claim(name)))
    for _ in range(4):
        world.obey(world.decide())
    assert world.claim("b").is_true("Launched")


def test_instances_that_are_being_given_to_claims_count() -> None:
    world = limited(World(node_class(), node_pool()), cpu="4")
    world.settle()
    for index in range(30):
        world.put(node_claim(f"c{index:02}"))
        world.obey(world.decide())
    world.settle()
    assert len(world.instances) == 2


def test_a_call_counts_for_the_members_that_are_gone() -> None:
    """EC2 launches for them too."""
    world = limited(World(node_class(), node_pool()), cpu="8")
    world.settle()
    for index in range(4):
        world.put(node_claim(f"c{index}"))
    world.obey(world.decide())
    assert not world.calls
    for index in range(1, 4):
        del world.objects[kinds.ref(world.claim(f"c{index}"))]
    for index in range(4):
        world.put(node_claim(f"d{index}"))
    world.settle()
    assert len(world.instances) == 4


def test_a_call_that_is_under_way_counts_when_its_claims_are_gone() -> None:
    world = limited(World(node_class(), node_pool()), cpu="4")
    world.settle()
    for name in ("a", "b"):
        world.put(node_claim(name))
    world.obey(world.decide())
    call = world.decide()
    assert [type(action) for action in call.actions] == [LaunchInstances]
    for name in ("a", "b"):
        del world.objects[kinds.ref(world.claim(name))]
    world.put(node_claim("c"))
    world.facts["under_way"] = call.actions
    world.settle()
    assert not world.instances
    assert left(world) == []


def stripped(world: World, rounds: int) -> None:
    """Pairs of claims that launch, and then go without their finalizer's work."""
    for number in range(rounds):
        for name in (f"a{number}", f"b{number}"):
            world.put(node_claim(name))
        world.settle()
        for name in (f"a{number}", f"b{number}"):
            if world.get(kinds.NODE_CLAIM, name) is not None:
                del world.objects[kinds.ref(world.claim(name))]


def test_instances_count_when_their_claims_are_gone_and_others_wait_for_their_end() -> None:
    world = limited(World(node_class(), node_pool()), cpu="4")
    world.settle()
    stripped(world, 5)
    assert len(world.instances) == 2
    world.put(node_claim("c"))
    world.settle()
    assert world.condition("Launched", "c") == ("Unknown", BEYOND_LIMITS)
    world.instances.clear()
    world.settle()
    assert world.claim("c").is_true("Launched")


@pytest.mark.parametrize("terminating", [False, True])
def test_instances_count_when_their_claims_are_let_go_or_relabelled(terminating: bool) -> None:
    world = limited(running(node_claim("a"), node_claim("b")), cpu="4")
    for name in ("a", "b"):
        meta = world.claim(name).metadata
        del world.objects[kinds.ref(next(n for n in world.snapshot().nodes.values() if n.name == f"node-{name}"))]
        rows = {**meta.labels, labels.NODEPOOL: "other"}
        new = replace(meta, finalizers=("example.com/x",), deletion_timestamp=NOW) if terminating else meta
        world.put(replace(world.claim(name), metadata=new if terminating else replace(meta, labels=rows)))
    world.put(node_claim("c"))
    world.decide()
    for _ in range(3):
        world.obey(world.decide())
    assert world.condition("Launched", "c") == ("Unknown", BEYOND_LIMITS)
    assert len(world.instances) == 2


def test_a_claim_that_is_being_deleted_leaves_its_room_at_once() -> None:
    world = limited(running(node_claim("a")), cpu="2")
    world.delete(kinds.ref(world.claim("a")))
    world.put(node_claim("b"))
    for _ in range(4):
        world.obey(world.decide())
    assert world.claim("b").is_true("Launched")


def test_the_capacity_of_an_offering_counts() -> None:
    world = limited(World(node_class(), node_pool()), **{"example.com/slots": "4"})
    kind = large()
    own = changed(kind.offerings[0], capacity=Resources.parse({"example.com/slots": "4"}))
    world.facts["catalogues"] = {"default": (changed(kind, offerings=(own,)),)}
    world.settle()
    for name in ("a", "b"):
        world.put(node_claim(name, resources={"requests": {"cpu": "1", "example.com/slots": "1"}}))
    world.settle()
    assert left(world) == ["a"]


def test_types_that_the_claims_cannot_have_say_nothing_of_their_number() -> None:
    """Of a smaller type that is out of stock there would be room for all of them."""
    world = limited(World(node_class(), node_pool()), cpu="4")
    small = changed(
        large(),
        name="m5.small",
        capacity=Resources.parse({"cpu": "1", "memory": "8Gi", "pods": "29"}),
        allocatable=Resources.parse({"cpu": "1", "memory": "8Gi", "pods": "29"}),
        offerings=(changed(large().offerings[0], instance_type="m5.small", available=False),),
    )
    world.facts["catalogues"] = {"default": (large(), small)}
    world.settle()
    for index in range(3):
        world.put(node_claim(f"c{index}"))
    world.settle()
    assert len(world.instances) == 2
    assert {deed.reason.code for deed in world.done(DeleteObject)} == {BEYOND_LIMITS}


def test_claims_of_types_that_are_out_of_stock_are_given_up_at_once_though_limits_are_tight() -> None:
    world = limited(World(node_class(), node_pool()), cpu="2")
    kind = large()
    world.facts["catalogues"] = {"default": (changed(kind, offerings=(changed(kind.offerings[0], available=False),)),)}
    world.settle()
    for name in ("a", "b"):
        world.put(node_claim(name))
    world.settle()
    assert left(world) == []
    assert {deed.reason.code for deed in world.done(DeleteObject)} == {"InsufficientCapacity"}
