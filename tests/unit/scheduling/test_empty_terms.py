"""A term of a node selector without expressions and fields selects no node, as the API says."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.pods.requirements import accepted_by_node, own_problem
from kerf.scheduling.answers.edits import DropExpression
from kerf.scheduling.solve import SolveOptions, solve
from kerf_api import labels
from tests.unit.scheduling import worlds as w

EMPTY: list[list[Any]] = [[{}], [{}, {}], [{"matchExpressions": []}], [{"matchFields": []}], []]
TO_Z2 = {"matchExpressions": [{"key": labels.ZONE, "operator": "In", "values": ["z2"]}]}


def terms(*rows: dict[str, Any]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(rows)}}
    return {"affinity": {"nodeAffinity": required}}


@pytest.mark.parametrize("rows", EMPTY)
def test_a_pod_whose_terms_are_all_empty_gets_no_node_and_says_why(rows: list[Any]) -> None:
    one = w.pod("p", **terms(*rows))
    done = w.solved(w.pool(), w.node("n"), one)
    assert (done.placed, done.new_nodes, list(done.unplaced)) == ({}, (), ["default/p"])
    assert "selects no node" in str(own_problem(one))


@pytest.mark.parametrize("rows", EMPTY)
def test_such_a_pod_does_not_move_either(rows: list[Any]) -> None:
    one = w.pod("p", node="n", **terms(*rows))
    snapshot = w.world(w.pool(), w.node("n"), w.node("m"), one)
    assert solve(snapshot, [one], SolveOptions(exclude=frozenset({"node/n"}))).unplaced


def test_a_term_that_asks_for_something_is_an_alternative_to_an_empty_one() -> None:
    one = w.pod("p", **terms({}, TO_Z2, {"matchExpressions": []}))
    assert own_problem(one) is None
    (new,) = w.solved(w.pool(), one).new_nodes
    assert new.zones == ("z2",)


def test_an_empty_preference_asks_for_nothing() -> None:
    preferred = [{"weight": 1, "preference": {}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    assert w.solved(w.pool(), w.pod("p", affinity=affinity)).new_nodes


def test_a_daemon_set_that_selects_no_node_takes_nothing_of_new_nodes() -> None:
    anywhere, nowhere = w.daemon_set("agent", "1"), w.daemon_set("agent", "1", **terms({}))
    sizes = [
        [len(node.pods) for node in w.solved(w.pool(), agent, w.replicas(4, "p", "900m")).new_nodes]
        for agent in (anywhere, nowhere)
    ]
    assert sizes[0] != sizes[1] == [4]


def test_such_a_pod_accepts_no_node() -> None:
    assert not accepted_by_node(w.pod("p", **terms({})), w.pool().requirements())
    assert accepted_by_node(w.pod("p"), w.pool().requirements())


def test_the_last_expression_goes_with_the_affinity() -> None:
    one = w.pod("p", **terms(TO_Z2))
    edited = DropExpression(labels.ZONE).made(one)
    assert own_problem(edited) is None
    both = w.pod("p", **terms(TO_Z2, {"matchExpressions": [{"key": "team", "operator": "Exists"}]}))
    assert own_problem(DropExpression(labels.ZONE).made(both)) is None
