"""What consolidation has to bring: a minimum saving, to be paid back in time, and nodes of some age."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from kerf.disruption.asking import Manner, Solve
from kerf.disruption.candidates.candidates import Blocker, Candidate, candidate
from kerf.disruption.consolidation.balanced import Policy
from kerf.disruption.consolidation.moves import Move, judge
from kerf.disruption.consolidation.search import single
from kerf.disruption.propose import consider, propose
from kerf.disruption.view import view
from kerf.model.kubernetes.objects import Pod
from kerf.model.settings import Settings
from kerf.scheduling.answers.solution import Solution
from kerf_api import labels
from kerf_api.thresholds import Thresholds, saving
from tests.unit.disruption.worlds import (
    CATALOGUE,
    HOUR,
    MINUTE,
    NOW,
    World,
    alone,
    claim,
    elsewhere,
    instance_type,
    never,
    node,
    on_new_nodes,
    pod,
    pool,
    snapshot,
    started,
)

SAVING, PAYBACK, AGE = labels.MINIMUM_SAVING, labels.PAYBACK_TIME, labels.MINIMUM_AGE
#: What takes the place of a node at $0.096: it saves $0.076, and is paid for itself after 79 seconds.
SMALLER = on_new_nodes("t3.small", price=20_000)


def pair(name: str, **more: Any) -> list[Any]:
    one = claim(name, **more)
    return [one, node(one), pod(f"web-{name}", name)]


def judged(ask: Solve, *names: str, pools: Sequence[Any], settings: Settings | None = None, **facts: Any) -> Any:
    """The move of these nodes, each of the pool in its turn."""
    mine = [pools[n % len(pools)].name for n in range(len(names))]
    nodes = [each for name, own in zip(names, mine, strict=True) for each in pair(name, pool_name=own)]
    seen = view(snapshot([pool(), *pools, *nodes, *pair("z")], settings=settings, **facts))
    found = [candidate(seen, name) for name in names]
    return judge(seen, [one for one in found if isinstance(one, Candidate)], ask)


def asking(name: str = "default", **wanted: str) -> Any:
    """A NodePool with thresholds: `saving`, `payback`, `age`."""
    keys = {"saving": SAVING, "payback": PAYBACK, "age": AGE}
    return pool(name, annotations={keys[key]: text for key, text in wanted.items()})


def code(found: Move | Blocker) -> str:
    return found.code if isinstance(found, Blocker) else found.kind


@pytest.mark.parametrize(
    ("ask", "wanted", "expected"),
    [
        (SMALLER, {}, "replace"),
        (SMALLER, {"saving": "79%"}, "replace"),
        (SMALLER, {"saving": "79.2%"}, "SavingTooSmall"),
        (SMALLER, {"saving": "0.076"}, "replace"),
        (SMALLER, {"saving": "0.076001"}, "SavingTooSmall"),
        (SMALLER, {"payback": "79s"}, "replace"),
        (SMALLER, {"payback": "78s"}, "PaysBackTooLate"),
        (SMALLER, {"payback": "0s"}, "replace"),
        (elsewhere("z"), {"saving": "100%", "payback": "1s"}, "delete"),
        (elsewhere("z"), {"saving": "0.096"}, "delete"),
        (elsewhere("z"), {"saving": "0.097"}, "SavingTooSmall"),
    ],
)
def test_a_move_brings_what_the_node_pool_asks_for(ask: Solve, wanted: dict[str, str], expected: str) -> None:
    assert code(judged(ask, "a", pools=[asking(**wanted)])) == expected


def test_what_is_missing_is_said_with_numbers_and_with_who_asks_for_it() -> None:
    small = judged(SMALLER, "a", pools=[asking(saving="80%")])
    assert small.text == (
        "it would save $0.0760 an hour, 79.1% of what it costs, less than the 80% that NodePool default asks for"
    )
    dollars = judged(SMALLER, "a", pools=[pool()], settings=Settings("test", thresholds=Thresholds(saving("0.08"))))
    assert dollars.text.endswith("less than the $0.08 that the settings ask for")
    late = judged(SMALLER, "a", pools=[asking(payback="1m")])
    assert late.text == (
        "it would save $0.0760 an hour and take 1m19s to earn back the $0.0017 that new nodes cost beside the old "
        "ones, longer than the 1m0s that NodePool default asks for"
    )


@pytest.mark.parametrize(("own", "expected"), [({}, "SavingTooSmall"), ({"saving": "0"}, "replace")])
def test_an_annotation_beats_the_setting(own: dict[str, str], expected: str) -> None:
    settings = Settings("test", thresholds=Thresholds(saving("90%")))
    assert code(judged(SMALLER, "a", pools=[asking(**own)], settings=settings)) == expected


def test_of_several_node_pools_the_strictest_decides() -> None:
    """Two nodes at $0.096 for one at $0.020: 89.5 % of both."""
    strict, mild = asking("strict", saving="90%"), asking("mild", saving="1%")
    for pools in ([strict, mild], [mild, strict]):
        found = judged(SMALLER, "a", "b", pools=pools)
        assert code(found) == "SavingTooSmall"
        assert "89.5% of what the nodes cost" in found.text
        assert "NodePool strict" in found.text
    assert code(judged(SMALLER, "a", "b", pools=[asking("strict", saving="89%"), mild])) == "replace"


def test_a_replacement_has_only_types_that_surely_save_enough() -> None:
    types = (*CATALOGUE, instance_type("m4.large", 90_000))
    both = on_new_nodes("t3.small", "m4.large", price=20_000)
    for wanted, kept in (({}, ("t3.small", "m4.large")), ({"saving": "10%"}, ("t3.small",))):
        found = judged(both, "a", pools=[asking(**wanted)], catalogues={"default": types})
        assert [new.instance_types for new in found.new] == [kept]
    payback = judged(both, "a", pools=[asking(payback="1h")], catalogues={"default": types})
    assert [new.instance_types for new in payback.new] == [("t3.small",)]


def test_that_nothing_is_cheaper_is_no_matter_of_what_is_asked_for() -> None:
    assert code(judged(on_new_nodes("m5.large"), "a", pools=[asking(saving="5%")])) == "NotCheaper"


def scattering(price: int, gone: int = 1) -> Solve:
    """All have room elsewhere; but where so many nodes go, the kube-scheduler may leave pods over."""

    def ask(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
        scattered = manner in (Manner.SCATTERED, Manner.SCATTERED_LARGE_FIRST) and len(exclude) >= gone
        return (on_new_nodes("t3.small", price=price) if scattered else elsewhere("z"))(pods, exclude, manner, *beside)

    return ask


@pytest.mark.parametrize(("wanted", "expected"), [("79%", "delete"), ("80%", "SavingTooSmall")])
def test_what_may_have_to_be_bought_for_pods_left_over_is_not_saved(wanted: str, expected: str) -> None:
    assert code(judged(scattering(20_000), "a", pools=[asking(saving=wanted)])) == expected


def test_a_node_that_costs_too_little_is_not_even_simulated() -> None:
    seen = view(snapshot([asking(saving="0.1"), *pair("a"), *pair("z")]))
    one = candidate(seen, "a")
    assert isinstance(one, Candidate)
    assert code(single(seen, one, Policy(seen), never)) == "SavingTooSmall"
    assert propose(snapshot([asking(saving="0.1"), *pair("a"), *pair("z")]), elsewhere("z")) == ()


def test_nodes_that_are_only_deleted_have_to_be_worth_it_each() -> None:
    """Together $0.212, but one of them saves two cents."""
    objects = [asking(saving="0.05"), *pair("a"), *pair("b", instance_type="t3.small"), *pair("c"), *pair("z")]
    found = consider(snapshot(objects), elsewhere("z"))
    assert sorted(p.candidates[0] for p in found.proposals) == ["a", "c"]
    assert found.kept["b"].code == "SavingTooSmall"


def test_fewer_go_when_all_together_would_bring_too_little() -> None:
    objects = [asking(saving="80%"), *pair("a"), *pair("b"), *pair("c"), *pair("z", consolidatable=False)]
    assert [p.candidates for p in propose(snapshot(objects), scattering(20_000, gone=2))][:2] == [("a",)]
    mild = [asking(saving="79%"), *objects[1:]]
    assert [p.candidates for p in propose(snapshot(mild), scattering(20_000, gone=2))] == [("a",), ("b",), ("c",)]


def test_what_is_asked_for_meanwhile_holds_a_proposal_up() -> None:
    objects = [pool(), *pair("a"), *pair("z", consolidatable=False)]
    found = propose(snapshot(objects), alone(SMALLER))
    world = World.of(*objects, ask=SMALLER, now=NOW + timedelta(seconds=15), facts={"proposals": found})
    assert started(world.plan()) == ["a"]
    world.add(asking(saving="90%"))
    plan = world.plan()
    assert started(plan) == []
    (said,) = [r.reason.text for r in plan.refusals if r.reason.code == "ConsolidationRejected"]
    assert "less than the 90% that NodePool default asks for" in said


def test_a_node_that_stays_for_its_sake_says_so() -> None:
    objects = [asking(saving="90%"), *pair("a"), *pair("z", consolidatable=False)]
    kept = consider(snapshot(objects), alone(SMALLER)).kept
    assert kept["a"].code == "SavingTooSmall"
    events = World.of(*objects, facts={"kept": kept}).plan().events
    assert {(e.ref.name, e.message) for e in events if e.reason == "Unconsolidatable"} == {
        ("a", kept["a"].text),
        ("node-a", kept["a"].text),
    }


# --- what cannot be read ------------------------------------------------------------------------------------------
def test_while_an_annotation_cannot_be_read_no_node_in_use_is_consolidated_and_that_is_told() -> None:
    objects = [asking(saving="much"), *pair("a"), *pair("b")]
    assert propose(snapshot(objects), elsewhere("b")) == ()
    told = {(e.ref.kind, e.reason, e.type) for e in World.of(*objects).plan().events}
    assert {("NodePool", "InvalidAnnotation", "Warning"), ("Node", "Unconsolidatable", "Normal")} <= told
    (words,) = {e.message for e in World.of(*objects).plan().events if e.ref.kind == "NodePool"}
    assert words == (
        "NodePool default: annotation kerf.sh/consolidation-minimum-saving must be a share such as 5% or dollars an "
        "hour such as 0.02, not 'much'; while that is so its nodes that are in use stay"
    )


# --- age ----------------------------------------------------------------------------------------------------------
def young(age: timedelta, /, **wanted: str) -> list[Any]:
    return [asking(**wanted), *pair("a", since=NOW - age), *pair("z", consolidatable=False)]


@pytest.mark.parametrize(("age", "goes"), [(29 * MINUTE, False), (30 * MINUTE, True)])
def test_a_node_in_use_stays_until_it_has_the_age(age: timedelta, goes: bool) -> None:
    assert bool(propose(snapshot(young(age, age="30m")), alone(SMALLER))) is goes
    setting = Settings("test", thresholds=Thresholds(minimum_age=30 * MINUTE))
    assert bool(propose(snapshot(young(age), settings=setting), alone(SMALLER))) is goes


def test_it_says_until_when_and_somebody_looks_again_then() -> None:
    plan = World.of(*young(10 * MINUTE, age="30m")).plan()
    assert plan.next_due is not None
    assert plan.next_due <= NOW + 20 * MINUTE
    (words,) = {e.message for e in plan.events if e.reason == "Unconsolidatable"}
    assert words == "it is younger than the 30m0s that NodePool default asks for, until 2026-03-04T12:20:00Z"


def test_an_empty_node_goes_however_young() -> None:
    one = claim("a", since=NOW - MINUTE)
    assert started(World.of(asking(age="24h"), one, node(one)).plan()) == ["a"]


def test_a_proposal_of_a_node_that_is_too_young_now_is_dropped() -> None:
    objects = young(HOUR)
    found = propose(snapshot(objects), alone(SMALLER))
    world = World.of(*objects, ask=SMALLER, now=NOW + timedelta(seconds=15), facts={"proposals": found})
    world.add(asking(age="2h"))
    assert started(world.plan()) == []
