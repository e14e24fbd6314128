"""The views: rows of nodes and NodePools, costs, pending pods, disruptions, and the order of the list."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.disrupt import forced_ends
from kerf.disruption.view import view
from kerf.judgement.ends import ends_of, known_ends
from kerf.judgement.values import End
from kerf.model.snapshot import Proposal, Snapshot
from kerf.provisioning.why import why
from kerf.views import upcoming
from kerf.views.board import Board, board
from kerf.views.cluster import Use, Workload
from kerf.views.costs import UNLABELED
from kerf.views.order import ORDERS, Filter, listed
from tests.unit.disruption.worlds import NOW, claim, drifted, node, pdb, pool, rolling, snapshot
from tests.unit.judgement.yards import worker
from tests.unit.views import worlds

GIB = 2**30
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def found() -> Board:
    return board(worlds.cluster())


def test_requests_of_a_node_are_those_of_its_pods(found: Board) -> None:
    a, b = found.node("node-a"), found.node("node-b")
    assert a is not None
    assert b is not None
    assert (a.cpu, b.cpu) == (Use(2000, 1100, 100), Use(2000, 100, 100))
    assert (a.cpu.percent, a.cpu.percent_of_daemons, a.cpu.free) == (55, 5, 900)
    assert (a.memory.allocatable, a.pods, b.pods, a.state) == (8 * GIB, 3, 1, "Ready")
    assert a.workloads == (
        Workload("batch", "Deployment", "etl", 1),
        Workload("shop", "DaemonSet", "agent", 1),
        Workload("shop", "Deployment", "web", 1),
    )
    assert a.age == timedelta(hours=1)


def test_a_blocker_is_the_reason_why_a_node_stays() -> None:
    rows = board(worlds.cluster(pdb("keep", app="web"))).nodes
    assert rows[0].stays == "PodDisruptionBudget shop/keep allows no disruption now: shop/web-1"


def _stays(*objects: Any, **facts: Any) -> str:
    one = claim("a", **facts)
    return board(snapshot([one, node(one), *objects])).nodes[0].stays


def test_a_node_without_a_blocker_shows_its_disruption_and_the_time() -> None:
    empty = "no reschedulable pods; can be removed"
    assert _stays(pool()) == f"{empty} now"
    assert _stays(pool(), since=NOW - timedelta(seconds=5)).endswith("can be removed from 2026-03-04T12:00:10Z on")
    assert _stays(pool(), drifted=NOW - DAY).endswith("; can be replaced now")
    assert _stays(pool(), worker("web", "a", "500m")) == "no cheaper placement of its pods is known"


def test_a_budget_shows_the_time_at_which_it_allows_the_disruption() -> None:
    closed = {"nodes": "0", "schedule": "0 9 * * *", "duration": "4h"}
    shown = _stays(pool(budgets=[{"nodes": "1"}, closed]))
    assert "udget" in shown
    assert shown.endswith("; can be removed from 2026-03-04T13:00:00Z on")
    assert "can be" not in _stays(pool(budgets=[{"nodes": "0"}]))


def test_a_proposed_consolidation_is_shown() -> None:
    a = claim("a")
    proposals = (Proposal("1", "Underutilized", "delete", ("a",), (), 5000, {}, made_at=None),)
    found = snapshot([pool(), a, node(a), worker("web", "a", "500m")], proposals=proposals)
    assert board(found).nodes[0].stays.endswith("; can be consolidated now")


def test_a_node_that_is_not_in_use_shows_its_stage() -> None:
    one = claim("a")
    row = board(snapshot([pool(), one])).nodes[0]
    assert row.stays == row.stage.text != ""


def test_nodes_on_their_way_show_their_stage() -> None:
    going = claim("c")
    going = replace(going, metadata=replace(going.metadata, deletion_timestamp=NOW, finalizers=("x",)))
    (row,) = [row for row in board(worlds.cluster(going, node(going, ready=False))).nodes if row.name == "node-c"]
    assert (row.ready, row.ends, row.state) == (False, (), "Terminating")


def test_a_node_without_a_known_price_is_counted_apart() -> None:
    strange = claim("s", instance_type="x99.metal")
    (pool_row,) = board(worlds.cluster(strange, node(strange))).pools
    assert (pool_row.nodes, pool_row.unpriced, pool_row.price > 0) == (3, 1, True)


def test_costs_add_up_to_the_price_of_the_nodes(found: Board) -> None:
    costs = found.costs
    assert costs.total == found.price == sum(row.machine.price or 0 for row in found.nodes)
    for rows in (costs.by_namespace, costs.by_label):
        assert sum(row.price for row in rows) + costs.unused == costs.total


def test_costs_follow_requests(found: Board) -> None:
    a = found.node("node-a")
    assert a is not None
    half = (a.machine.price or 0) // 2
    prices = {row.name: row.price for row in found.costs.by_namespace}
    assert prices["batch"] == half * 500 // 2000
    assert {row.name: row.pods for row in found.costs.by_label} == {"checkout": 1, UNLABELED: 3}


def test_another_label_divides_the_costs_otherwise() -> None:
    names = {row.name for row in board(worlds.cluster(), "app").costs.by_label}
    assert names == {"web", "etl", "agent"}


def test_pending_pods_of_one_workload_and_reason_are_one_group() -> None:
    pending = [worlds.waiting(f"huge-{n}", "900", of="huge") for n in range(3)]
    small = worlds.waiting("small", "100m", of="small")
    asked = worlds.cluster(*pending, small)
    huge, other = board(asked).pending
    assert huge.pods == ("shop/huge-0", "shop/huge-1", "shop/huge-2")
    assert (huge.answer.code, other.pods) == ("Refused", ("shop/small",))
    assert huge.answer.text == why(asked, "shop/huge-0").text
    assert other.answer.code == why(asked, "shop/small").code == "Placed"


def test_a_gated_pod_is_listed_with_its_edit() -> None:
    gated = worker("gated", "", "1", of="gated", schedulingGates=[{"name": "example.com/hold"}], phase="Pending")
    (group,) = board(worlds.cluster(gated)).pending
    assert (group.answer.code, len(group.answer.patches)) == ("LeftOut", 1)


def _states(asked: Snapshot) -> dict[str, tuple[str, str]]:
    return {one.node: (one.state, one.reason) for one in reversed(board(asked).disruptions)}


def test_an_empty_node_is_due() -> None:
    assert _states(worlds.cluster())["node-b"] == (upcoming.DUE, "Empty")


def test_a_budget_is_named_apart_from_other_blockers() -> None:
    closed = pool(budgets=[{"nodes": "0"}])
    rows = {one.node: one for one in board(worlds.cluster(closed)).disruptions if one.reason == "Empty"}
    assert rows["node-b"].state == upcoming.BLOCKED
    assert "budgets[0]: nodes 0" in rows["node-b"].budget
    assert not any("budgets[0]" in text for text in rows["node-b"].blockers)


def test_an_expiration_of_another_day_is_later() -> None:
    young = claim("y", expireAfter="720h")
    asked = worlds.cluster(young, node(young), worker("y-1", "y", "500m", of="y"))
    (row,) = [one for one in board(asked).disruptions if one.node == "node-y"]
    assert (row.state, row.forceful) == (upcoming.LATER, True)
    assert row.at is not None
    assert row.at > NOW + 20 * DAY


def test_a_proposal_is_shown_with_its_saving() -> None:
    proposal = Proposal("1", "Underutilized", "delete", ("a",), (), 5000, {}, made_at=NOW)
    rows = {one.reason: one for one in board(worlds.cluster(proposals=(proposal,))).disruptions}
    assert (rows["Underutilized"].node, rows["Underutilized"].saving) == ("node-a", 5000)


def test_disruptions_are_in_order_of_their_state() -> None:
    young = claim("y", expireAfter="720h")
    asked = worlds.cluster(young, node(young), worker("y-1", "y", "500m", of="y"), *drifted("d"), rolling())
    states = [one.state for one in board(asked).disruptions]
    order = [upcoming.RUNNING, upcoming.DUE, upcoming.BLOCKED, upcoming.LATER]
    assert states == sorted(states, key=order.index)


@pytest.mark.parametrize(
    "asked",
    [
        snapshot([rolling(), *drifted("d")]),
        snapshot([pool(), *drifted("d"), worker("web", "d", "500m")]),
        snapshot([pool(consolidateAfter="Never"), claim("d"), node(claim("d"))]),
        worlds.cluster(),
    ],
    ids=["drifted", "protected", "never", "plain"],
)
def test_known_ends_have_the_blockers_of_a_whole_judgement(asked: Snapshot) -> None:
    """A simulation may add blockers; it takes none away."""
    seen = view(asked)
    for key in asked.state_nodes:
        known = {end.code: end for end in known_ends(seen, key, forced_ends(asked, seen.turn))}
        whole = {end.code: end for end in ends_of(seen, key)}
        assert {*known} == {*whole}
        assert all(_codes(known[code]) <= _codes(whole[code]) for code in known)


def _codes(end: End) -> set[str]:
    return {hold.code for hold in end.holds}


def test_filters_and_orders(found: Board) -> None:
    names = [row.name for row in listed(found.nodes, Filter(text="ETL"))]
    assert names == ["node-a"]
    assert listed(found.nodes, Filter(nodepool="other")) == listed(found.nodes, Filter(zone="nowhere")) == []
    assert [row.name for row in listed(found.nodes, Filter(), "free")] == ["node-b", "node-a"]
    assert all(len(listed(found.nodes, Filter(), order)) == 2 for order in ORDERS)
    with pytest.raises(KeyError):
        listed(found.nodes, Filter(), "bogus")


def test_counts_of_the_board(found: Board) -> None:
    assert (found.pods, found.waiting, found.urgent, found.node("nope")) == (4, 0, 1, None)
    assert [one.pool for one in found.budgets] == ["default"]
