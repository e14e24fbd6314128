"""The specs of NodePools: the journal names those that differ, and what rests on one is kept while statuses change."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.decide import decide
from kerf.model import kinds
from kerf.model.cluster import Cluster
from kerf.model.memory import Memory
from kerf.model.settings import Settings
from kerf.model.snapshot import Batch, Snapshot
from kerf_api.lint.rules import requirement_rules
from kerf_api.v1.nodepool import NodePool
from tests.unit.scheduling import worlds as w

_EARLIER = w.NOW - timedelta(minutes=1)


def _with_nodes(pool: NodePool, count: int) -> NodePool:
    status = replace(pool.status, nodes=count, resources={"nodes": str(count)})
    meta = replace(pool.metadata, annotations={"example.com/count": str(count)})
    return replace(pool, metadata=meta, status=status)


def _snapshot(cluster: Cluster) -> Snapshot:
    return cluster.snapshot(
        now=w.NOW,
        settings=Settings(cluster_name="c"),
        catalogues={"default": w.CATALOGUE},
        batch=Batch(_EARLIER, _EARLIER),
    )


def test_a_pool_with_an_equal_spec_keeps_the_one_that_is_known() -> None:
    cluster, first, again = Cluster(), w.pool(), w.pool()
    cluster.apply(kinds.NODE_POOL, first)
    position = _snapshot(cluster).journal.position  # type: ignore[union-attr]
    cluster.apply(kinds.NODE_POOL, _with_nodes(again, 2))
    found = _snapshot(cluster)
    assert found.node_pools["default"].spec is found.pool_specs["default"] is first.spec
    assert ("pool_specs", "default") not in (found.journal.since(position) or ())  # type: ignore[union-attr]
    cluster.apply(kinds.NODE_POOL, replace(again, spec=replace(again.spec, weight=7)))
    changed = _snapshot(cluster)
    assert changed.node_pools["default"].spec is changed.pool_specs["default"]
    assert changed.pool_specs["default"].weight == 7
    assert ("pool_specs", "default") in (changed.journal.since(position) or ())  # type: ignore[union-attr]
    cluster.remove(kinds.NODE_POOL, "", "default")
    assert not _snapshot(cluster).pool_specs


def test_a_pool_is_validated_and_read_again_only_when_its_spec_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, memory, pool = Cluster(), Memory(), w.pool()
    calls = list[str]()
    sound, required = requirement_rules.sound, NodePool.requirements

    def checked(*given: Any) -> Any:
        calls.append("check")
        return sound(*given)

    def read(pool: NodePool) -> Any:
        calls.append("read")
        return required(pool)

    monkeypatch.setattr(requirement_rules, "sound", checked)
    monkeypatch.setattr(NodePool, "requirements", read)
    cluster.apply(kinds.POD, w.pod("p"))

    def looked(found: NodePool) -> tuple[Counter[str], Counter[str]]:
        """What is done with this NodePool, with the memory and with an empty one."""
        cluster.apply(kinds.NODE_POOL, found)
        done = []
        for one in (memory, Memory()):
            calls.clear()
            done.append((decide(_snapshot(cluster), one).actions, Counter(calls)))
        (actions, known), (same_actions, empty) = done
        assert actions == same_actions
        return known, empty

    for changed in (pool, replace(pool, spec=replace(pool.spec, weight=7))):
        known, empty = looked(changed)
        assert known == empty
        known, empty = looked(_with_nodes(changed, 1))
        assert empty - known == Counter(check=1, read=1)
