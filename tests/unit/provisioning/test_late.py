"""Pods beside late nodes of their NodePools: who gets a node, of which NodePool, and who waits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.settings import FeatureGates
from kerf.provisioning.provision import provision
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool
from tests.unit.disruption.test_buffers import buffer
from tests.unit.provisioning.test_planned_alike import (
    AMD,
    ARM,
    BATCH,
    GPU,
    LATE,
    POOL,
    Requirements,
    launched,
    made,
    refusals,
    waiting,
    weighty,
)
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.progress_world import FOREIGN, claim, ready

HASHES = {labels.NODEPOOL_HASH: "h", labels.NODEPOOL_HASH_VERSION: "v3"}
BOTH: Requirements = {"nodeSelector": {labels.ZONE: "z1", labels.ARCH: "arm64"}}
ZONAL = [(BOTH, 40, False), (BOTH, 25, False), (AMD, 12, True)]
SPREAD: Requirements = {"labels": {"app": "db"}, "topologySpreadConstraints": [w.spread(app="db")]}


def late_of(pool: NodePool, rows: Sequence[tuple[Requirements, int, bool]] = LATE) -> list[NodeClaim | Node]:
    """Nodes of a NodePool, late ones and others, as in `waiting`."""
    return [each for n, row in enumerate(rows) for each in launched(f"{pool.name}-{n}", *row, pool)]


def homes(*objects: Any, **more: Any) -> list[tuple[str, int]]:
    """The NodePools of the nodes that are made, each with the number of its pods."""
    plan = waiting(*objects, **more)
    marks = [one.claim.metadata.annotations[labels.PLANNED_PODS].split(",") for one in made(plan)]
    return [(one.claim.pool_name, len(own)) for one, own in zip(made(plan), marks, strict=True)]


def since(pod: Pod, minutes: float) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, creation_timestamp=w.NOW - timedelta(minutes=minutes)))


@pytest.mark.parametrize("late", [None, 1, 2])
def test_a_hard_spread_takes_no_node_from_pods_whose_node_pool_makes_them(late: int | None) -> None:
    """The other NodePool would serve all of them, or only one at a time."""
    other = w.pool("other", weight=1, annotations=HASHES)
    rows = late_of(other, [(AMD, 40, False), (AMD, 25, False)][:late]) if late else []
    pods = [*w.replicas(2, "db", "3", **ARM, **SPREAD), *w.replicas(3, "web", "3", **AMD)]
    assert homes(*pods, *rows, pools=[weighty(), other]) == [("default", 1)] * 3
    assert {name for name, _ in homes(*pods[:2], pools=[weighty(), other])} == {"other"}


@pytest.mark.parametrize("late", [1, 2, 4])
def test_a_hard_spread_passes_over_node_pools_one_after_the_other(late: int) -> None:
    pools = [w.pool(f"p{n}", weight=50 - n, annotations=HASHES) for n in range(late)]
    there = [each for pool in pools for each in late_of(pool)]
    pods = w.replicas(2, "db", "3", **ARM, **SPREAD)
    assert homes(*pods, *there, rows=[], pools=[*pools, w.pool("free", weight=1)]) == [("free", 1)] * 2


def test_a_node_pool_that_is_passed_over_for_a_hard_spread_is_no_problem() -> None:
    plan = waiting(*w.replicas(2, "db", "3", **ARM, **SPREAD), pools=[weighty(), w.pool("other", weight=1)])
    assert [one.subject for one in plan.refusals] == []


@pytest.mark.parametrize("late", [1, 3, 4, 6])
def test_node_pools_that_make_no_such_node_are_passed_over_one_after_the_other(late: int) -> None:
    pools = [w.pool(f"p{n}", weight=50 - n, annotations=HASHES) for n in range(late)]
    there = [each for pool in pools for each in late_of(pool)]
    pods = w.replicas(3, "db", "3", **ARM)
    assert homes(*pods, *there, rows=[], pools=[*pools, w.pool("free", weight=1)]) == [("free", 3)]


@pytest.mark.parametrize("older", [5, 60])
def test_older_pods_without_a_place_keep_no_younger_ones_waiting(older: int) -> None:
    own = w.pool(weight=10, labels={"team": "x"}, annotations=HASHES)
    team: Requirements = {"nodeSelector": {labels.ARCH: "arm64", "team": "x"}}
    pods = [since(w.pod(f"a{n:02}", f"{2000 + n}m", **team), 90 - n) for n in range(older)]
    there = late_of(own)
    assert homes(*pods, w.pod("young", "3", **ARM), *there, rows=[], pools=[own, w.pool("other", weight=1)]) == [
        ("other", 1)
    ]


def test_pods_that_are_held_get_no_new_node_where_others_go() -> None:
    """Its place is beside the database, which moves to another zone with its NodePool."""
    first, second = (
        w.pool(name, weight=weight, annotations=HASHES, requirements=[row])
        for name, weight, row in (
            ("default", 10, {"key": labels.ZONE, "operator": "In", "values": ["z2"]}),
            ("other", 1, {"key": labels.ZONE, "operator": "In", "values": ["z1"]}),
        )
    )
    held = w.pod("held", "1100m", affinity=w.between("podAffinity", labels.ZONE, "db"), **AMD)
    node: list[Node | NodeClaim] = [claim("h1", held, minutes=0.5, pool="other"), ready("h1", taints=[FOREIGN])]
    there: list[Node | Pod] = [
        w.node("seat", zone="z2", cpu="1300m"),
        w.pod("db", "3", labels={"app": "db"}, priority=5, **ARM),
        held,
    ]
    plan = waiting(*there, *node, *late_of(first), rows=[], pools=[first, second])
    assert [one.claim.pool_name for one in made(plan)] == ["other"]
    assert refusals(plan) == {"held": "AwaitingNode"}


def test_pods_keep_the_nodes_that_those_of_their_shape_may_not_have() -> None:
    """One shares a node in the zone where nodes come up; only the other one's may be like the late ones."""
    there = [each for n, age in enumerate((40, 25)) for each in launched(f"n{n}", ARM, age, False)]
    moved = {labels.ZONE: "z2"}
    rows = [
        replace(one, metadata=replace(one.metadata, labels={**one.metadata.labels, **moved}))
        if isinstance(one, NodeClaim)
        else one
        for one in there
    ]
    zonal = w.pod("zonal", "1", priority=10, **BOTH)
    plan = waiting(zonal, *w.replicas(2, "s", "8", **ARM), *rows, *launched("ok", AMD, 12, True), rows=[])
    assert refusals(plan) == {"s-1": "NodesNotInitialized"}
    assert len(plan.nominations) == 2


