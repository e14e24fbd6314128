"""The policy Balanced, and who comes first (97 to 108 of the disruption catalogue)."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.disruption.candidates import costs
from kerf.disruption.candidates.candidates import Candidate, candidate
from kerf.disruption.consolidation.balanced import Policy, Totals, totals
from kerf.disruption.disrupt import disrupt
from kerf.disruption.propose import propose
from kerf.disruption.view import View, view
from kerf_api import labels
from tests.unit.disruption import markets as m
from tests.unit.disruption import worlds as w

ONE = costs.ONE
LARGE, HALF = m.machine("m.large", 2, 100_000), m.machine("t.half", 1, 50_000)
LIGHTLY = {labels.POD_DELETION_COST: str(-(2**27))}


def balanced(name: str = "default", **more: Any) -> Any:
    return m.only(m.ON_DEMAND, name=name, consolidationPolicy="Balanced", **more)


def used(name: str, pods: int = 1, type_: Any = LARGE, cpu: str = "100m", **more: Any) -> list[Any]:
    """A node with so many pods."""
    return [*m.host(name, type_, **more), *(m.pod(f"{name}{i}", name, cpu=cpu) for i in range(pods))]


def seen(*objects: Any, types: Any = (LARGE, HALF)) -> View:
    return view(w.snapshot(objects, catalogues={"default": types}))


def found(view_: View, *names: str) -> list[Candidate]:
    judged = [candidate(view_, name) for name in names]
    return [one for one in judged if isinstance(one, Candidate)]


def test_097_much_money_for_little_disruption_is_worth_it() -> None:
    """An eighth of the pool's cost for a twenty-seventh of its disruption; and a node that is to spare."""
    assert Totals(800_000, 80 * ONE).approves(100_000, 3 * ONE)
    heavy = [each for i in range(7) for each in used(f"n{i}", 10, cpu="190m")]
    dear = m.machine("m.dear", 2, 400_000)
    world = [balanced(), *heavy, *used("dear", 1, dear, cpu="1900m")]
    assert m.moves(*world, types=(LARGE, HALF, dear)) == [("dear", "replace")]
    assert m.moves(balanced(), *used("a"), *used("b", 3), types=(LARGE,)) == [("a", "delete")]


def test_098_little_money_for_much_disruption_is_not() -> None:
    """4.2 % of the cost for a tenth of the disruption scores 0.42; what saves nothing scores nothing."""
    assert not Totals(1_000, 100 * ONE).approves(42, 10 * ONE)
    assert Totals(1_000, 100 * ONE).approves(50, 10 * ONE)
    assert not Totals(1_000, 100 * ONE).approves(0, 0)
    little = m.machine("t.little", 2, 99_000)
    pods = [each for name in "abc" for each in used(name, 1, cpu="1900m")]
    assert m.moves(balanced(), *pods, types=(LARGE, little)) == []
    assert m.moves(m.only(m.ON_DEMAND), *pods, types=(LARGE, little)) != []


@pytest.mark.parametrize(("price", "goes"), [(50_000, True), (50_001, False)])
def test_099_in_a_uniform_pool_half_the_price_is_just_worth_it(price: int, goes: bool) -> None:
    cheap = m.machine("t.cheap", 2, price)
    world = [balanced(), *(each for name in "ab" for each in used(name, 1, cpu="1900m"))]
    sort = sorted("".join(p.candidates) for p in m.proposed(*world, types=(LARGE, cheap)))
    assert "".join(sort) == ("ab" if goes else "")


def test_100_of_two_that_save_the_same_the_light_one_goes() -> None:
    """Thirty pods against three."""
    pods = [*used("heavy", 30, cpu="60m"), *used("light", 3, cpu="600m")]
    cheap = m.machine("t.cheap", 2, 20_000)
    assert m.moves(balanced(budgets=[{"nodes": "1"}]), *pods, types=(LARGE, cheap)) == [("light", "replace")]
    view_ = seen(balanced(), *pods)
    policy = Policy(view_)
    assert [policy.approves(found(view_, name), 80_000) for name in ("heavy", "light")] == [False, True]


@pytest.mark.parametrize("times", [1, 10])
def test_101_the_size_of_a_pool_changes_no_score(times: int) -> None:
    """In a pool of any size one node with seven pods, where the others have three, must save as much."""
    others = [each for i in range(3 * times) for each in used(f"n{i}", 3, cpu="1m")]
    same = [each for i in range(times) for each in used(f"x{i}", 7, cpu="1m")]
    view_ = seen(balanced(), *others, *same)
    policy, one = Policy(view_), found(view_, "x0")
    assert (policy.approves(one, 80_000), policy.approves(one, 79_999)) == (True, False)


