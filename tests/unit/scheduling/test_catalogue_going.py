"""Pods on nodes that are being deleted: behaviours 142 and 143 of the catalogue (scheduling reference §11)."""

from __future__ import annotations

from typing import Any

import msgspec

from kerf.model.kubernetes.objects import Node, Pod, PodDisruptionBudget
from kerf_api.v1.meta import decode
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

DELETED = "2026-01-01T11:59:30Z"


def going() -> Node:
    node = w.node("going")
    meta = msgspec.structs.replace(node.metadata, deletion_timestamp=w.NOW)
    return msgspec.structs.replace(node, metadata=meta)


def resident(name: str, *, owner: str = "", phase: str = "Running", terminating: bool = False) -> Pod:
    """A pod on the node that is going."""
    pod = w.pod(name, node="going", labels={"app": "web"})
    meta = msgspec.to_builtins(pod.metadata) | ({"deletionTimestamp": DELETED} if terminating else {})
    if owner:
        meta["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": owner, "name": "x", "uid": "u", "controller": True}
        ]
    status = msgspec.structs.replace(pod.status, phase=phase)
    return msgspec.structs.replace(pod, metadata=decode(type(pod.metadata), meta), status=status)


def moved(*objects: Any) -> list[str]:
    """The pods for which a place was looked for, and found."""
    done = c.run(w.pool(), going(), *objects)
    assert not done.pending
    return sorted(key.split("/")[1] for node in done.nodes for key in node.pods)


def budget(name: str, **spec: Any) -> PodDisruptionBudget:
    body = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return decode(PodDisruptionBudget, {"metadata": {"name": name, "namespace": "default"}, "spec": body})


def test_142_whose_place_is_looked_for() -> None:
    """Active pods, and those of a stateful set while they terminate; nobody else."""
    assert moved(resident("active"), resident("owned", owner="ReplicaSet")) == ["active", "owned"]
    assert moved(resident("done", phase="Succeeded"), resident("failed", phase="Failed")) == []
    assert moved(resident("agent", owner="DaemonSet")) == []
    assert moved(resident("leaving", terminating=True), resident("r", owner="ReplicaSet", terminating=True)) == []
    assert moved(resident("kept", owner="StatefulSet", terminating=True)) == ["kept"]


def test_143_pods_that_may_not_be_evicted_stay() -> None:
    """A budget that never allows one, or two budgets at once."""
    for spec in ({"maxUnavailable": 0}, {"maxUnavailable": "0%"}, {"minAvailable": "100%"}):
        assert moved(resident("p"), budget("a", **spec)) == []
    assert moved(resident("p"), budget("a", maxUnavailable=1), budget("b", maxUnavailable=1)) == []
    assert moved(resident("p"), budget("a", maxUnavailable=1)) == ["p"]
