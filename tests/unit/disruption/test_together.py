"""Nodes that go together: deletions that start at once, and several nodes replaced by fewer or cheaper ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as with_fields
from datetime import timedelta
from typing import Any

import pytest

from kerf.disruption.asking import Manner, Solve
from kerf.disruption.candidates.candidates import Blocker, Candidate, candidate
from kerf.disruption.command import command_of
from kerf.disruption.consolidation.moves import Move, judge
from kerf.disruption.propose import propose
from kerf.disruption.view import view
from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Proposal
from kerf.scheduling.answers.solution import Solution
from kerf_api import labels
from tests.unit.disruption.worlds import (
    NOW,
    World,
    claim,
    elsewhere,
    instance_type,
    node,
    nowhere,
    on_new_nodes,
    pairs,
    pod,
    pool,
    refusals,
    snapshot,
    started,
)

SECOND = timedelta(seconds=1)
LATER = NOW + 15 * SECOND


def pods_on(*names: str) -> list[Pod]:
    return [pod(f"on-{name}", name) for name in names]


def three(**own: Any) -> list[Any]:
    return [pool(**own), *pairs("a", "b", "c"), *pods_on("a", "b", "c")]


def at_most(number: int, ask: Solve) -> Solve:
    """As that one while no more nodes than these go, and else nothing has a place."""

    def asked(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
        return (ask if len(exclude) <= number else nowhere)(pods, exclude, manner, *beside)

    return asked


def only_all(number: int, ask: Solve) -> Solve:
    """As that one when so many nodes go at once, and else nothing has a place."""

    def asked(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
        return (ask if len(exclude) == number else nowhere)(pods, exclude, manner, *beside)

    return asked


def judged(*names: str, ask: Solve, **own: Any) -> Move | Blocker:
    seen = view(snapshot([*three(**own), pod("more", "a")]))
    found = [candidate(seen, name) for name in names]
    return judge(seen, [one for one in found if isinstance(one, Candidate)], ask)


# --- what is found ------------------------------------------------------------------------------------------------
def test_as_many_as_fit_are_deleted_at_once() -> None:
    found = propose(snapshot(three()), at_most(2, elsewhere("c")))
    assert [(p.candidates, p.kind) for p in found] == [(("a",), "delete"), (("b",), "delete")]


def test_one_that_fits_nowhere_does_not_hide_those_behind_it() -> None:
    def ask(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
        stuck = any(p.metadata.name == "on-a" for p in pods)
        return (nowhere if stuck else elsewhere("c"))(pods, exclude, manner, *beside)

    assert [p.candidates for p in propose(snapshot(three()), ask)] == [("b",)]


@pytest.mark.parametrize(("nodes", "expected"), [("1", [("a",)]), ("2", [("a",), ("b",)]), ("0", [])])
def test_no_more_than_budgets_allow(nodes: str, expected: list[tuple[str, ...]]) -> None:
    world = snapshot(three(budgets=[{"nodes": nodes}]))
    assert [p.candidates for p in propose(world, elsewhere("c"))] == expected


def test_three_nodes_become_two_cheaper_ones() -> None:
    (found,) = propose(snapshot(three()), only_all(3, on_new_nodes("t3.small", count=2, price=20_000)))
    assert (found.kind, found.candidates, found.saving) == ("replace", ("a", "b", "c"), 3 * 96_000 - 2 * 20_000)
    assert len(found.replacements) == 2
    assert found.pods == {"pod-on-a", "pod-on-b", "pod-on-c"}


def test_several_are_replaced_for_a_fair_share_of_their_cost_only() -> None:
    """Three nodes at 96,000 each: one type saves 8 % of that, the other 9 %."""
    little = instance_type("x1.xlarge", 265_000), instance_type("x2.xlarge", 262_000)
    for type_, expected in zip(little, (0, 1), strict=True):
        world = snapshot(three(), catalogues={"default": (type_, instance_type("m5.large", 96_000))})
        assert len(propose(world, only_all(3, on_new_nodes(type_.name, price=262_000)))) == expected


@pytest.mark.parametrize(
    ("names", "ask", "expected"),
    [
        (("a", "b"), on_new_nodes("t3.small", count=2, price=20_000), "replace"),
        (("a", "b"), on_new_nodes("t3.small", count=3, price=20_000), "TooManyNodes"),
        (("a", "b"), on_new_nodes("m5.xlarge", price=192_000), "NotCheaper"),
        (("a", "b", "c"), on_new_nodes("m5.xlarge", price=192_000), "replace"),
        # with one like those that go, a node less would have had to go
        (("a", "b", "c"), on_new_nodes("m5.large", "m5.xlarge", price=96_000), "NotCheaper"),
        (("a", "b", "c"), on_new_nodes("t3.small", "m5.large", price=20_000), "replace"),
    ],
)
def test_what_several_may_be_replaced_by(names: tuple[str, ...], ask: Solve, expected: str) -> None:
    found = judged(*names, ask=at_most(3, ask))
    assert (found.code if isinstance(found, Blocker) else found.kind) == expected


def test_the_worst_prices_of_all_replacements_together_are_below_what_goes() -> None:
    """Two come for three at 96,000: each may cost half of that at most, whichever of its types it becomes."""
    found = judged("a", "b", "c", ask=on_new_nodes("t3.small", "m5.large", "m5.xlarge", count=2, price=100_000))
    assert isinstance(found, Move)
    assert [new.instance_types for new in found.new] == [("t3.small", "m5.large")] * 2


# --- how it is carried out ------------------------------------------------------------------------------------------
def proposals(ask: Solve, **own: Any) -> tuple[Proposal, ...]:
    return propose(snapshot(three(**own)), ask)


TWO_FOR_THREE = only_all(3, on_new_nodes("t3.small", count=2, price=20_000))


def replacing() -> World:
    return World.of(*three(), ask=TWO_FOR_THREE, now=LATER, facts={"proposals": proposals(TWO_FOR_THREE)})


def test_deletions_that_hold_together_start_together() -> None:
    ask = at_most(2, elsewhere("c"))
    world = World.of(*three(), ask=ask, now=LATER, facts={"proposals": proposals(ask)})
    assert started(world.plan()) == ["a", "b"]


def test_when_they_do_not_hold_together_any_more_one_starts() -> None:
    found = proposals(at_most(2, elsewhere("c")))
    world = World.of(*three(), ask=at_most(1, elsewhere("c")), now=LATER, facts={"proposals": found})
    assert started(world.plan()) == ["a"]


def test_replacements_come_when_all_that_go_are_tainted_and_each_goes_when_they_are_ready() -> None:
    world = replacing()
    assert started(world.tick()) == ["a", "b", "c"]
    world.settle()
    assert all(world.tainted(name) for name in "abc")
    one, two = world.replacements
    for name in (one, two):
        assert world.claim(name).metadata.annotations[labels.REPLACES] == "a,b,c"
    world.join(one)
    world.settle()
    assert not any(world.claim(name).metadata.deleting for name in "abc")
    world.join(two)
    world.settle()
    assert all(world.claim(name).metadata.deleting for name in "abc")
    assert world.replacements == [one, two]


def test_a_command_written_to_some_of_them_only_is_taken_back() -> None:
    world = replacing()
    world.tick(first=2)
    world.facts = {}
    world.settle()
    assert world.replacements == []
    world.now += 16 * SECOND
    world.settle()
    assert not any(labels.COMMAND in world.claim(name).metadata.annotations for name in "abc")
    assert not any(world.tainted(name) for name in "abc")
    assert world.replacements == []


def test_when_one_has_to_stay_nothing_is_bought() -> None:
    world = replacing()
    world.tick()
    world.facts = {}
    world.add(pod("late", "b"))
    assert refusals(world.tick())["nodeclaim/b"] == "PodArrived"
    world.now += 16 * SECOND
    assert refusals(world.tick())["nodeclaim/a"] == "PeerStays"
    world.settle()
    assert world.replacements == []
    assert not any(labels.COMMAND in world.claim(name).metadata.annotations for name in "abc")


def test_when_one_has_to_stay_after_all_was_bought_the_others_go() -> None:
    world = replacing()
    world.settle()
    world.facts = {}
    world.add(pod("late", "b"))
    world.settle()
    for name in world.replacements:
        world.join(name)
    world.settle()
    assert [world.claim(name).metadata.deleting for name in "abc"] == [True, False, True]


def test_a_lost_replacement_rolls_all_of_them_back() -> None:
    world = replacing()
    world.settle()
    world.facts = {}
    del world.objects[f"nodeclaim/{world.replacements[0]}"]
    world.settle()
    for name in "abc":
        assert command_of(world.claim(name).metadata.annotations) is None
        assert labels.COMMAND_FAILED in world.claim(name).metadata.annotations
        assert not world.tainted(name)


@pytest.mark.parametrize("crash_at", range(16))
def test_a_crash_between_any_two_actions_buys_nothing_twice(crash_at: int) -> None:
    world, left = replacing(), crash_at
    for _ in range(20):
        plan = world.plan()
        if left < len(plan.actions):
            world.perform(plan.actions[:left])
            world.facts = {}
            break
        world.perform(plan.actions)
        left -= len(plan.actions)
        _join_all(world)
    for _ in range(20):
        world.tick()
        world.now += SECOND
        _join_all(world)
    gone = [name for name in "abc" if world.claim(name).metadata.deleting]
    begun = crash_at >= 3
    assert (gone, len(world.replacements)) == ((list("abc"), 2) if begun else ([], 0))
    assert begun or not any(world.tainted(name) for name in "abc")


def _join_all(world: World) -> None:
    for name in world.replacements:
        if not world.claim(name).is_true("Initialized"):
            world.join(name)


def test_a_replacement_is_not_empty_while_one_that_it_replaces_is_there() -> None:
    new = claim("new", annotations={labels.REPLACES: "x,a"})
    a = claim("a", annotations={labels.COMMAND: "{}"})
    found = candidate(view(snapshot([pool(), a, node(a), new, node(new)])), "new")
    assert isinstance(found, Blocker)
    assert found.code == "Replacement"


def test_a_replacement_that_saves_less_than_was_proposed_is_not_begun() -> None:
    (one,) = proposals(TWO_FOR_THREE)
    dearer = with_fields(one, saving=one.saving + 1)
    world = World.of(*three(), ask=TWO_FOR_THREE, now=LATER, facts={"proposals": (dearer,)})
    assert started(world.plan()) == []