def test_102_what_disrupts_nothing_is_worth_it_and_a_pool_that_costs_nothing_is_not() -> None:
    assert Totals(100, 10 * ONE).approves(1, 0)
    assert not Totals(0, 10 * ONE).approves(1, ONE)
    gone = [balanced(), *used("a"), *used("b")]
    view_ = seen(*gone, types=(HALF,))
    assert totals(view_, view_.snapshot.node_pools["default"]).price == 0
    assert not Policy(view_).approves(found(view_, "a"), 10)


def two_pools(first: str = "Balanced", second: str = "Balanced", heavy: int = 40) -> View:
    """One node of each pool and another beside it: b, of the second pool, has many pods."""
    pools = [m.only(m.ON_DEMAND, name=n, consolidationPolicy=p) for n, p in (("default", first), ("other", second))]
    nodes = [*used("a"), *used("a2"), *used("b", heavy, cpu="1m", pool_name="other"), *used("b2", pool_name="other")]
    return seen(*pools, *nodes)


def test_103_when_one_pool_finds_it_not_worth_it_the_whole_is_not() -> None:
    view_ = two_pools()
    both, policy = found(view_, "a", "b"), Policy(view_)
    assert policy.approves(both[:1], 100_000)
    assert not policy.approves(both[1:], 50_000)
    assert not policy.approves(both, 150_000)
    assert not policy.approves(both[::-1], 150_000)


def test_104_a_pool_of_another_policy_has_no_say() -> None:
    view_ = two_pools(second="WhenEmptyOrUnderutilized")
    assert Policy(view_).approves(found(view_, "a", "b"), 150_000)
    refused = two_pools(first="WhenEmptyOrUnderutilized")
    assert not Policy(refused).approves(found(refused, "a", "b"), 150_000)


def test_105_what_is_saved_is_shared_by_what_the_pools_nodes_cost() -> None:
    """A quarter of the saving is a's: its node costs a third of the other's."""
    dear = m.machine("m.dear", 2, 300_000)
    nodes = [
        *used("a"),
        *used("a2"),
        *used("b", type_=dear, pool_name="other"),
        *used("b2", 9, dear, pool_name="other"),
    ]
    view_ = seen(balanced(), balanced("other"), *nodes, types=(LARGE, dear))
    both, policy = found(view_, "a", "b"), Policy(view_)
    assert totals(view_, both[0].pool) == Totals(200_000, 4 * ONE)
    assert policy.approves(both, 200_000)
    assert not policy.approves(both, 199_999)


@pytest.mark.parametrize("why", ["market", "zone", "sold out", "to be had"])
def test_106_only_offerings_that_may_be_bought_count(why: str) -> None:
    """Otherwise what is left saves a third, which is too little."""
    offers = {(m.A, m.ON_DEMAND): 67_000, (m.A, m.SPOT): 10_000} if why == "market" else {(m.A, m.ON_DEMAND): 67_000}
    offers |= {(m.B, m.ON_DEMAND): 40_000} if why != "market" else {}
    cheap = m.machine("t.cheap", 2, offers=offers)
    rows = [m.wanted(labels.ZONE, m.B)] if why == "to be had" else []
    rows = [m.wanted(labels.ZONE, m.A)] if why == "zone" else rows
    world = [balanced(requirements=rows), *used("a", cpu="1900m"), *used("b", cpu="1900m")]
    sold = {o.key: w.NOW + w.HOUR for o in cheap.offerings if o.zone == m.B} if why == "sold out" else {}
    assert bool(m.moves(*world, types=(LARGE, cheap), out_of_stock=sold)) is (why == "to be had")


def test_107_the_only_node_of_a_pool_may_be_deleted() -> None:
    """It scores 1: all of the cost for all of the disruption."""
    other = [m.only(m.ON_DEMAND, name="other"), *used("z", pool_name="other", consolidatable=False)]
    assert m.moves(balanced(), *used("a", 9, cpu="10m"), *other, types=(LARGE,)) == [("a", "delete")]
    view_ = seen(balanced(), *used("a", 9))
    (one,) = found(view_, "a")
    assert totals(view_, one.pool) == Totals(one.price, one.cost)


@pytest.mark.parametrize(("nodes", "expected"), [("1", [["e"], []]), ("0%", [[], []]), ("2", [["e"], ["a"]])])
def test_108_an_empty_node_uses_up_the_budget_first(nodes: str, expected: list[list[str]]) -> None:
    own = balanced(budgets=[{"nodes": nodes}])
    objects = [own, *used("a"), *used("b", 3), *m.host("e", LARGE)]
    facts: dict[str, Any] = {"catalogues": {"default": (LARGE,)}}
    world = w.World.of(*objects, now=w.NOW + w.MINUTE / 4, ask=None, facts=facts)
    world.facts["proposals"] = propose(w.snapshot(objects, **facts))
    first = w.started(world.tick())
    second = w.started(disrupt(world.snapshot()))
    assert [first, second] == expected
