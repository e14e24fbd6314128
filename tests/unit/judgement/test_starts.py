"""Nodes that start, against the starts that the cluster has shown."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from kerf.judgement.starts import Starting, starting
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.disruption.worlds import NOW


def claim(name: str, launched: float, initialized: float | None = None, **meta: Any) -> NodeClaim:
    """Of a node that was launched, and initialized, so many seconds ago."""
    rows = [{"type": "Launched", "status": "True", "lastTransitionTime": ago(launched)}]
    status = "Unknown" if initialized is None else "True"
    rows.append({"type": "Initialized", "status": status, "lastTransitionTime": ago(initialized or launched)})
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    manifest = {"metadata": {"name": name, **meta}, "spec": {"nodeClassRef": ref}, "status": {"conditions": rows}}
    return decode(NodeClaim, manifest)


def ago(seconds: float) -> str:
    instant: datetime = NOW - timedelta(seconds=seconds)
    return instant.isoformat()


def test_the_oldest_is_named_with_the_median_and_the_longest() -> None:
    done = [claim("a", 900, 860), claim("b", 900, 850), claim("c", 900, 800)]
    found = starting([*done, claim("new", 30), claim("old", 240)], NOW)
    assert found == Starting(2, "old", 240.0, 50.0, 100.0)


def test_a_start_that_was_a_problem_is_no_measure_for_others() -> None:
    assert starting([claim("slow", 5000, 4000), claim("new", 30)], NOW) == Starting(1, "new", 30.0, None, None)


def test_nodes_in_use_and_those_that_are_deleted_do_not_start() -> None:
    going = claim("going", 30, deletionTimestamp=ago(1), finalizers=["x"])
    unlaunched = decode(
        NodeClaim, {"metadata": {"name": "u"}, "spec": {"nodeClassRef": {"group": "g", "kind": "k", "name": "n"}}}
    )
    assert starting([claim("a", 900, 860), going, unlaunched], NOW) is None


def test_a_clock_that_is_behind_gives_no_negative_time() -> None:
    found = starting([claim("new", -30)], NOW)
    assert found is not None
    assert found.seconds == 0
