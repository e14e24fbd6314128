"""Static NodePools: behaviours 117 to 120 of the catalogue (gate StaticCapacity)."""

from __future__ import annotations

from typing import Any

import msgspec

from kerf.decide import decide
from kerf.model.plan import CreateNodeClaim, DeleteObject, Plan, Source
from kerf.model.settings import FeatureGates
from kerf_api import labels
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

ON = FeatureGates(static_capacity=True)


def planned(*objects: Any, gates: FeatureGates = ON) -> Plan:
    fresh = dict.fromkeys(Source, w.NOW)
    return decide(w.world(*objects, catalogue=c.CATALOGUE, gates=gates, fresh_at=fresh))


def created(*objects: Any, gates: FeatureGates = ON) -> list[NodeClaim]:
    return [a.claim for a in planned(*objects, gates=gates).actions if isinstance(a, CreateNodeClaim)]


def deleted(*objects: Any) -> list[str]:
    """The claims that go, sorted."""
    actions = planned(*objects).actions
    return sorted(a.ref.name for a in actions if isinstance(a, DeleteObject) and a.ref.kind == "NodeClaim")


def member(name: str, *, launched: bool = True, pool: str = "default", **meta: Any) -> NodeClaim:
    """A claim of the pool."""
    own = {"name": name, "uid": f"uid-{name}", "labels": {labels.NODEPOOL: pool}, **meta}
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}
    status: dict[str, Any] = {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4", "memory": "4Gi", "pods": "9"}}
    if launched:
        done = {"status": "True", "reason": "x", "lastTransitionTime": "2026-01-01T11:00:00Z"}
        types = ("Launched", "Registered", "Initialized")
        status |= {"providerID": f"aws:///z1/i-{name}", "conditions": [{"type": t, **done} for t in types]}
    return decode(NodeClaim, {"metadata": own, "spec": {"nodeClassRef": ref}, "status": status})


def with_node(claim: NodeClaim) -> list[Any]:
    return [claim, c.node_of(claim)]


def members(count: int, **more: Any) -> list[Any]:
    return [thing for i in range(count) for thing in with_node(member(f"m{i}", **more))]


def test_117_a_static_pool_has_so_many_claims() -> None:
    """None, or four, with what the template demands: bounds are inclusive, minValues stay."""
    rows = [c.row("tier", "Gt", "2"), c.row(labels.INSTANCE_TYPE, "Exists", least=2)]
    assert created(c.pool(*rows, replicas=0)) == []
    assert created(c.pool(*rows, replicas=4), gates=FeatureGates()) == []
    found = created(c.pool(*rows, replicas=4))
    assert len({claim.name for claim in found}) == 4
    for claim in found:
        entries = {e.key: (e.operator, tuple(e.values), e.min_values) for e in claim.spec.requirements}
        assert entries["tier"] == ("Gt", ("2",), None)
        assert entries[labels.INSTANCE_TYPE] == ("Exists", (), 2)
        assert labels.CAPACITY_TYPE not in entries


def test_118_when_a_static_pool_makes_nothing() -> None:
    """It has enough; is not ready; is going; is somebody else's; or is not static."""
    assert created(w.pool(replicas=2), members(2)) == []
    assert created(w.pool(replicas=2, ready="False")) == []
    pool = w.pool(replicas=2)
    going = msgspec.structs.replace(pool.metadata, deletion_timestamp=w.NOW)
    assert created(msgspec.structs.replace(pool, metadata=going)) == []
    ref = {"group": "other.io", "kind": "OtherClass", "name": "default"}
    assert created(w.pool(replicas=2, template={"metadata": {}, "spec": {"nodeClassRef": ref}})) == []
    assert created(w.pool()) == []
    assert len(created(w.pool(replicas=2), members(1))) == 1


def test_119_a_static_pools_limit_of_nodes() -> None:
    """At the limit nothing is made; what is on its way counts, so that no two passes exceed it together."""
    limited = w.pool(replicas=5, limits={"nodes": "3"})
    assert created(limited, members(3)) == []
    first = created(limited, members(1))
    assert len(first) == 2
    assert created(limited, members(1), first) == []


def test_120_who_goes_first_from_a_static_pool() -> None:
    """Claims without an instance, nodes with daemons only, those that cost little, much, and last the protected."""
    bare, protected = member("a-bare", launched=False), with_node(member("e-protected"))
    empty, cheap, dear = (with_node(member(n)) for n in ("b-empty", "c-cheap", "d-dear"))
    daemon = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "x", "uid": "u", "controller": True}
    running = [
        w.pod("agent", node="b-empty", owner=daemon),
        w.pod("one", node="c-cheap"),
        *w.replicas(4, "many", node="d-dear"),
        w.pod("kept", node="e-protected", annotations={labels.DO_NOT_DISRUPT: "true"}),
    ]
    order = ["a-bare", "b-empty", "c-cheap", "d-dear", "e-protected"]
    world = [bare, *empty, *cheap, *dear, *protected, *running]
    for replicas in range(5):
        assert deleted(w.pool(replicas=replicas), world) == order[: 5 - replicas]
    going = member("gone", deletionTimestamp="2026-01-01T11:59:00Z", finalizers=["karpenter.sh/termination"])
    assert deleted(w.pool(replicas=5), world, going) == []
