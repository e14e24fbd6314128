"""CapacityBuffers and disruption: a node that only they use stays; others go where their room can be had again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from kerf.disruption.asking import Manner, Scheduler
from kerf.disruption.candidates.candidates import Blocker, Candidate, candidate
from kerf.disruption.consolidation.moves import judge
from kerf.disruption.disrupt import disrupt
from kerf.disruption.propose import propose
from kerf.disruption.simulation import simulate
from kerf.disruption.view import view
from kerf.model.kubernetes.workloads import StoredTemplate
from kerf.model.plan import Plan
from kerf.model.settings import FeatureGates, Settings
from kerf.model.snapshot import Snapshot
from kerf_api.v1.capacitybuffer import CapacityBuffer
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool
from tests.unit.disruption import worlds as w

CATALOGUE = (w.instance_type("m5.large", 96_000), w.instance_type("t3.small", 20_000))
ON = Settings("test", gates=FeatureGates(capacity_buffer=True))


def buffer(cpu: str, replicas: int = 1, *, fits: bool = True, zone: Mapping[str, str] = {}) -> list[Any]:
    """A buffer with its template; `fits` is what the latest pass said of it."""
    meta = {"name": "b", "namespace": "shop", "uid": "buffer"}
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    rows = [{"type": "Provisioning", "status": "True" if fits else "False", "reason": "x"}]
    spec = {"podTemplateRef": {"name": "t"}, "replicas": replicas}
    stored = {"metadata": {**meta, "name": "t"}, "template": {"spec": {"containers": containers, "nodeSelector": zone}}}
    return [
        decode(CapacityBuffer, {"metadata": meta, "spec": spec, "status": {"conditions": rows}}),
        decode(StoredTemplate, stored),
    ]


def pair(name: str, **more: Any) -> list[Any]:
    one = w.claim(name, **more)
    return [one, w.node(one)]


def world(*objects: Any, pool: NodePool | None = None, **facts: Any) -> Snapshot:
    return w.snapshot([pool or w.pool(), *objects], **{"settings": ON, "catalogues": {"default": CATALOGUE}, **facts})


def two_nodes(*more: Any, **facts: Any) -> Snapshot:
    """Two nodes of two cores each, and a pod of half a core on the first."""
    return world(*pair("a"), *pair("b"), w.pod("web", "a"), *more, **facts)


def verdict(snapshot: Snapshot) -> str:
    seen = view(snapshot)
    found = candidate(seen, "a")
    assert isinstance(found, Candidate)
    move = judge(seen, [found], Scheduler(snapshot, seen.turn))
    return move.code if isinstance(move, Blocker) else move.kind


def limited(nodes: int) -> NodePool:
    pool = w.pool()
    return msgspec.structs.replace(pool, spec=msgspec.structs.replace(pool.spec, limits={"nodes": str(nodes)}))


def started(plan: Plan) -> list[str]:
    return [action.lane for action in plan.actions if action.key.startswith("StartCommand")]


def test_an_empty_node_where_room_is_kept_stays_and_that_is_said() -> None:
    plan = disrupt(world(*pair("a"), *pair("b"), buffer_pods={"a": 2}), w.never)
    assert started(plan) == ["nodeclaim/b"]
    (refusal,) = [r for r in plan.refusals if r.subject == "node/node-a"]
    text = "CapacityBuffers reserve capacity on it (pods: 2)"
    assert (refusal.reason.code, refusal.reason.text) == ("BufferPods", text)
    assert started(disrupt(world(*pair("a"), *pair("b"), buffer_pods={}), w.never)) == ["nodeclaim/a", "nodeclaim/b"]


@pytest.mark.parametrize(
    ("cpu", "replicas", "expected"),
    [
        ("1500m", 1, "delete"),
        ("800m", 1, "delete"),
        ("1800m", 1, "NotCheaper"),
        ("1", 2, "replace"),
        ("1800m", 2, "TooManyNodes"),
    ],
)
def test_a_node_goes_only_where_the_room_is_had_elsewhere_or_for_less(cpu: str, replicas: int, expected: str) -> None:
    assert verdict(two_nodes(*buffer(cpu, replicas))) == expected


def test_without_buffers_or_the_gate_it_goes() -> None:
    assert verdict(two_nodes()) == "delete"
    assert verdict(two_nodes(*buffer("1800m"), settings=Settings("test"))) == "delete"


def test_room_that_there_is_is_not_given_up_where_no_other_can_be_made() -> None:
    """A buffer that has no room anyway loses none."""
    assert verdict(two_nodes(*buffer("1800m"), pool=limited(1))) == "PodsWouldNotSchedule"
    assert verdict(two_nodes(*buffer("1800m", fits=False), pool=limited(1))) == "delete"


def test_the_slow_half_sees_buffers_too() -> None:
    assert [p.kind for p in propose(two_nodes())] == ["delete"]
    assert propose(two_nodes(*buffer("1800m"))) == ()


def test_drift_is_not_held_up_and_brings_room_with_it() -> None:
    snapshot = two_nodes(*buffer("1800m"), pool=limited(1))
    seen = view(snapshot)
    found = candidate(seen, "a")
    assert isinstance(found, Candidate)
    ask = Scheduler(snapshot, seen.turn)
    assert simulate(seen, [found], ask, Manner.FREELY).blocker is None
    assert simulate(seen, [found], ask, Manner.SPARING).blocker is not None
    free = two_nodes(*buffer("1800m"))
    outcome = simulate(view(free), [found], Scheduler(free), Manner.FREELY)
    assert [node.pods for node in outcome.new_nodes] == [("shop/capacity-buffer-b-1",)]


def test_nodes_that_have_just_been_used_take_virtual_pods() -> None:
    """They are no pods that consolidation would move, so `consolidateAfter` does not keep them away."""
    snapshot = two_nodes(*buffer("1500m"), pool=w.pool(consolidateAfter="10h"))
    seen = view(snapshot)
    found = candidate(seen, "a")
    assert isinstance(found, Candidate)
    outcome = simulate(seen, [found], Scheduler(snapshot), Manner.SPARING)
    assert [node.pods for node in outcome.new_nodes] == [("shop/web",)]
