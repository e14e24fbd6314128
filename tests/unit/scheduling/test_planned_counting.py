"""A spread beside planned nodes that its node filter may not accept, whatever instance they become."""

from __future__ import annotations

from typing import Any

from kerf.scheduling.answers.solution import Solution
from kerf_api import labels
from tests.referee.judge import violations
from tests.unit.scheduling import worlds as w

WEB = {"app": "web"}
SPREAD: dict[str, Any] = {"labels": WEB, "topologySpreadConstraints": [w.spread()]}
ON_DEMAND = {labels.CAPACITY_TYPE: "on-demand"}


def solution(*objects: Any, **facts: Any) -> Solution:
    """Of all pending pods, judged by the referee."""
    snapshot = w.world(w.pool(), *objects, **facts)
    asked = list(snapshot.pods.pending.values())
    found = w.solved(w.pool(), *objects, **facts)
    assert violations(snapshot, asked, found) == []
    return found


def zones(found: Solution, name: str) -> list[tuple[str, ...]]:
    """The zones of the new nodes of the pods whose name starts so."""
    return sorted(node.zones for node in found.new_nodes for key in node.pods if key.startswith(f"default/{name}"))


def test_a_planned_node_brings_no_domain_that_the_pod_may_not_have() -> None:
    """The node for `other` can only be in zone z2, and says nothing of zones: the spread of `web` counts z1 and z3."""
    away = w.node_affinity([(labels.ZONE, "In", ["z1", "z3"])])
    there = (w.node("n", cpu="1"), w.pod("old", node="n", labels=WEB), w.pod("web", "500m", **SPREAD, affinity=away))
    only = (w.instance_type("default", 4, 4, markets=(("z2", "spot"),)),)
    found = solution(*there, w.pod("other", "2"), catalogue=only)
    assert found.placed == {"default/web": "node/n"}
    assert zones(found, "other") == [("z2",)]


def test_pods_on_a_node_that_may_be_of_the_wrong_capacity_type_fill_no_domain() -> None:
    """Whether the nodes of `open` are on demand is left open. One of two may be: then zone z1 has one pod.

    Zone z2 has two pods on demand. A third one there would be two more than in z1; zone z1 may have one more, however
    many of its pods count.
    """
    near = {labels.ZONE: "z1"}
    there = [w.node("n", "z2", cpu="1"), *(w.pod(f"old-{i}", node="n", labels=WEB) for i in range(2))]
    wide = (w.instance_type("default", 4, 4, markets=(("z1", "spot"), ("z1", "on-demand"), ("z2", "on-demand"))),)
    first = w.replicas(2, "open", "3", labels=WEB, nodeSelector=near, priority=1)
    found = solution(*there, first, w.pod("web", **SPREAD, nodeSelector=ON_DEMAND), catalogue=wide)
    assert zones(found, "open") == [("z1",), ("z1",)]
    assert zones(found, "web") == [("z1",)]
    assert not found.unplaced


def test_pods_on_a_node_that_may_be_of_the_wrong_capacity_type_leave_a_domain_open_to_others() -> None:
    """Zone z1 has one or two pods of `open`, or no node that counts: each other zone may have two."""
    first = w.replicas(2, "open", "3", labels=WEB, nodeSelector={labels.ZONE: "z1"}, priority=1)
    found = solution(first, w.replicas(3, "web", "1", **SPREAD, nodeSelector=ON_DEMAND))
    assert not found.unplaced
    assert len(zones(found, "web")) == 3


def test_the_only_domain_is_as_empty_as_it_is_full() -> None:
    """Nodes of `open` may be in a zone that `web` may not have. With or without their pods, the rack has no rival."""
    racks: dict[str, Any] = {"topologySpreadConstraints": [w.spread("rack")], "labels": WEB}
    open_ = w.replicas(2, "open", "1", priority=1, **racks)
    world = (w.pool(labels={"rack": "r1"}), open_, w.pod("web", nodeSelector={labels.ZONE: "z1"}, **racks))
    snapshot, found = w.world(*world), w.solved(*world)
    assert violations(snapshot, list(snapshot.pods.pending.values()), found) == []
    assert not found.unplaced
