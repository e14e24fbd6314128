"""What consolidation really saves: what is measured when, what counts, and the pause after a loss."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.decide import decide
from kerf.disruption.consolidation.pausing import Pause, pause_of, paused
from kerf.disruption.propose import propose
from kerf.model.aws.accounts import NO_ACCOUNTS, Measured
from kerf.model.memory import Memory
from kerf.model.plan import Event, Plan
from kerf_api import labels
from tests.unit.disruption.worlds import (
    HOUR,
    MINUTE,
    NOW,
    World,
    alone,
    claim,
    elsewhere,
    node,
    on_new_nodes,
    pod,
    pool,
    snapshot,
    stamp,
    started,
)

SECOND = timedelta(seconds=1)
#: A node at $0.096 goes for one at $0.020.
SMALLER = alone(on_new_nodes("t3.small", price=20_000))


def pair(name: str, **more: Any) -> list[Any]:
    one = claim(name, **more)
    return [one, node(one), owned(f"web-{name}", name)]


def owned(name: str, on: str, uid: str = "x") -> Any:
    """A pod of the controller with this UID; those of `pair` have "x"."""
    one = pod(name, on)
    (owner,) = one.metadata.owner_references
    return replace(one, metadata=replace(one.metadata, owner_references=(replace(owner, uid=uid, controller=True),)))


def tick(world: World) -> Plan:
    """One look, whose actions are done and whose accounts are remembered."""
    plan = world.tick()
    if plan.accounts is not None:
        world.facts["accounts"] = plan.accounts
    return plan


def settle(world: World) -> None:
    for _ in range(20):
        if not tick(world).actions:
            return
    raise AssertionError(f"does not settle: {world.done}")


def begun(*objects: Any, ask: Any = SMALLER) -> World:
    """Consolidation has found its moves, and begins them."""
    found = propose(snapshot(objects), ask)
    world = World.of(*objects, ask=ask, now=NOW + 15 * SECOND, facts={"proposals": found})
    settle(world)
    world.facts["proposals"] = ()
    return world


def replaced(became: str = "t3.small") -> World:
    """`a` is going; its replacement has become a node of this type."""
    world = begun(pool(), *pair("a"), *pair("z", consolidatable=False))
    (name,) = world.replacements
    world.join(name)
    world.edit(f"nodeclaim/{name}", {"metadata": {"labels": {labels.INSTANCE_TYPE: became}}})
    world.now += MINUTE
    settle(world)
    assert world.claim("a").metadata.deleting
    return world


def leave(world: World, *names: str) -> None:
    """These nodes are drained and end."""
    for name in names:
        for lane in (f"nodeclaim/{name}", f"node/node-{name}", f"pod/shop/web-{name}"):
            world.objects.pop(lane)
    settle(world)


def bought(world: World, name: str, *on_it: Any, **more: Any) -> None:
    """A node that was created now, with these pods."""
    one = claim(name, since=world.now, consolidatable=False, **more)
    world.add(one, node(one), *on_it)


def later(world: World, by: timedelta = 5 * MINUTE) -> Plan:
    world.now += by
    return tick(world)


def events(plan: Plan) -> list[Event]:
    return [e for e in plan.events if e.reason == "ConsolidationMeasured"]


# --- what is measured -----------------------------------------------------------------------------------------------
def test_a_replacement_is_measured_five_minutes_after_its_node_has_gone() -> None:
    world = replaced()
    world.now += HOUR  # a drain may take as long as it likes
    leave(world, "a")
    assert tick(world).next_due == world.now + 5 * MINUTE
    assert later(world, 299 * SECOND).measured == ()
    plan = later(world, SECOND)
    assert plan.measured == (Measured("default", 1, 76_000, 76_000),)
    (told,) = events(plan)
    assert (told.ref.kind, told.type) == ("NodePool", "Normal")
    assert told.message == "1 node was removed: $0.0760 an hour were promised, $0.0760 saved"
    assert world.facts["accounts"] == NO_ACCOUNTS
    assert later(world).measured == ()


def test_what_the_replacement_became_counts_not_what_was_planned() -> None:
    world = replaced(became="m5.large")
    leave(world, "a")
    assert later(world).measured == (Measured("default", 1, 76_000, 0),)


def test_nodes_that_are_only_deleted_promise_what_they_cost() -> None:
    world = begun(pool(), *pair("a"), *pair("b"), *pair("z", consolidatable=False), ask=elsewhere("z"))
    leave(world, "a", "b")
    assert later(world).measured == (Measured("default", 2, 192_000, 192_000),)


def test_what_goes_for_other_reasons_is_not_measured() -> None:
    empty = claim("a")
    world = World.of(pool(), empty, node(empty))
    settle(world)
    assert world.claim("a").metadata.deleting
    assert "accounts" not in world.facts


def test_each_node_pool_has_its_share() -> None:
    """Nodes of two pools at $0.192 and $0.096 go for one at $0.020."""
    dear = pair("a", pool_name="one", instance_type="m5.xlarge")
    objects = [pool(), pool("one"), pool("two"), *dear, *pair("b", pool_name="two"), *pair("z", consolidatable=False)]
    world = begun(*objects, ask=on_new_nodes("t3.small", price=20_000))
    (name,) = world.replacements
    world.join(name)
    world.edit(f"nodeclaim/{name}", {"metadata": {"labels": {labels.INSTANCE_TYPE: "t3.small"}}})
    settle(world)
    leave(world, "a")
    assert later(world).measured == ()
    leave(world, "b")
    assert later(world).measured == (
        Measured("one", 1, 268_000 * 2 // 3, 268_000 * 2 // 3),
        Measured("two", 1, 268_000 // 3, 268_000 // 3),
    )


# --- what had to be bought ------------------------------------------------------------------------------------------
def test_a_node_that_is_bought_for_the_pods_that_moved_is_not_saved() -> None:
    world = replaced()
    leave(world, "a")
    bought(world, "late", owned("new", "late"))
    plan = later(world)
    assert plan.measured == (Measured("default", 1, 76_000, -20_000),)
    (told,) = events(plan)
    assert (told.type, told.message) == (
        "Warning",
        "1 node was removed: $0.0760 an hour were promised, $0.0200 lost",
    )


@pytest.mark.parametrize(
    ("on_it", "counts"),
    [
        ([owned("n", "late", "y")], 0),
        ([owned("n", "late"), owned("o", "late", "y")], 48_000),
        ([owned("n", "late"), owned("o", "late")], 48_000),
        ([owned("n", "late"), pod("d", "late", owner="DaemonSet")], 96_000),
        ([], 0),
    ],
)
def test_a_node_counts_by_the_share_of_its_pods_that_may_have_moved(on_it: list[Any], counts: int) -> None:
    """One pod has moved, whose controller is x."""
    world = replaced()
    leave(world, "a")
    bought(world, "late", *on_it)
    assert later(world).measured == (Measured("default", 1, 76_000, 76_000 - counts),)


def test_only_what_is_bought_meanwhile_counts_and_no_replacement_does() -> None:
    world = replaced()
    leave(world, "a")
    bought(world, "next", owned("n", "next"), annotations={labels.REPLACES: "q"})
    early = claim("early", since=world.now - HOUR, consolidatable=False)
    world.add(early, node(early), owned("o", "early"))
    assert later(world).measured == (Measured("default", 1, 76_000, 76_000),)


@pytest.mark.parametrize(("which", "counts"), [((False,), 0), ((False, True), 0), ((True, False), 96_000)])
def test_a_pod_is_its_controllers_whoever_else_owns_it(which: tuple[bool, ...], counts: int) -> None:
    """One pod has moved, whose controller is x. The pod that came has owners x and y, one of which may control it."""
    world = replaced()
    leave(world, "a")
    new = owned("new", "late")
    (owner,) = new.metadata.owner_references
    rows = tuple(replace(owner, uid=uid, controller=is_it) for uid, is_it in zip("xy", which, strict=False))
    bought(world, "late", replace(new, metadata=replace(new.metadata, owner_references=rows)))
    assert later(world).measured == (Measured("default", 1, 76_000, 76_000 - counts),)


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_each_pod_counts_for_one_command_only_however_far_apart_they_end(order: str) -> None:
    world = begun(pool(), *pair("a"), *pair("b"), *pair("z", consolidatable=False), ask=elsewhere("z"))
    leave(world, order[0])
    bought(world, "late", owned("n", "late"))
    first = later(world).measured
    leave(world, order[1])
    second = later(world).measured
    assert sorted(one.realised for found in (first, second) for one in found) == [0, 96_000]


def test_a_leader_that_is_new_measures_what_is_still_going() -> None:
    world = replaced()
    world.facts.pop("accounts")
    tick(world)
    leave(world, "a")
    assert later(world).measured == (Measured("default", 1, 76_000, 76_000),)
    other = replaced()
    leave(other, "a")
    other.facts.pop("accounts")
    assert later(other).measured == ()


def test_with_and_without_memory_the_accounts_are_the_same() -> None:
    world, memory = replaced(), Memory()
    for _ in range(3):
        seen = world.snapshot()
        assert decide(seen, memory).accounts == decide(seen).accounts
        tick(world)
    leave(world, "a")
    world.now += 5 * MINUTE
    assert decide(world.snapshot(), memory).measured == decide(world.snapshot()).measured != ()


# --- the pause --------------------------------------------------------------------------------------------------------
def lossy() -> World:
    """A command has just been measured: it has cost more than it saved."""
    world = replaced()
    leave(world, "a")
    bought(world, "late", owned("new", "late"))
    world.now += 5 * MINUTE
    return world


def own_pool(world: World) -> Any:
    return world.objects["nodepool/default"]


def test_after_a_loss_the_pool_pauses_and_says_so() -> None:
    world = lossy()
    settle(world)
    found = pause_of(own_pool(world), world.now)
    assert found is not None
    assert (found.at, found.lost, found.count) == (world.now, 20_000, 1)
    blocker = paused(own_pool(world), world.now)
    assert blocker is not None
    assert "its recent moves cost $0.0200 an hour more than they saved" in blocker.text
    assert blocker.until is not None
    assert 10 * MINUTE <= blocker.until - world.now <= 11 * MINUTE


def test_a_pause_that_could_not_be_written_is_written_the_next_time() -> None:
    world = lossy()
    plan = world.plan()
    world.facts["accounts"] = plan.accounts
    assert pause_of(own_pool(world), world.now) is None
    settle(world)
    assert pause_of(own_pool(world), world.now) is not None
    assert world.facts["accounts"] == NO_ACCOUNTS


def pausing(at: Any, count: int = 1, **more: Any) -> Any:
    text = f'{{"at": "{stamp(at)}", "lost": 20000, "count": {count}}}'
    return pool(annotations={labels.CONSOLIDATION_PAUSE: text}, **more)


@pytest.mark.parametrize(("count", "least"), [(1, 10), (2, 20), (3, 40), (40, 720)])
def test_it_doubles_up_to_half_a_day(count: int, least: int) -> None:
    found = Pause(at=NOW, lost=1, count=count).until("default") - NOW
    assert least * MINUTE <= found <= least * 1.1 * MINUTE


@pytest.mark.parametrize(("ago", "count"), [(HOUR, 5), (72 * HOUR, 1)])
def test_a_loss_soon_after_the_last_one_makes_it_longer(ago: timedelta, count: int) -> None:
    world = lossy()
    world.add(pausing(world.now - ago, count=4))
    settle(world)
    found = pause_of(own_pool(world), world.now)
    assert found is not None
    assert found.count == count


@pytest.mark.parametrize(("ago", "goes"), [(9 * MINUTE, False), (12 * MINUTE, True)])
def test_while_it_pauses_no_node_in_use_is_consolidated(ago: timedelta, goes: bool) -> None:
    objects = [pausing(NOW - ago), *pair("a"), *pair("z", consolidatable=False)]
    assert bool(propose(snapshot(objects), SMALLER)) is goes


def test_empty_nodes_go_all_the_same_and_somebody_looks_again_when_it_is_over() -> None:
    empty = claim("e")
    world = World.of(pausing(NOW), *pair("a"), empty, node(empty))
    plan = world.plan()
    assert started(plan) == ["e"]
    assert plan.next_due is not None
    assert plan.next_due <= NOW + 11 * MINUTE


def test_an_annotation_that_cannot_be_read_pauses_nothing() -> None:
    assert paused(pool(annotations={labels.CONSOLIDATION_PAUSE: "soon"}), NOW) is None
