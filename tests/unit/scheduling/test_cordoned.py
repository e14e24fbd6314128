"""Cordoned nodes: places for pods that tolerate the taint of a cordon, as in the kube-scheduler, and for no others."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model.kubernetes.objects import Node
from kerf.model.plan import Nomination
from kerf.scheduling.nodes.table import CORDON
from kerf.scheduling.solve import solve
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.accounts import account

#: The node controller adds the taint a moment after the cordon.
TAINTS: list[Any] = [[], [{"key": CORDON.key, "effect": "NoSchedule"}]]
TOLERANT: list[Any] = [
    {"key": CORDON.key, "operator": "Exists"},
    {"key": CORDON.key, "operator": "Exists", "effect": "NoSchedule"},
    {"operator": "Exists"},
]
OTHERS: list[Any] = [
    {"key": CORDON.key, "operator": "Exists", "effect": "NoExecute"},
    {"key": "team", "operator": "Exists"},
]


def cordoned(name: str = "n", **extra: Any) -> Node:
    made = w.node(name, **extra)
    return replace(made, spec=replace(made.spec, unschedulable=True))


@pytest.mark.parametrize("taints", TAINTS, ids=["before the taint", "with the taint"])
def test_a_pod_that_tolerates_the_cordon_goes_there(taints: Any) -> None:
    for row in TOLERANT:
        solution = w.solved(w.pool(), cordoned(taints=taints), w.pod("p", tolerations=[row]))
        assert solution.placed == {"default/p": "node/n"}
    for row in OTHERS:
        solution = w.solved(w.pool(), cordoned(taints=taints), w.pod("p", tolerations=[row]))
        assert (not solution.placed, len(solution.new_nodes)) == (True, 1)


def test_a_cordon_tolerated_is_no_other_taint_tolerated() -> None:
    taints = [*TAINTS[1], {"key": "team", "effect": "NoSchedule"}]
    assert not w.solved(w.pool(), cordoned(taints=taints), w.pod("p", tolerations=TOLERANT[:1])).placed


def test_a_promise_of_a_node_ends_when_it_is_cordoned() -> None:
    for tolerations, there in (([], False), (TOLERANT[:1], True)):
        pod = w.pod("p", tolerations=tolerations)
        promise = Nomination(pod.metadata.uid, "node/n", w.NOW)
        snapshot = w.world(w.pool(), cordoned(), pod, nominations=(promise,))
        solution = solve(snapshot, [pod])
        assert (bool(solution.placed), bool(solution.new_nodes)) == (there, not there)


@pytest.mark.parametrize("taints", TAINTS, ids=["before the taint", "with the taint"])
def test_room_is_kept_there_for_a_missing_daemon_pod(taints: Any) -> None:
    """The DaemonSet controller has its pods tolerate a cordon."""
    pod = w.pod("p", "1", tolerations=TOLERANT[:1])
    there = cordoned(taints=taints, cpu="2")
    assert w.solved(w.pool(), there, pod).placed
    assert not w.solved(w.pool(), there, w.daemon_set("agent", "1500m"), pod).placed


@pytest.mark.parametrize("taints", TAINTS, ids=["before the taint", "with the taint"])
def test_a_refusal_says_that_the_node_is_cordoned(taints: Any) -> None:
    found = account(cordoned(taints=taints), w.pod("p"))
    assert found.nodes.rows == (("is cordoned", 1),)
    assert not found.fixes


def test_a_spread_counts_by_the_taints_that_a_node_has() -> None:
    """`nodeTaintsPolicy: Honor` leaves a cordoned node out when the taint is there."""
    row = {
        "topologyKey": "kubernetes.io/hostname",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "nodeTaintsPolicy": "Honor",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    full = w.pod("other", node="m", labels={"app": "web"})
    for taints, places in ((TAINTS[0], False), (TAINTS[1], True)):
        pod = w.pod("p", labels={"app": "web"}, topologySpreadConstraints=[row])
        assert bool(w.solved(cordoned(taints=taints), w.node("m"), full, pod).placed) == places
