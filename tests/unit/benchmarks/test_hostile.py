"""The benchmark of hostile objects drives `decide` as the controller does."""

from __future__ import annotations

import gc

import pytest

from benchmarks.clusters import node_pool
from benchmarks.hostile import measure
from benchmarks.hostile.written import Written, node_class
from kerf.decide import decide
from kerf.model import kinds
from kerf.model.kinds import Ref, ref
from kerf.model.memory import Memory
from kerf.model.plan import PatchObject, Plan, Reason
from kerf.model.snapshot import Snapshot
from kerf_api import labels
from kerf_api.v1.nodepool import NodePool


def test_what_a_pass_writes_is_there_in_the_next_one() -> None:
    world, reason = Written(), Reason("r", "t")
    world.add([node_class(), node_pool()])
    patch = {"metadata": {"annotations": {"a": "b"}}}
    for one in (node_class(), node_pool()):
        world.perform([PatchObject(reason=reason, verb="Annotate", ref=ref(one), patch=patch)])
    assert world.cluster.objects(kinds.NODE_POOL)["default"].metadata.annotations == {"a": "b"}
    assert world.cluster.objects(kinds.NODE_CLASS)["default"].metadata.annotations == {}
    gone = Ref("NodePool", "", "gone")
    world.perform([PatchObject(reason=reason, verb="Annotate", ref=gone, patch=patch)])
    assert [*world.cluster.objects(kinds.NODE_POOL)] == ["default"]


def test_passes_share_a_memory_and_the_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[tuple[Snapshot, Memory]]()

    def noted(snapshot: Snapshot, memory: Memory) -> Plan:
        seen.append((snapshot, memory))
        return decide(snapshot, memory)

    monkeypatch.setattr(measure, "decide", noted)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(gc, "set_threshold", lambda *numbers: None)
    found = measure.measured("NodePools, one label each", 3)
    assert (found.served, found.refused, found.left_over) == (21, 0, 0)
    assert len({id(memory) for _, memory in seen}) == 1
    assert len({id(snapshot.journal) for snapshot, _ in seen}) == 1
    pools: list[NodePool] = [*seen[-1][0].node_pools.values()]
    assert len(pools) == 4
    assert all(pool.metadata.annotations[labels.NODEPOOL_HASH] for pool in pools)
    assert all(
        condition.status == "True"
        for pool in pools
        for condition in pool.status.conditions
        if condition.type == "Ready"
    )
