"""Single-node consolidation: which moves there are, how they are proposed, and how a proposal becomes a command."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.asking import Manner, Solve
from kerf.disruption.candidates.candidates import Blocker, Candidate, candidate
from kerf.disruption.consolidation.balanced import Totals
from kerf.disruption.consolidation.moves import Move, judge
from kerf.disruption.disrupt import disrupt
from kerf.disruption.propose import propose
from kerf.disruption.view import view
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import Plan
from kerf.model.settings import FeatureGates, Settings
from kerf.model.snapshot import Proposal
from kerf.scheduling.answers.solution import Solution
from tests.unit.disruption.worlds import (
    CATALOGUE,
    NOW,
    World,
    alone,
    claim,
    elsewhere,
    instance_type,
    never,
    node,
    nowhere,
    on_new_nodes,
    pod,
    pool,
    snapshot,
)

SECOND = timedelta(seconds=1)
BOTH = ("on-demand", "spot")
GATE = Settings("test", gates=FeatureGates(spot_to_spot_consolidation=True))
SPOT_TYPES = tuple(instance_type(f"s{i:02}.large", 90_000, 1_000 + i) for i in range(20))


def node_pair(name: str, **more: Any) -> list[Any]:
    one = claim(name, **more)
    return [one, node(one)]


def judged(ask: Solve, *, settings: Settings | None = None, catalogue: Any = CATALOGUE, **more: Any) -> Move | Blocker:
    world = snapshot(
        [pool(), *node_pair("a", **more), pod("web", "a"), *node_pair("b")],
        settings=settings,
        catalogues={"default": catalogue},
    )
    found = candidate(view(world), "a")
    assert isinstance(found, Candidate)
    return judge(view(world), [found], ask)


def code(found: Move | Blocker) -> str:
    return found.code if isinstance(found, Blocker) else found.kind


def test_a_node_whose_pods_fit_elsewhere_is_deleted_and_saves_its_price() -> None:
    found = judged(elsewhere("b"))
    assert isinstance(found, Move)
    assert (found.kind, found.saving) == ("delete", 96_000)


@pytest.mark.parametrize("order", [Manner.SCATTERED, Manner.SCATTERED_LARGE_FIRST, Manner.SCATTERED_BY_NAME])
@pytest.mark.parametrize(
    ("left_over", "expected"),
    [
        (elsewhere("b"), "delete"),
        (on_new_nodes("t3.small", price=95_999), "delete"),
        (on_new_nodes("m5.large", price=96_000), "WouldComeBack"),
        (nowhere, "PodsWouldNotSchedule"),
    ],
)
def test_a_node_is_not_deleted_when_the_kube_scheduler_may_make_it_come_back(
    left_over: Solve, expected: str, order: Manner
) -> None:
    """Its pods fit elsewhere, but not as the kube-scheduler places them in one order or another."""

    def ask(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
        return (left_over if manner is order else elsewhere("b"))(pods, exclude, manner, *beside)

    assert code(judged(ask)) == expected


def test_only_strictly_cheaper_types_replace() -> None:
    found = judged(on_new_nodes("t3.small", "m5.large", "m5.xlarge"))
    assert isinstance(found, Move)
    (new,) = found.new
    assert (new.instance_types, found.saving) == (("t3.small",), 76_000)


@pytest.mark.parametrize(
    ("expected", "ask", "more"),
    [
        ("PodsWouldNotSchedule", nowhere, {}),
        ("TooManyNodes", on_new_nodes("t3.small", count=2), {}),
        ("NotCheaper", on_new_nodes("m5.large", "m5.xlarge"), {}),
        ("NotCheaper", on_new_nodes("t3.small"), {"instance_type": "x9.gone"}),
        ("SpotToSpotDisabled", on_new_nodes("t3.small", capacity_types=BOTH), {"capacity_type": "spot"}),
        ("delete", elsewhere("b"), {"capacity_type": "spot"}),
        ("replace", on_new_nodes("t3.small"), {"capacity_type": "spot"}),
        (
            "TooFewSpotTypes",
            on_new_nodes("t3.small", capacity_types=BOTH),
            {"capacity_type": "spot", "settings": GATE},
        ),
    ],
)
def test_moves_and_refusals(expected: str, ask: Solve, more: dict[str, Any]) -> None:
    if expected == "TooManyNodes":
        world = snapshot([pool(), *node_pair("a"), pod("web", "a"), pod("web2", "a")])
        found = candidate(view(world), "a")
        assert isinstance(found, Candidate)
        assert code(judge(view(world), [found], ask)) == expected
    else:
        assert code(judged(ask, **more)) == expected


def test_a_replacement_that_may_be_spot_is_pinned_to_spot() -> None:
    found = judged(on_new_nodes("t3.small", capacity_types=BOTH))
    assert isinstance(found, Move)
    (new,) = found.new
    assert (new.capacity_types, new.price) == (("spot",), 8_000)


def test_spot_to_spot_sends_the_fifteen_cheapest() -> None:
    names = [t.name for t in SPOT_TYPES]
    ask = on_new_nodes(*names, capacity_types=("spot",))
    found = judged(ask, settings=GATE, capacity_type="spot", catalogue=(*CATALOGUE, *SPOT_TYPES))
    assert isinstance(found, Move)
    (new,) = found.new
    assert new.instance_types == tuple(names[:15])


def test_balanced_scores() -> None:
    whole = Totals(price=800, cost=80)
    assert whole.approves(100, 3)
    assert not whole.approves(4, 8 * 10)
    assert Totals(1000, 100).approves(50, 10)
    assert not Totals(1000, 100).approves(49, 10)
    assert not whole.approves(0, 0)
    assert not Totals(0, 80).approves(10, 1)


# --- proposals --------------------------------------------------------------------------------------------------
def pair_world(**own: Any) -> list[Any]:
    """Two nodes; `b` runs more pods, so `a` is disturbed less for the same money."""
    pods = [pod("1", "a"), pod("2", "b"), pod("3", "b")]
    return [pool(**own), *node_pair("a"), *node_pair("b"), *pods]


SMALL = alone(on_new_nodes("t3.small"))


def test_the_cheapest_disruption_is_proposed_first() -> None:
    found = propose(snapshot(pair_world()), SMALL)
    assert [(p.candidates, p.kind, p.saving) for p in found] == [
        (("a",), "replace", 76_000),
        (("b",), "replace", 76_000),
    ]
    assert all(p.made_at == NOW and set(p.versions) >= {"nodepool/default"} for p in found)
    assert found[0].pods == {"pod-1"}


@pytest.mark.parametrize(
    "own",
    [
        {"consolidationPolicy": "WhenEmpty"},
        {"consolidateAfter": "Never"},
        {"budgets": [{"nodes": "0"}]},
        {"replicas": 2},
        {"budgets": [{"nodes": "0", "reasons": ["Underutilized"]}]},
    ],
)
def test_pools_that_do_not_want_it_get_no_proposals(own: dict[str, Any]) -> None:
    assert propose(snapshot(pair_world(**own)), SMALL) == ()


def test_deletions_proposed_together_reckon_with_each_other() -> None:
    """Both nodes' pods fit on the other; only one of the two may be proposed."""

    def ask(pods: Any, exclude: frozenset[str], manner: Manner, *beside: Any) -> Any:
        left = sorted({"a", "b"} - exclude)
        return elsewhere(left[0])(pods, exclude, manner, *beside) if left else nowhere(pods, exclude, manner, *beside)

    assert [p.candidates for p in propose(snapshot(pair_world()), ask)] == [("a",)]


