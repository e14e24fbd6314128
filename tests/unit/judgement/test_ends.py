"""What would end a node that is in use and what holds it, one test per wish and per blocker; and the verdict."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.asking import Solve
from kerf.disruption.command import Failure
from kerf.disruption.disrupt import disrupt
from kerf.disruption.forced.expiration import end_of
from kerf.judgement.judge import why
from kerf.judgement.values import End, Judgement
from kerf.model.annotations import text_of
from kerf.model.plan import Source
from kerf.model.settings import FeatureGates, Settings
from kerf.model.snapshot import Batch, Proposal
from kerf_api import labels
from kerf_api.v1.meta import Condition
from tests.unit.disruption.worlds import (
    HOUR,
    NOW,
    claim,
    condition,
    elsewhere,
    node,
    nowhere,
    on_new_nodes,
    pdb,
    pod,
    pool,
    snapshot,
    stamp,
    torn,
)

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
PROTECTED = {labels.DO_NOT_DISRUPT: "true"}


def judged(*objects: Any, ask: Solve = nowhere, name: str = "a", **facts: Any) -> Judgement:
    return why(snapshot(objects, **facts), name, ask)


def plain(**spec: Any) -> list[Any]:
    a = claim("a", **spec)
    return [pool(), a, node(a)]


def end(found: Judgement, code: str) -> End:
    (one,) = [end for end in found.ends if end.code == code]
    return one


def codes(one: End) -> list[str]:
    return [hold.code for hold in one.holds]


def gates(**open_: bool) -> Settings:
    return Settings("test", gates=FeatureGates(**open_))


# --- wishes -----------------------------------------------------------------------------------------------------
def test_an_empty_node_may_go() -> None:
    found = judged(*plain())
    assert (found.code, found.text) == ("MayGo", "can be disrupted now (Empty: no reschedulable pods)")
    assert end(found, "Empty").earliest(NOW) == NOW


def test_a_node_that_has_been_empty_for_a_moment_goes_when_that_has_stood() -> None:
    found = judged(*plain(since=NOW - timedelta(seconds=5)))
    assert (found.code, found.at) == ("Due", NOW + timedelta(seconds=10))


def test_an_expiration_is_told_to_the_second_however_far_away() -> None:
    one = claim("a", expireAfter="720h")
    found = judged(pool(), one, node(one), pod("web", "a"))
    ahead = end_of(snapshot([]), one, NOW + 31 * DAY)
    assert ahead is not None
    assert (found.code, found.at) == ("Stays", ahead.at)
    successor = f"its successor is made ready from {stamp(ahead.prepared_from)} on"
    assert end(found, "Expired").text == f"expireAfter is 720h, {successor}"


def test_a_claim_that_has_announced_its_end_says_what_became_of_its_successor() -> None:
    one = claim("a", since=NOW - timedelta(hours=1), expireAfter="62m")
    row = Condition(type="Expiring", status="True", reason="NoPlaceForPods", message="no successor: no room")
    one = replace(one, status=replace(one.status, conditions=(*one.status.conditions, row)))
    found = judged(pool(), one, node(one), pod("web", "a"))
    assert end(found, "Expired").text == "expireAfter is 62m; NoPlaceForPods: no successor: no room"


def test_budgets_hold_expiration_where_they_are_to() -> None:
    one = claim("a", since=NOW - 2 * HOUR, expireAfter="1h")
    closed = pool(budgets=[{"nodes": "0"}])
    found = judged(closed, one, node(one), settings=Settings("test", expire_within_budgets=True))
    assert (found.code, codes(end(found, "Expired"))) == ("Stays", ["Budget"])
    assert found.budgets is not None
    assert [row.reason for row in found.budgets.allowances][-1] == "Expired"
    assert judged(closed, one, node(one)).code == "MayGo"


def test_what_expires_now_goes_whatever_holds_it() -> None:
    one = claim("a", since=NOW - 2 * HOUR, expireAfter="1h")
    found = judged(pool(), one, node(one), pod("web", "a", annotations=PROTECTED))
    assert (found.code, found.text) == ("MayGo", "is terminated now (Expired: older than its expireAfter of 1h)")
    assert [one.code for one in found.ends].count("Expired") == 1


def test_a_drifted_node_names_the_field_that_changed() -> None:
    template: dict[str, Any] = {"startupTaints": [{"key": "new", "effect": "NoSchedule"}]}
    one = claim("a", drifted=NOW - HOUR, expireAfter="24h", **template)
    found = judged(pool(), one, node(one), pod("web", "a"), ask=elsewhere("b"))
    text = end(found, "Drifted").text
    assert text == "NodePoolDrifted: startupTaints has lost new:NoSchedule; expireAfter was 24h, now 720h"
    assert found.text.startswith("can be disrupted now (Drifted: NodePoolDrifted")


def test_a_node_outside_its_pools_requirements_names_the_label() -> None:
    one = claim("a", drifted=NOW - HOUR)
    rows = tuple(replace(c, reason="RequirementsDrifted") if c.type == "Drifted" else c for c in one.status.conditions)
    one = replace(one, status=replace(one.status, conditions=rows))
    wanted = {"key": labels.ZONE, "operator": "In", "values": ["us-west-2b"]}
    found = judged(pool(requirements=[wanted]), one, node(one))
    zone = "label topology.kubernetes.io/zone is 'us-west-2a', the NodePool requires"
    assert f"RequirementsDrifted: {zone} topology.kubernetes.io/zone In [us-west-2b]" == end(found, "Drifted").text


def test_a_drifted_node_whose_pods_have_no_place_stays() -> None:
    found = judged(*plain(drifted=NOW - HOUR), pod("web", "a"))
    assert (found.code, codes(end(found, "Drifted"))) == ("Stays", ["PodsWouldNotSchedule"])


def test_a_cheaper_place_is_told_with_what_it_saves() -> None:
    found = judged(*plain(), pod("web", "a"), ask=on_new_nodes("t3.small"))
    assert end(found, "Underutilized").text == "a cheaper node is enough: saves $0.0760 an hour"
    assert found.code == "MayGo"
    assert end(judged(*plain(), pod("web", "a"), ask=elsewhere("b")), "Underutilized").text.startswith("its pods fit")


def test_no_cheaper_place_is_the_hold_of_a_busy_node() -> None:
    found = judged(*plain(), pod("web", "a"), ask=on_new_nodes("m5.xlarge"))
    assert (found.code, found.text) == ("Stays", "stays: no replacement would be cheaper")


def test_a_saving_that_is_too_little_is_told_with_what_is_asked_for() -> None:
    a, b = claim("a"), claim("b")
    strict = pool(annotations={labels.MINIMUM_SAVING: "90%"})
    found = judged(strict, a, node(a), b, node(b), pod("web", "a"), ask=on_new_nodes("t3.small"))
    assert end(found, "Underutilized").text == "its savings would be too small"
    assert (found.code, codes(end(found, "Underutilized"))) == ("Stays", ["SavingTooSmall"])


def test_a_node_that_is_too_young_says_until_when() -> None:
    a, b = claim("a", since=NOW - 10 * MINUTE), claim("b")
    old = pool(annotations={labels.MINIMUM_AGE: "30m"})
    found = judged(old, a, node(a), b, node(b), pod("web", "a"), ask=on_new_nodes("t3.small"))
    (hold,) = end(found, "Underutilized").holds
    assert (hold.code, hold.until) == ("TooYoung", NOW + 20 * MINUTE)
    assert end(found, "Underutilized").wanted


def test_a_proposal_that_has_not_stood_its_time_says_until_when() -> None:
    made = NOW - timedelta(seconds=5)
    proposal = Proposal("p", "Underutilized", "delete", ("a",), (), 1, {}, made_at=made)
    found = judged(*plain(), pod("web", "a"), ask=elsewhere("b"), proposals=(proposal,))
    assert (found.code, found.at) == ("Due", NOW + timedelta(seconds=10))


def sick(**facts: Any) -> Judgement:
    a = claim("a")
    row = condition("Ready", NOW - 10 * MINUTE, status="False")
    return judged(pool(), a, node(a, conditions=[row]), pod("web", "a"), **facts)


def test_a_sick_node_says_until_when_it_is_borne_and_that_the_gate_may_be_closed() -> None:
    found = sick(settings=gates(node_repair=True))
    assert (found.code, found.at) == ("Due", NOW + 20 * MINUTE)
    assert codes(end(sick(), "Unhealthy")) == ["NodeRepairOff"]


def test_the_breaker_holds_a_repair() -> None:
    claims = [claim(name) for name in "abc"]
    row = condition("Ready", NOW - HOUR, status="False")
    nodes = [node(one, conditions=[row]) for one in claims]
    found = judged(pool(), *claims, *nodes, pod("web", "a"), settings=gates(node_repair=True))
    assert codes(end(found, "Unhealthy")) == ["NodeRepairBlocked"]
    assert "3 of 3 nodes of NodePool default are unhealthy" in end(found, "Unhealthy").holds[0].text


def test_the_surplus_of_a_static_pool_goes() -> None:
    a, b = claim("a"), claim("b")
    found = judged(pool(replicas=1), a, node(a), b, node(b), settings=gates(static_capacity=True))
    assert end(found, "ScaledDown").forceful
    assert found.text == "is terminated now (ScaledDown: NodePool default has more than 1 replica)"


# --- what holds it ----------------------------------------------------------------------------------------------
def test_everything_that_holds_a_node_is_told_at_once() -> None:
    failed = {labels.COMMAND_FAILED: text_of(Failure(at=NOW))}
    one = claim("a", drifted=NOW - HOUR, annotations=failed)
    found = judged(
        pool(budgets=[{"nodes": "0"}]),
        one,
        node(one, annotations=PROTECTED),
        pod("db-0", "a"),
        pod("db-1", "a"),
        pod("job", "a", labels_={"app": "job"}, annotations={labels.DO_NOT_DISRUPT: "90m"}),
        pod("run", "a", labels_={"app": "run"}, annotations=PROTECTED),
        pdb("keep"),
        nominated_until={"a": NOW + MINUTE},
    )
    holds = {hold.code: hold for hold in found.holds}
    assert codes(end(found, "Drifted")) == [
        "Nominated",
        "NodeDoNotDisrupt",
        "PodDoNotDisrupt",
        "PodDoNotDisrupt",
        "PodDisruptionBudget",
        "BackingOff",
        "PodsWouldNotSchedule",
        "Budget",
    ]
    assert holds["Nominated"].until == NOW + MINUTE
    assert holds["PodDisruptionBudget"].pods == ("shop/db-0", "shop/db-1")
    assert [h.until for h in found.holds if "shop/job" in h.text] == [NOW + 30 * MINUTE]
    assert [h.until for h in found.holds if "shop/run" in h.text] == [None]
    assert holds["BackingOff"].until == NOW + MINUTE
    assert found.text == f"stays: the node is annotated {labels.DO_NOT_DISRUPT}, and {len(found.holds) - 1} more"


@pytest.mark.parametrize(
    ("expected", "disruption", "facts"),
    [
        ("WhenEmpty", {"consolidationPolicy": "WhenEmpty"}, {}),
        ("ConsolidationDisabled", {"consolidateAfter": "Never"}, {}),
        ("StaticNodePool", {"replicas": 1}, {}),
        ("NotWorthIt", {"consolidationPolicy": "Balanced"}, {}),
        ("NodePoolNotFound", {}, {"catalogues": {}}),
        ("StaleSource", {}, {"fresh_at": dict.fromkeys(set(Source) - {Source.PDBS}, NOW)}),
        ("PodsPending", {}, {"batch": Batch(NOW, NOW, maiden=True)}),
    ],
)
def test_what_keeps_consolidation_away(expected: str, disruption: dict[str, Any], facts: dict[str, Any]) -> None:
    a, b = claim("a"), claim("b", instance_type="m5.xlarge")
    heavy = pod("web", "a", priority=2_000_000_000)
    found = judged(pool(**disruption), a, node(a), b, node(b), heavy, ask=on_new_nodes("t3.small"), **facts)
    assert expected in codes(end(found, "Underutilized"))
    assert found.code == "Stays"


def test_a_consolidate_after_says_until_when() -> None:
    one = replace(claim("a", consolidatable=False))
    one = replace(one, status=replace(one.status, last_pod_event_time=NOW - MINUTE))
    found = judged(pool(consolidateAfter="5m"), one, node(one))
    assert (found.code, found.at) == ("Due", NOW + 4 * MINUTE)
    assert codes(end(found, "Empty")) == ["NotConsolidatable"]


def test_buffers_hold_an_empty_node() -> None:
    assert codes(end(judged(*plain(), buffer_pods={"a": 2}), "Empty")) == ["BufferPods"]


def test_a_replacement_is_held_by_the_command_of_another() -> None:
    a, b = claim("a", annotations={labels.REPLACES: "b"}), claim("b", annotations={labels.COMMAND: "{}"})
    assert codes(end(judged(pool(), a, node(a), b, node(b)), "Empty")) == ["Replacement"]


def test_what_can_be_read_only_in_part_holds() -> None:
    a = claim("a")
    assert codes(end(judged(pool(), a, torn(node(a))), "Empty")) == ["Unreadable"]


def test_a_pool_that_is_gone_leaves_nothing_that_asks_and_says_so() -> None:
    a = claim("a")
    found = judged(a, node(a))
    assert (found.code, found.text) == ("Stays", "stays: NodePool 'default' not found")


def test_pods_cannot_hold_a_drifted_node_with_a_termination_grace_period() -> None:
    held = pod("web", "a", annotations=PROTECTED)
    found = judged(*plain(drifted=NOW - HOUR, terminationGracePeriod="1h"), held, ask=elsewhere("b"))
    assert codes(end(found, "Drifted")) == []
    assert codes(end(found, "Underutilized"))[0] == "PodDoNotDisrupt"


@pytest.mark.parametrize(("static", "expected"), [(False, "StaticCapacityOff"), (True, "NodeLimitReached")])
def test_drift_of_a_static_pool(static: bool, expected: str) -> None:
    a = claim("a", drifted=NOW - HOUR)
    full = replace(pool(replicas=1), spec=replace(pool(replicas=1).spec, limits={"nodes": "1"}))
    found = judged(full, a, node(a), pod("web", "a"), settings=gates(static_capacity=static))
    assert codes(end(found, "Drifted")) == [expected]


# --- budgets ----------------------------------------------------------------------------------------------------
def budgeted(*rows: dict[str, Any], nodes: int = 10, unready: int = 0) -> Judgement:
    claims = [claim(f"n{i}") for i in range(nodes)]
    there = [node(one, ready=i >= unready) for i, one in enumerate(claims)]
    return judged(pool(budgets=list(rows)), *claims, *there, name="n9")


def test_budgets_say_how_many_of_how_many_and_which_row_is_the_tightest() -> None:
    found = budgeted({"nodes": "50%"}, {"nodes": "20%", "reasons": ["Empty"]}, unready=2)
    assert found.budgets is not None
    assert (found.budgets.nodes, found.budgets.disrupting) == (10, 2)
    rows = {row.reason: row for row in found.budgets.allowances}
    assert (rows["Empty"].allowed, rows["Empty"].left, rows["Empty"].row) == (2, 0, "budgets[1]: nodes 20%")
    assert (rows["Drifted"].allowed, rows["Drifted"].left, rows["Drifted"].row) == (5, 3, "budgets[0]: nodes 50%")
    assert codes(end(found, "Empty")) == ["Budget"]
    assert end(found, "Empty").earliest(NOW) is None


def test_a_budget_that_is_closed_by_a_schedule_opens_at_its_end() -> None:
    found = budgeted({"nodes": "0", "schedule": "0 9 * * *", "duration": "8h"})
    assert (found.code, found.at) == ("Due", NOW + 5 * HOUR)
    assert found.budgets is not None
    assert {row.changes for row in found.budgets.allowances} == {NOW + 5 * HOUR}


def test_a_schedule_that_is_to_begin_is_told_and_holds_nothing() -> None:
    found = budgeted({"nodes": "0", "schedule": "0 18 * * *", "duration": "8h"})
    assert found.code == "MayGo"
    assert found.budgets is not None
    assert {(row.row, row.changes) for row in found.budgets.allowances} == {("no budget is active", NOW + 6 * HOUR)}


def test_a_budget_that_cannot_be_read_is_named() -> None:
    found = budgeted({"nodes": "few"})
    assert found.budgets is not None
    assert all("budgets[0]: nodes 'few' is neither" in row.row for row in found.budgets.allowances)
    assert codes(end(found, "Empty")) == ["Budget"]


# --- beside the controller --------------------------------------------------------------------------------------
def test_whatever_the_controller_refuses_a_node_for_is_among_its_holds() -> None:
    now_and_then = {labels.DO_NOT_DISRUPT: "90m"}
    worlds: list[list[Any]] = [
        [*plain(), pod("web", "a", annotations=PROTECTED)],
        [*plain(), pod("web", "a", annotations=now_and_then), pdb("keep")],
        [*plain(drifted=NOW - HOUR), pod("web", "a")],
        [*plain(), pod("web", "a"), pdb("one", 1), pdb("two", 1)],
        [*plain(annotations={labels.COMMAND_FAILED: text_of(Failure(at=NOW))}), pod("web", "a")],
        [pool(budgets=[{"nodes": "0"}]), *plain()[1:]],
    ]
    for objects in worlds:
        seen = snapshot(objects)
        refused = [r.reason.code for r in disrupt(seen, nowhere).refusals if r.subject == "node/node-a"]
        assert refused
        assert set(refused) <= {hold.code for hold in why(seen, "a", nowhere).holds}


def test_the_time_of_a_pods_start_counts() -> None:
    late = pod("web", "a", annotations={labels.DO_NOT_DISRUPT: "2m"}, started=NOW - MINUTE)
    found = judged(*plain(), late, ask=elsewhere("b"))
    assert (found.code, found.at) == ("Due", NOW + MINUTE)
    assert stamp(NOW + MINUTE) == "2026-03-04T12:01:00Z"
