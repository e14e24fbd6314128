"""What speaks against a node because of its pods (3 to 9 and 17 to 20 of the disruption catalogue)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.disrupt import disrupt
from kerf.model.plan import Plan
from kerf_api import labels
from tests.unit.disruption import worlds as w

HELD, BUDGET = "PodDoNotDisrupt", "PodDisruptionBudget"
#: Whether it is drift that asks.
CLASSES = pytest.mark.parametrize("eventual", [False, True])


def eventually(*objects: Any) -> Plan:
    """What drift makes of a node that has drifted and has these."""
    return disrupt(w.snapshot([w.rolling(), *w.drifted("a"), *objects]), w.on_new_nodes("m5.large"))


def gracefully(*objects: Any, **of_claim: Any) -> Plan:
    """What emptiness and consolidation make of a node that has these."""
    return disrupt(w.snapshot([w.pool(), *w.pairs("a", **of_claim), *objects]), w.never)


def protects(**a_pod: Any) -> str:
    return w.code(w.pool(), *w.pairs("a"), w.pod("web", "a", **a_pod))


def lasting(text: str, **more: Any) -> Any:
    return w.pod("job", "a", annotations={labels.DO_NOT_DISRUPT: text}, **more)


@CLASSES
def test_003_a_protected_pod_keeps_its_node_and_is_named(eventual: bool) -> None:
    held = w.pod("held", "a", annotations=w.PROTECTED)
    plan = eventually(held) if eventual else gracefully(held)
    assert (w.started(plan), w.refusals(plan)) == ([], {"node/node-a": HELD})
    told = w.blocked(plan)
    assert set(told) == {"Node", "NodeClaim"}
    assert all("shop/held" in words for words in told.values())


@CLASSES
def test_004_with_a_grace_period_a_protected_pod_does_not_hold_up_drift(eventual: bool) -> None:
    world = [w.pool(), *w.pairs("a", terminationGracePeriod="1h"), w.pod("web", "a", annotations=w.PROTECTED)]
    assert w.code(*world, eventual=eventual) == ("" if eventual else HELD)


@CLASSES
@pytest.mark.parametrize("grace", [None, "1h"])
def test_005_with_a_grace_period_a_disruption_budget_does_not_hold_up_drift(grace: str | None, eventual: bool) -> None:
    spec = {"terminationGracePeriod": grace} if grace else {}
    world = [w.pool(), *w.pairs("a", **spec), w.pod("web", "a"), w.pdb("strict")]
    assert w.code(*world, eventual=eventual) == ("" if eventual and grace else BUDGET)


@pytest.mark.parametrize("owner", ["Node", "DaemonSet", "ReplicaSet"])
def test_006_pods_that_come_with_a_node_protect_it_too(owner: str) -> None:
    assert protects(annotations=w.PROTECTED, owner=owner) == HELD
    assert protects(owner=owner) == ""


@pytest.mark.parametrize("over", [{"phase": "Succeeded"}, {"phase": "Failed"}, {"deletion": w.NOW + w.MINUTE}])
def test_007_a_pod_that_is_over_or_going_protects_nothing(over: dict[str, Any]) -> None:
    assert protects(annotations=w.PROTECTED, **over) == ""


@pytest.mark.parametrize(
    ("expected", "a_pod"),
    [
        (BUDGET, {"owner": "DaemonSet"}),
        ("", {"owner": "Node"}),
        ("", {"phase": "Failed"}),
        ("", {"phase": "Succeeded"}),
        ("", {"deletion": w.NOW}),
    ],
)
def test_008_a_budget_that_allows_nothing_holds_what_would_be_evicted(expected: str, a_pod: dict[str, Any]) -> None:
    budget = w.pdb("strict", maxUnavailable=0)
    assert w.code(w.pool(), *w.pairs("a"), w.pod("web", "a", **a_pod), budget) == expected


def test_009_a_pod_of_two_budgets_keeps_its_node_whatever_they_allow() -> None:
    """Eviction does not support that, and the event says so."""
    plan = gracefully(w.pod("web", "a"), w.pdb("one", 3), w.pdb("two", 3))
    assert (w.started(plan), w.refusals(plan)) == ([], {"node/node-a": BUDGET})
    (words,) = set(w.blocked(plan).values())
    assert "several PodDisruptionBudgets, which eviction does not support: shop/one, shop/two" in words


@pytest.mark.parametrize(
    ("minutes", "expected", "told"), [(1, HELD, "DoNotDisruptUntil"), (3, "", "DoNotDisruptGracePeriodElapsed")]
)
def test_017_a_duration_protects_for_so_long(minutes: int, expected: str, told: str) -> None:
    held = lasting("2m", started=w.NOW - minutes * w.MINUTE)
    assert w.code(w.pool(), *w.pairs("a"), held) == expected
    events = gracefully(held).events
    assert [(e.type, e.reason) for e in events if e.ref.kind == "Pod"] == [("Normal", told)]


@pytest.mark.parametrize("text", ["abc", "0s", "-5m"])
def test_018_an_invalid_duration_protects_nothing_and_is_reported(text: str) -> None:
    assert w.code(w.pool(), *w.pairs("a"), lasting(text)) == ""
    events = gracefully(lasting(text)).events
    assert [(e.type, e.reason) for e in events if e.ref.kind == "Pod"] == [("Warning", "InvalidDoNotDisruptAnnotation")]


def test_019_a_pod_that_has_not_started_has_all_its_time_before_it() -> None:
    waiting = lasting("2m")
    waiting = replace(waiting, status=replace(waiting.status, start_time=None))
    assert w.code(w.pool(), *w.pairs("a"), waiting) == HELD
    assert w.code(w.pool(), *w.pairs("a"), waiting, now=w.NOW + 99 * w.HOUR) == HELD


def test_020_of_several_durations_the_longest_counts() -> None:
    """From the start of each."""
    short = w.pod("short", "a", annotations={labels.DO_NOT_DISRUPT: "1m"}, started=w.NOW)
    long = w.pod("long", "a", annotations={labels.DO_NOT_DISRUPT: "5m"}, started=w.NOW)
    found = {
        seconds: w.code(w.pool(), *w.pairs("a"), short, long, now=w.NOW + timedelta(seconds=seconds))
        for seconds in (59, 60, 299, 300)
    }
    assert found == {59: HELD, 60: HELD, 299: HELD, 300: ""}