def test_a_move_that_is_found_again_keeps_its_first_time() -> None:
    first = propose(snapshot(pair_world()), SMALL)
    later = NOW + 20 * SECOND
    again = propose(snapshot(pair_world(), now=later, proposals=first), SMALL)
    assert [p.made_at for p in again] == [NOW, NOW]
    stale = NOW + 120 * SECOND
    renewed = propose(snapshot(pair_world(), now=stale, proposals=first), SMALL)
    assert [p.made_at for p in renewed] == [stale, stale]


def test_balanced_leaves_what_is_not_worth_the_disruption() -> None:
    heavy = [pod(f"h{i}", "b") for i in range(30)]
    world = snapshot([*pair_world(consolidationPolicy="Balanced"), *heavy])
    assert [p.candidates for p in propose(world, SMALL)] == [("a",)]


# --- from proposal to command -----------------------------------------------------------------------------------
def proposed(ask: Solve, objects: list[Any]) -> tuple[Proposal, ...]:
    return propose(snapshot(objects), ask)[:1]


def decided(objects: list[Any], found: tuple[Proposal, ...], ask: Solve, age: int = 15) -> Plan:
    return disrupt(snapshot(objects, now=NOW + age * SECOND, proposals=found), ask)


def started(plan: Plan) -> list[str]:
    return [a.lane for a in plan.actions if a.key.startswith("StartCommand")]


@pytest.mark.parametrize(("age", "starts"), [(0, False), (14, False), (15, True), (119, True), (120, False)])
def test_a_proposal_is_used_after_its_delay_and_while_it_is_fresh(age: int, starts: bool) -> None:
    ask = SMALL
    plan = decided(pair_world(), proposed(ask, pair_world()), ask if starts else never, age)
    assert started(plan) == ["nodeclaim/a"] * starts
    if age < 15:
        assert plan.next_due == NOW + 15 * SECOND


