"""Consolidation moves no running pod to a node that changed within its pool's consolidateAfter; other pods may go."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from api.v1.meta import decode
from api.v1.nodeclaim import NodeClaim
from reconciler.model.objects import Node, Pod
from reconciler.scheduling.solve import Solution, solve
from tests.unit.scheduling import worlds as w

AFTER = timedelta(minutes=5)
MINUTE = timedelta(minutes=1)
OLD = w.node("old")


def stamp(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


def pool(after: str) -> Any:
    return w.pool(disruption={"consolidateAfter": after})


def claimed(node: Node, initialized: timedelta = 9 * AFTER, pod_event: timedelta | None = None) -> NodeClaim:
    """The node's claim; the arguments say how long ago it was initialised and a pod came or went."""
    condition = {"type": "Initialized", "status": "True", "lastTransitionTime": stamp(w.NOW - initialized)}
    status: dict[str, Any] = {"providerID": node.spec.provider_id, "conditions": [condition]}
    if pod_event is not None:
        status["lastPodEventTime"] = stamp(w.NOW - pod_event)
    own = {**node.metadata.labels, "karpenter.sh/nodepool": "default"}
    metadata = {"name": f"claim-{node.name}", "uid": f"uid-claim-{node.name}", "labels": own}
    spec = {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}
    return decode(NodeClaim, {"metadata": metadata, "spec": spec, "status": status})


def pooled(name: str = "n") -> Node:
    """A node of the pool."""
    return w.node(name, labels={"karpenter.sh/nodepool": "default"})


def moved(pod: Pod, *objects: Any, respect: bool = True) -> Solution:
    """Where the pod goes when the old node is taken away and no node may be made."""
    snapshot = w.world(*objects, OLD, pod)
    exclude = frozenset({"node/old"})
    return solve(snapshot, [pod], exclude=exclude, respect_consolidate_after=respect, open_new=False)


@pytest.mark.parametrize(
    ("initialized", "pod_event", "taken"),
    [
        (9 * AFTER, None, True),
        (AFTER - MINUTE, None, False),
        (9 * AFTER, AFTER - MINUTE, False),
        (AFTER - MINUTE, 2 * AFTER, True),
        (9 * AFTER, AFTER, True),
    ],
)
def test_the_latest_pod_event_counts_else_the_initialisation(
    initialized: timedelta, pod_event: timedelta | None, taken: bool
) -> None:
    solution = moved(w.pod("p", node="old"), pool("5m"), pooled(), claimed(pooled(), initialized, pod_event))
    assert solution.placed == ({"default/p": "claim-n"} if taken else {})
    assert bool(solution.unplaced) != taken


@pytest.mark.parametrize("after", ["0s", "Never"])
def test_a_pool_without_a_waiting_time_spares_no_node(after: str) -> None:
    assert moved(w.pod("p", node="old"), pool(after), pooled(), claimed(pooled(), MINUTE)).placed


def test_only_consolidation_spares_settling_nodes() -> None:
    objects = (pool("5m"), pooled(), claimed(pooled(), MINUTE))
    assert not moved(w.pod("p", node="old"), *objects).placed
    assert moved(w.pod("p", node="old"), *objects, respect=False).placed


def test_a_pending_pod_may_go_to_a_settling_node() -> None:
    assert moved(w.pod("p"), pool("5m"), pooled(), claimed(pooled(), MINUTE)).placed


def test_a_pod_whose_node_is_going_anyway_may_go_to_a_settling_node() -> None:
    gone = w.node("gone")
    gone = msgspec.structs.replace(gone, metadata=msgspec.structs.replace(gone.metadata, deletion_timestamp=w.NOW))
    assert moved(w.pod("p", node="gone"), gone, pool("5m"), pooled(), claimed(pooled(), MINUTE)).placed


def test_a_settled_node_is_taken_instead() -> None:
    nodes = [pooled("a"), claimed(pooled("a"), MINUTE), pooled("b"), claimed(pooled("b"))]
    assert moved(w.pod("p", node="old"), pool("5m"), nodes).placed == {"default/p": "claim-b"}
