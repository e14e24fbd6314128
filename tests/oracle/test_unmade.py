"""The direction of the comparison that asks whether a NodePool can make one more node for a refused pod."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kerf.scheduling.answers.solution import PodRefusal
from kerf_api import labels
from tests.oracle.campaign import sorted_out
from tests.oracle.client import Oracle
from tests.oracle.compare import compare, one_more
from tests.oracle.exceptions import EXCEPTIONS, Case
from tests.oracle.ours import answer, each_choice, planned_nodes
from tests.oracle.worlds import world_of

#: The plan for its world has new nodes.
SEED = 2


def test_a_refusal_of_a_pod_that_a_new_node_takes_is_a_difference(
    oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_of(SEED)
    right = answer(world)
    assert right.solution.new_nodes
    assert one_more(world, right, oracle) == ()
    planned = [key for node in right.solution.new_nodes for key in node.pods]
    refusal = PodRefusal("NoNodePool", "no existing node has capacity for it and no NodePool can make one")
    wrong = replace(
        right.solution,
        new_nodes=(),
        order=tuple(key for key in right.solution.order if key not in planned),
        unplaced={**right.solution.unplaced, **dict.fromkeys(planned, refusal)},
    )
    monkeypatch.setattr("tests.oracle.compare.answer", lambda _: replace(right, solution=wrong))
    unexplained = sorted_out(compare(world, oracle))[2]
    assert {one.pod for one in unexplained if one.kind == "d"} <= {*planned}
    assert any(one.kind == "d" for one in unexplained)


def test_each_choice_of_types_and_offerings_has_its_turn() -> None:
    world = world_of(SEED)
    ours = answer(world)
    names = [node["metadata"]["name"] for node in planned_nodes(ours)]
    shown = (labels.INSTANCE_TYPE, labels.ZONE, labels.CAPACITY_TYPE)
    found: dict[str, set[tuple[str, ...]]] = {name: set() for name in names}
    for launch in each_choice(ours):
        for node in planned_nodes(ours, launch):
            found[node["metadata"]["name"]].add(tuple(node["metadata"]["labels"][key] for key in shown))
    for name, new in zip(names, ours.solution.new_nodes, strict=True):
        rows = [row for row in world["instanceTypes"] if row["name"] in new.instance_types]
        sold = {
            (row["name"], one["zone"], one["capacityType"])
            for row in rows
            for one in row["offerings"]
            if one["available"]
        }
        wanted = {
            one
            for one in sold
            if all(new.requirements.allowed(key).has(value) for key, value in zip(shown, one, strict=True))
        }
        assert found[name] == wanted


@pytest.mark.parametrize("seed", [2076, 3537], ids=["a choice of a type", "pods that wait for their places"])
def test_a_node_that_only_some_outcomes_of_a_plan_allow_is_no_difference(oracle: Oracle, seed: int) -> None:
    assert sorted_out(compare(world_of(seed), oracle))[2] == ()


@pytest.mark.parametrize("seed", [349, 579, 587])
def test_late_pods_get_nodes_whose_daemon_pods_their_spread_counts(oracle: Oracle, seed: int) -> None:
    """Each further node has such pods, which leave the next pod less of the skew in its zone."""
    assert [str(one) for one in compare(world_of(seed), oracle).differences if one.kind == "d"] == []


@pytest.mark.parametrize("seed", [5057, 5225])
def test_a_new_node_has_the_ports_of_daemon_pods_free_that_anti_affinity_keeps_off(oracle: Oracle, seed: int) -> None:
    world = world_of(seed)
    named, _, unexplained = sorted_out(compare(world, oracle))
    assert unexplained == ()
    found = [difference for difference, name in named if name == "daemon pods: ports"]
    assert found
    for pod in world["pods"]:
        pod["spec"].get("affinity", {}).pop("podAntiAffinity", None)
    rule = next(one for one in EXCEPTIONS if one.name == "daemon pods: ports")
    assert not any(rule.admits(Case(world, one)) for one in found)
