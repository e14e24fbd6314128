"""What speaks against a node itself (10 to 16 of the disruption catalogue): no pod of it is asked."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.candidates.candidates import Candidate
from kerf.disruption.command import Command
from kerf.disruption.disrupt import disrupt
from kerf.disruption.propose import propose
from kerf.model.annotations import text_of
from kerf.model.plan import Plan
from kerf_api import labels
from tests.unit.disruption import worlds as w


def plan(*objects: Any, **facts: Any) -> Plan:
    return disrupt(w.snapshot(objects, **facts), w.never)


def labelled(node: Any, *without: str, **others: str) -> Any:
    """The node with other labels."""
    own = {key: value for key, value in node.metadata.labels.items() if key not in without}
    return replace(node, metadata=replace(node.metadata, labels=own | others))


def going(claim: Any) -> Any:
    return replace(claim, metadata=replace(claim.metadata, deletion_timestamp=w.NOW))


@pytest.mark.parametrize(("text", "expected"), [("true", "NodeDoNotDisrupt"), ("false", ""), ("5m", "")])
def test_010_the_annotation_of_a_node_counts_when_it_is_true(text: str, expected: str) -> None:
    """A duration means nothing there."""
    a = w.claim("a")
    found = w.code(w.pool(), a, w.node(a, annotations={labels.DO_NOT_DISRUPT: text}))
    assert found == expected


def test_011_a_node_without_a_claim_and_a_claim_without_a_node() -> None:
    """Of the first nobody hears: it is not ours."""
    stray = w.node(w.claim("a"))
    foreign = w.claim("a", nodeClassRef={"group": "other.io", "kind": "Thing", "name": "x"})
    assert w.code(w.pool(), stray, key="node/node-a") == "Unmanaged"
    assert w.code(w.pool(), foreign, w.node(foreign), key="node/node-a") == "Unmanaged"
    assert plan(w.pool(), stray).events == ()
    assert w.code(w.pool(), w.claim("a")) == "NoNode"
    assert plan(w.pool(), w.claim("a")).actions == ()


def test_012_a_node_that_a_pod_is_expected_on_waits_until_the_window_has_passed() -> None:
    world = [w.pool(), *w.pairs("a")]
    held = plan(*world, nominated_until={"a": w.NOW + w.MINUTE})
    assert (w.started(held), w.refusals(held)) == ([], {"node/node-a": "Nominated"})
    assert set(w.blocked(held)) == {"Node", "NodeClaim"}
    assert w.started(plan(*world, nominated_until={"a": w.NOW})) == ["a"]


def test_013_a_node_that_is_removed_or_has_not_begun() -> None:
    a = w.claim("a")
    ending = replace(a.status.conditions[0], type="InstanceTerminating")
    told = replace(a, status=replace(a.status, conditions=(*a.status.conditions, ending)))
    assert w.code(w.pool(), going(a), w.node(a)) == "Deleting"
    assert w.code(w.pool(), told, w.node(a)) == "Deleting"
    assert w.code(w.pool(), a, labelled(w.node(a), labels.INITIALIZED)) == "NotInitialized"
    assert plan(w.pool(), going(a), w.node(a)).actions == ()
    assert w.started(plan(w.pool(), a, labelled(w.node(a), labels.INITIALIZED))) == []


@pytest.mark.parametrize(("pools", "expected"), [(["default"], "NoNodePoolLabel"), (["other"], "NodePoolNotFound")])
@pytest.mark.parametrize("pods", [(), ("web",)])
def test_014_a_node_of_no_pool_stays_and_an_event_reports_it(
    pools: list[str], expected: str, pods: tuple[str, ...]
) -> None:
    """On node and claim, whether there are pods on it or not."""
    a = w.claim("a")
    own = labelled(w.node(a), labels.NODEPOOL) if expected == "NoNodePoolLabel" else w.node(a)
    world = [*map(w.pool, pools), a, own, *(w.pod(name, "a") for name in pods)]
    assert w.code(*world) == expected
    found = plan(*world)
    assert (w.started(found), w.refusals(found)) == ([], {"node/node-a": expected})
    assert set(w.blocked(found)) == {"Node", "NodeClaim"}


@pytest.mark.parametrize("missing", [{labels.CAPACITY_TYPE}, {labels.ZONE}, {labels.INSTANCE_TYPE}, "an unknown type"])
def test_015_a_node_that_says_too_little_of_itself_is_no_candidate_for_consolidation_only(missing: Any) -> None:
    one, two = w.claim("a"), w.drifted("b")
    unknown = {labels.INSTANCE_TYPE: "x1.unknown"} if isinstance(missing, str) else {}
    gone = () if unknown else missing
    node = labelled(w.node(one), *gone, **unknown)
    assert isinstance(w.judged(w.pool(), one, node), Candidate)
    assert w.started(plan(w.pool(), one, node)) == ["a"], "it is empty"
    assert w.started(plan(w.rolling(), two[0], labelled(two[1], *gone, **unknown))) == ["b"], "it has drifted"
    used = [w.pool(), one, node, w.pod("web", "a"), *w.pairs("z")]
    assert propose(w.snapshot(used), w.elsewhere("z")) == ()
    whole = [w.pool(), one, w.node(one), w.pod("web", "a"), *w.pairs("z")]
    assert [p.candidates for p in propose(w.snapshot(whole), w.elsewhere("z"))] == [("a",)]


def test_016_a_node_that_a_command_is_about_is_none() -> None:
    command = text_of(Command(id="x", reason="Empty", started=w.NOW, created=True))
    world = [w.pool(), *w.pairs("a", annotations={labels.COMMAND: command})]
    assert w.code(*world) == "CommandInProgress"
    found = plan(*world)
    assert (w.started(found), w.blocked(found)) == ([], {})
