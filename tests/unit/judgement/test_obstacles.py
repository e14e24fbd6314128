"""What is behind a hold: which pods have no room elsewhere and by which rule, what nodes cost, what budgets ask."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.judgement.values import Judgement
from kerf_api import labels
from tests.unit.disruption import markets
from tests.unit.disruption.worlds import NOW, PROTECTED, claim, node, pdb, pool
from tests.unit.judgement.test_remedies import APART, GPU, HALF_FULL, SPREAD
from tests.unit.judgement.yards import LARGE, end, judged, machine, on_demand, worker

HOST = "kubernetes.io/hostname"
AS_DEAR = "the cheapest new node for 1 pod: m5.large on-demand, for up to $0.0960 an hour; this one costs $0.0960"


def facts(world: Judgement, code: str) -> tuple[str, ...]:
    (one,) = [hold for hold in world.holds if hold.code == code]
    return one.facts


# --- which rule -------------------------------------------------------------------------------------------------
RULES: dict[str, tuple[list[Any], str]] = {
    "no other node": ([worker("w", "a", "1500m")], "there is no other node"),
    "resources": (
        [machine("b"), HALF_FULL, machine("c"), worker("v", "c", "900m", of="x"), worker("w", "a", "1500m")],
        "fits on none of the 2 other nodes: lacks cpu (2); nearest: node-c lacks 400m of cpu",
    ),
    "a spread": (
        [machine("b"), worker("v", "b", "100m"), worker("w", "a", "1100m", topologySpreadConstraints=SPREAD)],
        f"the other node violates its topology spread over {HOST}",
    ),
    "anti-affinity": (
        [machine("b"), worker("v", "b", "100m"), worker("w", "a", "1100m", affinity=APART)],
        f"the other node violates its pod anti-affinity over {HOST}",
    ),
    "anti-affinity of others": (
        [machine("b"), worker("v", "b", "100m", affinity=APART), worker("w", "a", "1100m")],
        f"the other node has pods with anti-affinity to it over {HOST}",
    ),
    "a taint": (
        [machine("b", taints=[GPU]), worker("w", "a", "1500m")],
        "the other node has a taint that it does not tolerate",
    ),
    "a host port": (
        [machine("b"), worker("v", "b", "100m", port=80), worker("w", "a", "1100m", port=80)],
        "the other node has its host ports in use",
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_the_rule_is_named(name: str) -> None:
    objects, words = RULES[name]
    told = facts(judged(on_demand(LARGE), machine("a"), *objects), "NotCheaper")
    assert told == (f"pod shop/w of Deployment web: {words}", AS_DEAR)


def test_nodes_that_are_not_at_rest_take_no_pods() -> None:
    young = machine("b", since=NOW, consolidatable=False)
    world = judged(on_demand(LARGE, consolidateAfter="1h"), machine("a"), young, worker("w", "a", "1100m"))
    words = "the other node had pods added or removed a moment ago (consolidateAfter)"
    assert facts(world, "NotCheaper")[0] == f"pod shop/w of Deployment web: {words}"


def test_pods_with_one_answer_share_a_line() -> None:
    pods = [worker(f"w{n}", "a", "600m") for n in range(3)]
    (line, cost) = facts(judged(on_demand(LARGE), machine("a"), *pods), "NotCheaper")
    assert line == "3 pods of Deployment shop/web: there is no other node"
    assert cost.startswith("the cheapest new node for 3 pods: ")


def test_of_many_workloads_those_with_most_pods_are_told_of() -> None:
    sizes = {of: f"{100 + number}m" for number, of in enumerate("abcdefghijkl")}
    pods = [worker(f"{of}-{n}", "a", cpu, of=of) for of, cpu in sizes.items() for n in range(3 if of == "l" else 1)]
    lines = facts(judged(on_demand(LARGE), machine("a"), *pods), "NotCheaper")
    assert lines[0] == "3 pods of Deployment shop/l: there is no other node"
    assert lines[10:-1] == ("further pods that fit on no other node: 2",)


def test_pods_of_nobody_are_named() -> None:
    pods = [worker(f"w{n}", "a", "600m", of="") for n in range(2)]
    alike = [replace(one, metadata=replace(one.metadata, labels={"app": "x"})) for one in pods]
    (line, _) = facts(judged(on_demand(LARGE), machine("a"), *alike), "NotCheaper")
    assert line == "pods shop/w0, shop/w1: there is no other node"


def test_of_pods_without_any_place_nodepools_say_why() -> None:
    world = judged(on_demand(), machine("a"), worker("w", "a", "500m", nodeSelector={"disk": "ssd"}))
    assert facts(world, "PodsWouldNotSchedule") == (
        "pod shop/w of Deployment web: there is no other node",
        'pod shop/w of Deployment web: NodePool default: incompatible requirements, label "disk" does not have known '
        "values (without disk, 3 instance types would do)",
    )


def test_the_nodes_that_would_come_are_counted_in_dollars() -> None:
    world = judged(on_demand(), machine("a"), worker("v", "a", "700m"), worker("w", "a", "700m"))
    small = "the cheapest new node for 1 pod: t3.small on-demand, for up to $0.0200 an hour; this one costs $0.0960"
    assert facts(world, "TooManyNodes")[1:] == (small, small)


def test_min_values_are_counted() -> None:
    two = {"key": labels.INSTANCE_TYPE, "operator": "Exists", "minValues": 2}
    world = judged(on_demand(two), machine("a"), worker("w", "a", "500m"))
    counted = f"NodePool default requires 2 values of {labels.INSTANCE_TYPE} (minValues); the cheaper types have 1"
    assert facts(world, "MinValues")[-1] == counted


def test_a_node_without_a_price_says_so() -> None:
    own = claim("a")
    elsewhere = {**own.metadata.labels, labels.ZONE: "us-west-2z"}
    own = replace(own, metadata=replace(own.metadata, labels=elsewhere))
    world = judged(on_demand(), own, node(own), worker("w", "a", "500m"))
    assert facts(world, "NotCheaper")[-1].endswith("; this one has no known price")


# --- the others -------------------------------------------------------------------------------------------------
def test_a_pod_disruption_budget_says_what_it_asks_for_and_what_there_is() -> None:
    budget = pdb("x", minAvailable=2)
    counts = replace(budget.status, current_healthy=1, desired_healthy=2, expected_pods=3)
    world = judged(on_demand(), machine("a"), worker("w", "a", "500m"), replace(budget, status=counts))
    assert facts(world, "PodDisruptionBudget") == ("minAvailable 2: 1 of 3 pods are healthy, 2 must be",)


def test_a_pod_disruption_budget_of_which_nothing_is_known_yet() -> None:
    world = judged(on_demand(), machine("a"), worker("w", "a", "500m"), pdb("x", maxUnavailable=0))
    assert facts(world, "PodDisruptionBudget") == ("maxUnavailable 0",)


def test_a_move_that_is_not_worth_it_says_its_score() -> None:
    many = [worker(f"w{n}", "a", "50m") for n in range(20)]
    others = [machine("b", instance_type="m5.xlarge"), HALF_FULL, machine("c"), worker("third", "c", "1500m", of="x")]
    world = judged(on_demand(consolidationPolicy="Balanced"), machine("a"), *others, *many)
    assert facts(world, "NotWorthIt") == (
        "NodePool default would save 25.0 % of its cost ($0.0960 an hour)",
        "for 84.0 % of its disruption: a score of 0.30, where 0.5 is required",
    )


def test_a_budget_says_which_row_it_is_and_until_when() -> None:
    night = {"nodes": "0", "schedule": "0 9 * * *", "duration": "8h"}
    world = judged(pool(budgets=[{"nodes": "50%"}, night]), machine("a"), worker("w", "a", "500m"))
    (hold,) = [hold for hold in end(world).holds if hold.code == "Budget"]
    assert hold.text.endswith(": 0 of 1 node allowed (budgets[1]: nodes 0, schedule '0 9 * * *' for 8h)")
    assert hold.until is not None


def test_what_speaks_for_itself_has_no_more_to_say() -> None:
    world = judged(on_demand(), machine("a"), worker("w", "a", "500m", annotations=PROTECTED))
    assert facts(world, "PodDoNotDisrupt") == ()


# --- reserved capacity ------------------------------------------------------------------------------------------
def test_a_reserved_node_is_said_to_cost_nothing_more() -> None:
    large = markets.machine("m.large", 4, 192_000, reserved={"cr-1": 1}, free=True)
    world = judged(
        pool(),
        markets.host("a", large, capacity_type=labels.RESERVED),
        worker("w", "a", "1500m"),
        catalogues={"default": (large,)},
    )
    new = "the cheapest new node for 1 pod: m.large reserved, for up to $0.0000 an hour ($0.1920 on demand)"
    own = "this one is on reserved capacity, which costs nothing more ($0.1920 on demand)"
    assert any(fact == f"{new}; {own}" for hold in (*world.holds, *end(world).holds) for fact in hold.facts)


def test_a_reserved_node_may_go_for_a_smaller_reservation() -> None:
    large = markets.machine("m.large", 4, 192_000, reserved={"cr-1": 0}, free=True)
    small = markets.machine("m.small", 2, 96_000, reserved={"cr-2": 1}, free=True)
    world = judged(
        pool(),
        markets.host("a", large, capacity_type=labels.RESERVED),
        worker("w", "a", "1500m"),
        catalogues={"default": (large, small)},
    )
    assert (world.code, end(world).saving) == ("MayGo", 0)
    assert end(world).text == "a smaller capacity reservation is enough: saves no money"
