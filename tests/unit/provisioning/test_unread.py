"""A node that a bug keeps from being read is refused; pods that it may hold wait for five minutes, then get a node."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace as changed

from kerf.model.kubernetes.storage import CSINode
from kerf.model.memory import Memory
from kerf.model.plan import CreateNodeClaim, Plan
from kerf.model.snapshot import Batch, Snapshot
from kerf.provisioning.provision import provision
from kerf_api.v1.meta import ObjectMeta
from tests.unit.provisioning.test_boundary import refused
from tests.unit.scheduling import worlds as w

SECOND = timedelta(seconds=1)
ALL = {"pod/default/p-0": "InternalError", "pod/default/p-1": "InternalError", "node/n": "InternalError"}


class Unreadable(CSINode, frozen=True):
    @property
    def attachable(self) -> dict[str, int]:
        raise TypeError("no number at all")


def world(*objects: Any, seconds: float = 0, since: datetime | None = None, **facts: Any) -> Snapshot:
    """A node whose attach limits cannot be read, and other objects."""
    now = w.NOW + seconds * SECOND
    known = {"node/n": since} if since is not None else {}
    objects = (w.pool(), w.node("n"), *objects)
    snapshot = w.world(*objects, now=now, batch=Batch(now - 60 * SECOND, now - 60 * SECOND), **facts)
    return replace(snapshot, csi_nodes={"n": Unreadable(metadata=ObjectMeta(name="n"))}, unread_since=known)


def planned(*objects: Any, **facts: Any) -> Plan:
    return provision(world(*objects, **facts))


def made(plan: Plan) -> int:
    return sum(isinstance(action, CreateNodeClaim) for action in plan.actions)


def test_pods_that_it_may_hold_wait_and_get_a_node_after_five_minutes() -> None:
    pods = w.replicas(2, "p")
    plan = planned(pods)
    assert made(plan) == 0
    assert refused(plan) == ALL
    assert plan.unread_since == {"node/n": w.NOW}
    assert plan.next_due is not None
    later = planned(pods, seconds=299, since=w.NOW)
    assert (made(later), refused(later)) == (0, ALL)
    assert later.unread_since == {"node/n": w.NOW}
    at_last = planned(pods, seconds=300, since=w.NOW)
    assert made(at_last) == 1
    assert refused(at_last) == {"node/n": "InternalError"}
    assert len(at_last.nominations) == 2


def test_a_pod_that_has_waited_five_minutes_gets_its_node_also_after_a_restart() -> None:
    pod = w.pod("p")
    (condition,) = pod.status.conditions
    for waited, nodes in ((299, 0), (300, 1)):
        since = changed(condition, last_transition_time=w.NOW - waited * SECOND)
        assert made(planned(changed(pod, status=changed(pod.status, conditions=(since,))))) == nodes


@pytest.mark.parametrize(
    "other",
    [
        w.pod("other", "5"),
        w.pod("other", nodeSelector={"topology.kubernetes.io/zone": "z2"}),
    ],
)
def test_pods_that_it_cannot_hold_are_served_at_once(other: Any) -> None:
    types = (w.instance_type("large", 8, 8),)
    plan = planned(w.pod("p-0"), w.pod("p-1"), other, catalogue=types)
    assert made(plan) == 1
    assert refused(plan) == ALL
    assert {n.pod_uid for n in plan.nominations} == {other.metadata.uid}


def test_no_more_pods_wait_than_it_may_hold_together() -> None:
    plan = planned(w.replicas(10, "p", "1", "100Mi"))
    assert sum(code == "InternalError" for code in refused(plan).values()) == 4 + 1
    assert len(plan.nominations) == 6


def test_other_nodes_take_pods_at_once() -> None:
    plan = planned(w.node("sound"), w.replicas(2, "p"))
    assert refused(plan) == {"node/n": "InternalError"}
    assert {n.target for n in plan.nominations} == {"node/sound"}


def test_a_node_with_a_pod_that_cannot_be_read_is_unread_and_its_other_pods_count() -> None:
    nonsense: Any = 7
    apart: dict[str, Any] = {
        "labels": {"app": "web"},
        "affinity": w.between("podAntiAffinity", "topology.kubernetes.io/zone"),
    }
    odd = w.pod("odd", node="m")
    odd = changed(odd, metadata=changed(odd.metadata, owner_references=nonsense))
    objects = [w.pool(), w.node("m"), odd, w.pod("there", node="m", **apart), w.pod("p", **apart)]
    for seconds in (0, 300):
        now = w.NOW + seconds * SECOND
        snapshot = w.world(*objects, now=now, batch=Batch(now - 60 * SECOND, now - 60 * SECOND))
        plan = provision(replace(snapshot, unread_since={"node/m": w.NOW}))
        assert refused(plan)["node/m"] == "InternalError"
        assert made(plan) == (1 if seconds else 0)
        assert all("z1" not in str(a.claim.spec.requirements) for a in plan.actions if isinstance(a, CreateNodeClaim))


def test_a_malformed_node_holds_nothing_up() -> None:
    node = w.node("n")
    odd = changed(node, status=changed(node.status, allocatable={"cpu": "much"}))
    now = w.NOW
    plan = provision(w.world(w.pool(), odd, w.pod("p"), batch=Batch(now - 60 * SECOND, now - 60 * SECOND)))
    assert made(plan) == 1


def test_the_plan_is_the_same_with_and_without_a_memory() -> None:
    memory = Memory()
    first = world(w.replicas(2, "p"))
    assert provision(first, memory.turn(first)) == provision(first)
    later = world(w.replicas(2, "p"), seconds=300, since=w.NOW)
    assert provision(later, memory.turn(later)) == provision(later)