def test_pods_beside_which_others_have_a_node_all_get_one_of_another_node_pool() -> None:
    """How many of them need one is seen when all are placed by themselves."""
    rows = [(GPU, 40, False), (GPU, 25, False), (AMD, 12, True)]
    trains, web = w.replicas(4, "train", "1", **GPU), w.pod("web", "2", "1Gi")
    room = w.node("there", cpu="1", allocatable={"example.com/gpu-a": "1"})
    (mixed,) = (node.pods for node in w.solved(POOL, room, *trains, web).new_nodes if web.key in node.pods)
    assert len(mixed) > 1
    found = homes(room, *trains, web, rows=rows, pools=[weighty(), w.pool("other", weight=1)])
    assert [pods for name, pods in found if name == "default"] == [1]
    assert sum(pods for name, pods in found if name == "other") == 3


def test_the_oldest_pod_keeps_the_company_of_its_shape() -> None:
    pods = [*w.replicas(4, "arm", "3", **ARM), w.pod("zonal", "3", nodeSelector={labels.ZONE: "z1"})]
    assert len(w.solved(POOL, *pods).new_nodes) == 1
    assert homes(*pods, rows=ZONAL) == [("default", 4)]


def _beside_buffer(pod: Pod, rows: Sequence[tuple[Requirements, int, bool]], zone: str) -> list[str]:
    """The pods for which nodes are made beside a CapacityBuffer for a zone."""
    there = [each for n, row in enumerate(rows) for each in launched(f"n{n}", *row)]
    virtual = buffer("3", 1, zone={labels.ZONE: zone})
    gates = FeatureGates(capacity_buffer=True)
    plan = provision(w.world(POOL, *there, pod, *virtual, batch=BATCH, gates=gates))
    assert len(made(plan)) == 1
    return [one.pod_uid for one in plan.nominations]


def test_virtual_pods_take_no_node_from_real_ones() -> None:
    """Neither of a node that both would share, nor of the one attempt that is left."""
    real = since(w.pod("real", "3", **ARM), 60)
    assert _beside_buffer(real, ZONAL, "z1") == [real.metadata.uid]
    in_the_zone = w.pod("real", "3", nodeSelector={labels.ZONE: "z1"})
    assert _beside_buffer(in_the_zone, [(ARM, 40, False)], "z2") == [in_the_zone.metadata.uid]
