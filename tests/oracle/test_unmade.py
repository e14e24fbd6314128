"""The direction of the comparison that asks whether a NodePool can make one more node for a refused pod."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kerf.scheduling.answers.solution import PodRefusal
from tests.oracle.campaign import sorted_out
from tests.oracle.client import Oracle
from tests.oracle.compare import compare, one_more
from tests.oracle.ours import answer
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
    refusal = PodRefusal("NoNodePool", "no existing node has room for it and no NodePool can make one")
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