@pytest.mark.parametrize(
    ("found_after", "more", "age", "starts"),
    [
        (10, 1, 15, False),  # the other one saves more, and will soon be ready
        (10, 1, 24, False),
        (10, 1, 25, True),
        (15, 1, 20, False),
        (16, 1, 20, True),  # too late to be waited for
        (10, 0, 15, True),  # it saves no more
        (-120, 1, 15, True),  # too old to become anything
    ],
)
def test_the_larger_part_of_what_was_found_is_waited_for(found_after: int, more: int, age: int, starts: bool) -> None:
    (first,) = proposed(SMALL, pair_world())
    other = dataclasses.replace(
        first, id="other", candidates=("b",), saving=first.saving + more, made_at=NOW + found_after * SECOND
    )
    plan = decided(pair_world(), (other, first), SMALL, age)
    assert bool(started(plan)) == starts
    if not starts:
        assert plan.next_due == NOW + (found_after + 15) * SECOND


def test_one_move_a_plan() -> None:
    ask = SMALL
    assert len(started(decided(pair_world(), propose(snapshot(pair_world()), ask), ask))) == 1


def test_a_replacement_turned_deletion_is_welcome() -> None:
    found = proposed(SMALL, pair_world())
    assert started(decided(pair_world(), found, elsewhere("b"))) == ["nodeclaim/a"]


@pytest.mark.parametrize("now_needs", [on_new_nodes("m5.large"), nowhere])
def test_a_deletion_that_has_become_worse_is_dropped(now_needs: Solve) -> None:
    plan = decided(pair_world(), proposed(elsewhere("b"), pair_world()), now_needs)
    assert started(plan) == []
    assert "ConsolidationRejected" in {r.reason.code for r in plan.refusals}


def test_a_deletion_does_not_turn_into_a_replacement() -> None:
    plan = decided(pair_world(), proposed(elsewhere("b"), pair_world()), on_new_nodes("t3.small"))
    assert started(plan) == []


def test_fewer_types_than_proposed_are_another_replacement() -> None:
    many = (*CATALOGUE, instance_type("t4.small", 21_000))
    world = snapshot(pair_world(), catalogues={"default": many})
    found = propose(world, alone(on_new_nodes("t3.small", "t4.small")))[:1]
    assert started(decided(pair_world(), found, on_new_nodes("t3.small"))) == []


@pytest.mark.parametrize("what", ["pod", "pool", "budget", "annotation", "recreated", "event"])
def test_a_changed_world_drops_the_proposal(what: str) -> None:
    ask = elsewhere("b")
    found = proposed(ask, pair_world())
    world = World.of(*pair_world(), ask=ask, now=NOW + 15 * SECOND, facts={"proposals": found})
    if what == "pod":
        world.add(pod("new", "a"))
    elif what == "pool":
        world.add(pool(generation=2))
    elif what == "budget":
        world.add(pool(budgets=[{"nodes": "0"}]))
    elif what == "annotation":
        world.edit("pod/shop/1", {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}})
    elif what == "recreated":
        old = world.claim("a")
        world.add(replace(old, metadata=replace(old.metadata, uid="other", resource_version="9")))
    else:
        world.edit("nodeclaim/a", {"status": {"conditions": []}})
    assert started(world.plan()) == []


def test_emptiness_and_a_move_are_not_mixed_in_one_plan() -> None:
    objects = [*pair_world(), *node_pair("c")]
    found = proposed(elsewhere("b"), objects)
    assert started(decided(objects, found, never)) == ["nodeclaim/c"]


def test_a_whole_replacement_from_proposal_to_deletion() -> None:
    ask = SMALL
    objects = pair_world()
    world = World.of(*objects, ask=ask, now=NOW + 15 * SECOND, facts={"proposals": proposed(ask, objects)})
    world.settle()
    (name,) = world.replacements
    assert world.tainted("a")
    assert "t3.small" in str(world.claim(name).spec.requirements)
    assert world.claim("a").condition("DisruptionReason").reason == "Underutilized"  # type: ignore[union-attr]
    world.facts = {}
    world.join(name)
    world.settle()
    assert world.claim("a").metadata.deleting
    assert not world.claim("b").metadata.deleting


def test_the_real_scheduler_finds_the_node_that_can_go() -> None:
    found = propose(snapshot(pair_world()))
    assert [(p.candidates, p.kind) for p in found] == [(("a",), "delete")]
    plan = disrupt(snapshot(pair_world(), now=NOW + 15 * SECOND, proposals=found))
    assert started(plan) == ["nodeclaim/a"]
