"""Why nodes stay: refusals of those that consolidation may not look at, told in every plan without a simulation."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.command import Failure
from kerf.disruption.disrupt import disrupt
from kerf.model.annotations import text_of
from kerf.model.plan import Plan, Refusal
from kerf_api import labels
from tests.unit.disruption.worlds import NOW, claim, never, node, pdb, pod, pool, snapshot

PROTECTED = {labels.DO_NOT_DISRUPT: "true"}


def world(*more: Any, own: dict[str, Any] | None = None, **of_claim: Any) -> list[Any]:
    """One node with a pod that is worth something."""
    one = claim("a", **of_claim)
    return [pool(**(own or {})), one, node(one), pod("web", "a"), *more]


def plan(objects: list[Any], **facts: Any) -> Plan:
    return disrupt(snapshot(objects, **facts), never)


def codes(found: Plan) -> list[tuple[str, str]]:
    return [(refusal.subject, refusal.reason.code) for refusal in found.refusals]


@pytest.mark.parametrize(
    ("blocker", "code", "names"),
    [
        (pod("kept", "a", annotations=PROTECTED), "PodDoNotDisrupt", "shop/kept"),
        (pod("log", "a", owner="DaemonSet", annotations=PROTECTED), "PodDoNotDisrupt", "shop/log"),
        (pdb("strict"), "PodDisruptionBudget", "shop/strict"),
    ],
)
def test_a_protected_pod_keeps_its_node_and_the_plan_says_so(blocker: Any, code: str, names: str) -> None:
    found = plan(world(blocker))
    assert codes(found) == [("node/node-a", code)]
    assert names in found.refusals[0].reason.text
    assert found.actions == ()
    assert [(e.ref.kind, e.reason, e.dedupe_seconds) for e in found.events] == [
        ("Node", "DisruptionBlocked", 120),
        ("NodeClaim", "DisruptionBlocked", 120),
    ]


def test_several_budgets_of_one_pod_keep_its_node() -> None:
    found = plan(world(pdb("one", 3), pdb("two", 3)))
    assert codes(found) == [("node/node-a", "PodDisruptionBudget")]
    assert "shop/one, shop/two" in found.refusals[0].reason.text


def test_the_nodes_own_annotation_keeps_it() -> None:
    one = claim("a")
    found = plan([pool(), one, node(one, annotations=PROTECTED), pod("web", "a")])
    assert codes(found) == [("node/node-a", "NodeDoNotDisrupt")]


def test_a_node_that_a_pod_is_expected_on_stays() -> None:
    found = plan(world(), nominated_until={"a": NOW + timedelta(seconds=5)})
    assert codes(found) == [("node/node-a", "Nominated")]


def test_a_node_whose_replacement_failed_rests_and_the_plan_says_until_when() -> None:
    failed = text_of(Failure(at=NOW - timedelta(seconds=20)))
    found = plan(world(annotations={labels.COMMAND_FAILED: failed}))
    assert codes(found) == [("node/node-a", "BackingOff")]
    assert found.next_due == NOW + timedelta(seconds=40)


@pytest.mark.parametrize("own", [{"consolidateAfter": "Never"}, {"consolidationPolicy": "WhenEmpty"}, {"replicas": 1}])
def test_pools_that_do_not_consolidate_have_nothing_to_explain(own: dict[str, Any]) -> None:
    assert plan(world(pdb("strict"), own=own)).refusals == ()


@pytest.mark.parametrize("of_claim", [{"consolidatable": False}, {"instance_type": "x1.unknown"}])
def test_nodes_that_are_not_wanted_have_nothing_to_explain(of_claim: dict[str, Any]) -> None:
    found = snapshot(world(pdb("strict"), **of_claim))
    assert disrupt(found, never).refusals == ()


def test_a_node_that_nothing_speaks_against_is_not_mentioned() -> None:
    found = plan(world(pdb("loose", 1)))
    assert (found.refusals, found.events, found.actions) == ((), (), ())


@pytest.mark.parametrize("drifted", [None, NOW - timedelta(hours=1)])
def test_an_empty_or_drifted_node_is_refused_once(drifted: Any) -> None:
    one = claim("a", drifted=drifted)
    hashes = {labels.NODEPOOL_HASH: "new", labels.NODEPOOL_HASH_VERSION: "v3"}
    stuck = pod("log", "a", owner="DaemonSet", annotations=PROTECTED)
    rest = [pod("web", "a")] if drifted else []
    found = plan([pool(annotations=hashes), one, node(one), stuck, *rest])
    assert codes(found) == [("node/node-a", "PodDoNotDisrupt")]
    assert len(found.events) == len(set(found.events))


@pytest.mark.parametrize(
    ("text", "minutes", "told", "kept"),
    [
        ("2m", 1, ("Normal", "DoNotDisruptUntil"), True),
        ("true", 1, None, True),
    ],
)
def test_a_pod_hears_what_became_of_its_protection(
    text: str, minutes: int, told: tuple[str, str] | None, kept: bool
) -> None:
    started = NOW - timedelta(minutes=minutes)
    found = plan(world(pod("kept", "a", annotations={labels.DO_NOT_DISRUPT: text}, started=started)))
    assert [(e.type, e.reason) for e in found.events if e.ref.kind == "Pod"] == ([told] if told else [])
    assert codes(found) == ([("node/node-a", "PodDoNotDisrupt")] if kept else [])


def test_a_pod_that_has_not_started_or_has_ended_hears_nothing() -> None:
    waiting = pod("waiting", "a", annotations={labels.DO_NOT_DISRUPT: "2m"})
    waiting = replace(waiting, status=replace(waiting.status, start_time=None))
    over = pod("over", "a", annotations={labels.DO_NOT_DISRUPT: "2m"}, phase="Succeeded")
    found = plan(world(waiting, over))
    assert codes(found) == [("node/node-a", "PodDoNotDisrupt")]
    assert {e.ref.kind for e in found.events} == {"Node", "NodeClaim"}


def test_a_large_cluster_is_told_of_in_turns() -> None:
    claims = [claim(f"c{i:03}") for i in range(600)]
    objects = [
        pool(),
        pdb("strict"),
        *claims,
        *(node(c) for c in claims),
        *(pod(f"p-{c.name}", c.name) for c in claims),
    ]
    told: set[str] = set()
    for turn in range(4):
        at = NOW + turn * timedelta(seconds=10)
        found: tuple[Refusal, ...] = disrupt(snapshot(objects, now=at), never).refusals
        assert len(found) == 250
        told |= {refusal.subject for refusal in found}
    assert len(told) == 600
