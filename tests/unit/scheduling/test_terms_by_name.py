"""Terms of a pod's node affinity that name nodes by field, beside terms by labels."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from kerf.pods.requirements import own_problem
from kerf.scheduling.answers.nodeclaims import to_claim
from kerf.scheduling.solve import solve
from kerf_api import labels
from tests.unit.scheduling import worlds as w

NAMED, OTHERS, IN_Z2 = w.by_name("In", "n9"), w.by_name("NotIn", "n9"), w.in_zones("z2")


@pytest.mark.parametrize("terms", list(permutations([NAMED, IN_Z2])))
def test_a_term_by_labels_counts_beside_one_by_name(terms: tuple[dict[str, Any], ...]) -> None:
    pod = w.pod("p", **w.any_term(*terms))
    assert own_problem(pod) is None
    solution = w.solved(w.pool(), w.node("n1"), pod)
    assert [node.zones for node in solution.new_nodes] == [("z2",)]


@pytest.mark.parametrize("terms", list(permutations([NAMED, IN_Z2])))
def test_the_named_node_is_used_if_it_is_there(terms: tuple[dict[str, Any], ...]) -> None:
    placed = w.solved(w.pool(), w.node("n8"), w.node("n9"), w.pod("p", **w.any_term(*terms))).placed
    assert placed == {"default/p": "node/n9"}


PREFERRED = [{"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}]


@pytest.mark.parametrize("preferred", [[], PREFERRED])
def test_a_refusal_is_about_the_labels(preferred: list[Any]) -> None:
    own = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [IN_Z2, NAMED]}}
    both = {"nodeAffinity": {**own, "preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    solution = w.solved(w.pool(), w.pod("p", "99", affinity=both))
    assert "no instance type has enough resources" in str(solution.unplaced["default/p"])


def test_a_new_node_is_none_of_those_that_a_term_leaves_out() -> None:
    pod = w.pod("p", **w.any_term(OTHERS, IN_Z2))
    assert own_problem(pod) is None
    assert w.solved(w.pool(), w.node("n9"), w.node("n1"), pod).placed == {"default/p": "node/n1"}
    snapshot = w.world(w.pool(), w.node("n9"), pod)
    (new,) = solve(snapshot, [pod]).new_nodes
    claim = to_claim(snapshot, new, salt="s")
    assert labels.NAME_FIELD not in {entry.key for entry in claim.spec.requirements} | claim.metadata.labels.keys()


@pytest.mark.parametrize("terms", [[NAMED], [OTHERS], [NAMED, NAMED | IN_Z2]])
def test_a_pod_that_names_nodes_in_each_term_gets_none(terms: list[dict[str, Any]]) -> None:
    assert "by fields" in str(own_problem(w.pod("p", **w.any_term(*terms))))


def test_a_spread_counts_the_named_node() -> None:
    """The zone of n9 has a pod already, and the node counts although another zone is asked for of all others."""
    spread = w.spread(labelSelector={"matchLabels": {"app": "web"}})
    spec = {"labels": {"app": "web"}, "topologySpreadConstraints": [spread], **w.any_term(NAMED, IN_Z2)}
    there = [w.node("n9", "z1"), w.node("n8", "z3"), w.pod("a", node="n9", **spec), w.pod("b", node="n8", **spec)]
    solution = w.solved(w.pool(), *there, w.pod("p", **spec))
    assert [node.zones for node in solution.new_nodes] == [("z2",)]
