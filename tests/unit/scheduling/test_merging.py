"""Few nodes are parted where that costs less, and never those whose pods need each other."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kerf.scheduling.solve import SolveOptions, solve
from tests.referee.judge import violations
from tests.unit.scheduling import worlds as w

CATALOGUE = (
    w.instance_type("large", 8, 16, price=400_000, pods=20),
    w.instance_type("small", 2, 4, price=80_000, pods=20),
)


def together(affinity: dict[str, Any]) -> list[list[str]]:
    """Who is with whom: two `web` with this affinity, and two that need a large node each."""
    web = w.replicas(2, "web", "1500m", labels={"app": "web"}, affinity=affinity)
    snapshot = w.world(w.pool(), web, w.pod("one", "6"), w.pod("two", "6"), catalogue=CATALOGUE)
    pending = list(snapshot.pods.pending.values())
    found = solve(snapshot, pending, SolveOptions(improve=timedelta(seconds=1)))
    assert violations(snapshot, pending, found) == []
    return sorted(sorted(key.partition("/")[2] for key in node.pods) for node in found.new_nodes)


def test_pods_that_need_each_other_stay_together_whatever_that_costs() -> None:
    assert together(w.between("podAffinity")) == [["one"], ["two"], ["web-0", "web-1"]]


@pytest.mark.parametrize("affinity", [{}, w.between("podAntiAffinity")], ids=["none", "apart"])
def test_others_go_where_there_is_room(affinity: dict[str, Any]) -> None:
    assert together(affinity) == [["one", "web-0"], ["two", "web-1"]]
