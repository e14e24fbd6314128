"""What is said of nodes that stay and of those that could go (92, 93 and 109 of the disruption catalogue)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kerf.disruption.disrupt import disrupt
from kerf.disruption.propose import propose
from kerf.model.plan import Event, Plan
from kerf.model.settings import FeatureGates, Settings
from tests.unit.disruption import markets as m
from tests.unit.disruption import worlds as w

LARGE, ROOMY, CHEAP = (
    m.machine("m.large", 4, 200_000),
    m.machine("c.roomy", 8, 250_000),
    m.machine("t.cheap", 1, 10_000),
)
TYPES = (LARGE, ROOMY, CHEAP)
LATER = w.NOW + timedelta(seconds=15)
STATIC = Settings("test", gates=FeatureGates(static_capacity=True))


def said(plan: Plan, reason: str) -> list[Event]:
    return [event for event in plan.events if event.reason == reason]


def names(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.ref.kind, event.ref.name) for event in events]


def one(own: Any, *pods: Any, **of_claim: Any) -> list[Any]:
    return [own, *m.host("a", LARGE, **of_claim), *pods]


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"consolidationPolicy": "WhenEmpty"}, "consolidationPolicy of NodePool default is WhenEmpty"),
        ({"consolidateAfter": "Never"}, "consolidateAfter of NodePool default is Never"),
        ({"consolidationPolicy": "WhenEmptyOrUnderutilized"}, ""),
        ({"consolidationPolicy": "Balanced"}, ""),
    ],
)
def test_092_a_pool_that_does_not_consolidate_says_so_of_its_nodes(own: dict[str, Any], words: str) -> None:
    """Node and NodeClaim hear it, and nothing happens to them."""
    rests = own.get("consolidateAfter") != "Never"
    world = one(w.pool(**own), m.pod("1", "a"), consolidatable=rests)
    facts: dict[str, Any] = {"catalogues": {"default": TYPES}}
    found = propose(w.snapshot(world, **facts))
    plan = disrupt(w.snapshot(world, proposals=found, now=LATER, **facts))
    told = said(plan, "Unconsolidatable")
    assert names(told) == ([("Node", "node-a"), ("NodeClaim", "a")] if words else [])
    assert all(event.message.startswith(words) for event in told)
    assert bool(w.started(plan)) is (not words)


@pytest.mark.parametrize("label", ["node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"])
def test_092_a_node_of_which_too_little_is_known_says_so(label: str) -> None:
    claim, node = m.host("a", LARGE)
    world = w.World.of(w.pool(), claim, node, m.pod("1", "a"), facts={"catalogues": {"default": TYPES}})
    world.edit("node/node-a", {"metadata": {"labels": {label: None}}})
    assert names(said(world.plan(), "Unconsolidatable")) == [("Node", "node-a"), ("NodeClaim", "a")]


def test_093_nodes_of_static_pools_are_never_consolidated() -> None:
    """Nor marked as such, nor is anything said of it."""
    world = one(w.pool(replicas=1), m.pod("1", "a"))
    facts: dict[str, Any] = {"catalogues": {"default": TYPES}, "settings": STATIC}
    assert propose(w.snapshot(world, **facts), w.never) == ()
    assert said(disrupt(w.snapshot(world, **facts)), "Unconsolidatable") == []
    fresh = w.World.of(*one(w.pool(replicas=1), m.pod("1", "a"), consolidatable=False), facts=facts)
    fresh.settle()
    assert not fresh.claim("a").is_true("Consolidatable")
    other = w.World.of(*one(w.pool(), m.pod("1", "a"), consolidatable=False), facts=facts)
    other.settle()
    assert other.claim("a").is_true("Consolidatable")


# --- moves ------------------------------------------------------------------------------------------------------
def several(policy: str = "Balanced") -> list[Any]:
    """Three nodes for which one would do."""
    nodes = [each for name in "abc" for each in m.host(name, LARGE)]
    return [w.pool(consolidationPolicy=policy), *nodes, *(m.pod(name, name, cpu="2500m") for name in "abc")]


def planned(objects: list[Any], *more: Any, **facts: Any) -> Plan:
    """What is decided when what was found has stood its time, and these have come."""
    own: dict[str, Any] = {"catalogues": {"default": TYPES}, **facts}
    found = propose(w.snapshot(objects, **own))
    assert found
    return disrupt(w.snapshot([*objects, *more], proposals=found, now=LATER, **own))


def test_a_node_for_which_something_cheaper_was_found_hears_of_it() -> None:
    told = said(planned(one(w.pool(), m.pod("1", "a"))), "ConsolidationCandidate")
    assert names(told) == [("Node", "node-a"), ("NodeClaim", "a")]
    evicts = "evicts 1 pod: shop/{}, which no controller creates again"
    assert told[0].message == f"Could be replaced: the replacement saves $0.1900 an hour; {evicts.format('1')}"
    together = said(planned(several()), "ConsolidationCandidate")
    saves = "Could be replaced together with 2 other nodes: the replacement saves $0.3500 an hour"
    assert together[0].message == f"{saves}; {evicts.format('a')}"
    deleted = [w.pool(), *m.host("a", LARGE), *m.host("b", LARGE), m.pod("1", "a"), m.pod("2", "b")]
    assert said(planned(deleted, catalogues={"default": (LARGE,)}), "ConsolidationCandidate") == []


def test_a_move_that_is_dropped_says_why() -> None:
    """Something has come, the budget is closed, or the pods would not fit any more; and nothing begins."""
    world = one(w.pool(), m.pod("1", "a"))
    stuck = m.pod("1", "a", cpu="3900m")
    found = {
        "churn": planned(world, m.pod("late", "a")),
        "budget": planned(world, w.pool(budgets=[{"nodes": "0"}])),
        "scheduling": planned(world, stuck),
    }
    for why, plan in found.items():
        assert w.started(plan) == []
        told = said(plan, "ConsolidationRejected")
        assert names(told) == [("Node", "node-a"), ("NodeClaim", "a")]
        assert told[0].message.startswith(f"{why}: ")


def test_a_command_that_is_taken_back_says_why() -> None:
    world = w.World.of(*one(w.pool(), m.pod("1", "a")), now=LATER, ask=None)
    own: dict[str, Any] = {"catalogues": {"default": TYPES}}
    world.facts = {**own, "proposals": propose(w.snapshot(world.objects.values(), **own))}
    world.tick()
    world.facts = own
    world.add(m.pod("late", "a"))
    told = said(world.tick(), "ConsolidationRejected")
    assert names(told) == [("Node", "node-a"), ("NodeClaim", "a")]
    assert told[0].message == "churn: pod shop/late was bound to the node"


@pytest.mark.parametrize("policy", ["Balanced", "WhenEmptyOrUnderutilized"])
def test_109_a_balanced_pool_says_by_what_score_a_move_was_approved(policy: str) -> None:
    """Of several nodes the pool does, of one its Node and NodeClaim; a move that is not approved is not found."""
    told = said(planned(several(policy)), "ConsolidationApproved")
    single = said(planned(one(w.pool(consolidationPolicy=policy), m.pod("1", "a"))), "ConsolidationApproved")
    if policy != "Balanced":
        assert (told, single) == ([], [])
        return
    assert names(told) == [("NodePool", "default")]
    share = "NodePool default saves 58.3 % of its cost for 100.0 % of its disruption"
    assert told[0].message == f"Score 0.58 (at least 0.5 is asked, k = 2): {share}"
    assert names(single) == [("Node", "node-a"), ("NodeClaim", "a")]


def test_109_a_move_that_was_not_worth_it_is_not_reported() -> None:
    little = m.machine("t.little", 4, 190_000)
    world = one(w.pool(consolidationPolicy="Balanced"), m.pod("1", "a", cpu="3500m"))
    facts: dict[str, Any] = {"catalogues": {"default": (LARGE, little)}}
    found = propose(w.snapshot(world, **facts))
    assert found == ()
    plan = disrupt(w.snapshot(world, now=LATER, proposals=found, **facts))
    assert {event.reason for event in plan.events} == set()
