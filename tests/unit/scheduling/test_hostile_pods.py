"""Pods that differ in their constraints only: the work grows with their number, not with that of their subsets."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from kerf.model.kubernetes.objects import Pod
from kerf.pods import requirements
from kerf.pods.host_ports import HeldPorts, clash
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.solve import SolveOptions, solve
from kerf_api.requirements import requirement
from tests.unit.scheduling import worlds as w


def not_in(number: int) -> list[Pod]:
    """Each keeps away from another value of a label."""
    return [w.pod(f"p{i}", affinity=w.node_affinity([("example.com/x", "NotIn", [f"v{i}"])])) for i in range(number)]


def counted(monkeypatch: pytest.MonkeyPatch, method: str) -> Counter[str]:
    """The number of calls of a method of templates, by its name."""
    calls, original = Counter[str](), getattr(NodeClaimTemplate, method)

    def counting(self: NodeClaimTemplate, *given: Any) -> Any:
        calls[method] += 1
        return original(self, *given)

    monkeypatch.setattr(NodeClaimTemplate, method, counting)
    return calls


def test_pods_that_keep_away_from_one_value_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """24 such pods have 16 million subsets."""
    calls = counted(monkeypatch, "join")
    assert not w.solved(w.pool(), not_in(24)).unplaced
    assert calls["join"] < 24**2 * 4


@pytest.mark.parametrize(
    ("asked", "clashes"),
    [
        (("0.0.0.0", 80, "TCP"), True),
        (("10.0.0.1", 80, "TCP"), True),
        (("10.0.0.2", 80, "TCP"), False),
        (("10.0.0.1", 80, "UDP"), False),
        (("10.0.0.1", 81, "TCP"), False),
        (("10.0.0.9", 82, "TCP"), True),
        (("::", 80, "TCP"), False),
    ],
)
def test_held_ports_clash_by_address_port_and_protocol(asked: tuple[str, int, str], clashes: bool) -> None:
    held = HeldPorts([("10.0.0.1", 80, "TCP"), ("10.0.0.1", 83, "UDP")])
    other = held.copy()
    held.take([("0.0.0.0", 82, "TCP")])
    assert held.clash([("10.0.0.1", 99, "TCP"), asked]) == clashes
    assert clash([asked], held) == clashes
    assert ("0.0.0.0", 82, "TCP") not in set(other)


def test_a_pod_of_many_alternatives_is_read_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its terms is read a few times, not once for each other term."""
    reads = 0
    filled = requirements.filled

    def counted(terms: Any) -> Any:
        nonlocal reads
        found = filled(terms)
        reads += len(found)
        return found

    monkeypatch.setattr(requirements, "filled", counted)
    pod = w.pod("p", affinity=w.node_affinity(*([("example.com/x", "NotIn", [f"v{i}"])] for i in range(300))))
    assert requirements.own_problem(pod) is None
    assert not w.solved(w.pool(), [pod]).unplaced
    assert reads <= 300 * 20


@pytest.mark.parametrize("method", ["_shape", "serve"])
def test_alternatives_that_are_not_reached_cost_nothing_to_place(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """The first alternative of each pod has a node, and opens every offering for the bound of the price."""
    calls = counted(monkeypatch, method)
    pods = [
        w.pod(f"p{i}", affinity=w.node_affinity(*([("example.com/x", "NotIn", [f"v{i}-{j}"])] for j in range(50))))
        for i in range(5)
    ]
    found = solve(w.world(w.pool()), pods, SolveOptions(improve=timedelta(seconds=1)))
    assert not found.unplaced
    assert found.bound
    assert calls[method] < 50


@pytest.mark.parametrize(
    ("required", "preferred"), [([("k", "Gt", ["x"])], []), ([("k", "Exists", [])], [("k", "Lt", ["1", "2"])])]
)
def test_a_malformed_expression_is_found_on_any_rung(required: list[Any], preferred: list[Any]) -> None:
    affinity = w.node_affinity([("example.com/x", "NotIn", ["a"])], required)
    if preferred:
        term = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]
        other = {"matchExpressions": [{"key": k, "operator": o, "values": v} for k, o, v in preferred]}
        rows = [{"weight": 2, "preference": term}, {"weight": 1, "preference": other}]
        affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = rows
    assert "needs exactly one integer" in str(requirements.own_problem(w.pod("p", affinity=affinity)))


def test_the_check_of_a_pod_reads_no_alternative_that_needs_no_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pass checks each pending pod, so it makes requirements of the first alternative only."""
    made = 0

    def counted(*given: Any) -> Any:
        nonlocal made
        made += 1
        return requirement(*given)

    monkeypatch.setattr(requirements, "requirement", counted)
    pod = w.pod("p", affinity=w.node_affinity(*([("example.com/x", "NotIn", [f"v{i}"])] for i in range(200))))
    assert requirements.own_problem(pod) is None
    assert made < 10


def test_each_alternative_is_read_once_where_there_is_no_preference(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0

    def counted(*given: Any) -> Any:
        nonlocal made
        made += 1
        return requirement(*given)

    monkeypatch.setattr(requirements, "requirement", counted)
    pod = w.pod("p", affinity=w.node_affinity(*([("example.com/x", "NotIn", [f"v{i}"])] for i in range(200))))
    found = requirements.relaxations_of(pod, respect_preferences=True, soft_taints=False)
    assert [str(one.strict["example.com/x"]) for one in found] == [f"example.com/x NotIn [v{i}]" for i in range(200)]
    assert made == 200


def test_alternatives_are_given_up_before_preferences_and_tried_again_without_them() -> None:
    affinity = w.node_affinity([("x", "In", ["a"])], [("x", "In", ["a"])], [("x", "In", ["b"])])
    term = {"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["a"]}]}
    preferred = [{"weight": 1, "preference": term}]
    affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    found = requirements.relaxations_of(w.pod("p", affinity=affinity), respect_preferences=True, soft_taints=True)
    assert [(str(one.strict["x"]), one.possible, len(one.tolerations)) for one in found] == [
        ("x In [a]", False, 0),
        ("x In [b]", True, 0),
        ("x In [b]", True, 1),
        ("x In [a]", True, 1),
    ]
