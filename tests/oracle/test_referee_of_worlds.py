"""The referee judges the nodes that are planned, and those that come of them."""

from __future__ import annotations

from tests.oracle.compare import with_planned
from tests.oracle.ours import answer
from tests.oracle.referee import of_the_launched
from tests.oracle.worlds import world_of


def test_the_referee_judges_planned_nodes_as_they_are_launched() -> None:
    worlds = [world_of(seed) for seed in range(12)]
    found = [(world, ours) for world in worlds if (ours := answer(world)).solution.new_nodes]
    assert found
    for world, ours in found:
        there = with_planned(world, ours)
        assert of_the_launched(there, ours) == []
        there["nodes"][-1]["spec"]["taints"] = [{"key": "corp.example.com/agent", "effect": "NoSchedule"}]
        kept = ours.solution.new_nodes[-1].pods[0]
        assert f"taint: {kept} does not tolerate" in " ".join(of_the_launched(there, ours))
