"""DaemonSet pods that a node still lacks: free resources and host ports are kept for those that can come, only."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.scheduling.solve import solve
from kerf_api import labels
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.test_catalogue_daemons import of_agent

HTTP = [{"containerPort": 80, "hostPort": 80}]
RACK = "example.com/rack"


def _placed(*objects: Any) -> bool:
    """Whether the pod `p` gets the node `n`."""
    return w.solved(w.pool(), *objects).placed.get("default/p") == "node/n"


def _agent(**spec: Any) -> Any:
    return w.daemon_set("agent", "1500m", **spec)


def test_resources_are_kept_for_a_pod_that_comes() -> None:
    there = w.node("n", cpu="2")
    assert not _placed(there, _agent(), w.pod("p", "1"))
    assert _placed(there, of_agent(w.pod("agent-n", "100m", node="n")), w.pod("p", "1"))


@pytest.mark.parametrize(
    ("rules", "other"),
    [
        ({"affinity": w.between("podAntiAffinity")}, {"labels": {"app": "web"}}),
        ({"affinity": w.between("podAntiAffinity", RACK)}, {"labels": {"app": "web"}}),
        ({"labels": {"app": "web"}}, {"affinity": w.between("podAntiAffinity")}),
        ({"ports": HTTP}, {"ports": HTTP}),
        ({"requests": {"memory": "4Gi"}}, {"memory": "2Gi"}),
        ({"requests": {"example.com/none": "1"}}, {}),
        ({"affinity": w.between("podAffinity", app="db")}, {"labels": {"app": "web"}}),
    ],
    ids=["its anti-affinity", "over racks", "of another pod", "host port", "memory", "unknown resource", "affinity"],
)
def test_none_are_kept_for_a_pod_that_cannot_come(rules: Any, other: Any) -> None:
    there = w.node("n", cpu="2", labels={RACK: "r1"})
    assert _placed(there, _agent(**rules), w.pod("other", node="n", **other), w.pod("p", "1"))


@pytest.mark.parametrize(
    "spec",
    [
        {"affinity": w.between("podAntiAffinity", app="db")},
        {"affinity": w.between("podAffinity", app="web")},
        {"affinity": w.between("podAffinity", app="agent"), "labels": {"app": "agent"}},
        {"ports": [{"containerPort": 81, "hostPort": 81}]},
    ],
    ids=["anti-affinity to others", "affinity to a pod there", "the first of its kind", "another host port"],
)
def test_resources_are_kept_where_its_rules_allow_the_pod(spec: Any) -> None:
    there = w.pod("other", node="n", labels={"app": "web"}, ports=HTTP)
    assert not _placed(w.node("n", cpu="2"), _agent(**spec), there, w.pod("p", "1"))


def test_of_two_that_exclude_each_other_one_comes() -> None:
    """By host port, by resources or by anti-affinity."""
    for spec in ({"ports": HTTP}, {"labels": {"app": "web"}, "affinity": w.between("podAntiAffinity")}):
        two = [w.daemon_set(name, "700m", **spec) for name in ("agent", "brother")]
        assert _placed(w.node("n", cpu="2"), *two, w.pod("p", "1"))
        assert not _placed(w.node("n", cpu="2"), *two, w.pod("p", "1500m"))
    heavy = [w.daemon_set("agent", "1500m"), w.daemon_set("brother", "600m")]
    assert _placed(w.node("n", cpu="2"), *heavy, w.pod("p", "500m"))
    assert not _placed(w.node("n", cpu="2"), *heavy, w.pod("p", "600m"))


def test_the_host_port_of_a_pod_that_cannot_come_is_free() -> None:
    spec = {"ports": HTTP, "affinity": w.between("podAntiAffinity")}
    there, other = w.node("n"), w.pod("other", node="n", labels={"app": "web"})
    assert _placed(there, _agent(**spec), other, w.pod("p", ports=HTTP))
    assert not _placed(there, _agent(**spec), w.pod("p", ports=HTTP))


@pytest.mark.parametrize("key", [labels.HOSTNAME, RACK])
def test_a_pod_that_moves_keeps_no_daemon_pod_away(key: str) -> None:
    """When the other pod is gone from the node, the DaemonSet pod comes: the node has no resources for both."""
    spec = {"affinity": w.between("podAntiAffinity", key)}
    snapshot = w.world(
        w.node("n", cpu="2", labels={RACK: "r1"}), _agent(**spec), w.pod("p", "1", node="n", labels={"app": "web"})
    )
    assert solve(snapshot, [snapshot.pods["default/p"]]).unplaced


def test_a_pod_that_cannot_come_is_no_company() -> None:
    """A pod that must be beside the DaemonSet's pod waits where that has no place."""
    near = w.pod("p", affinity=w.between("podAffinity", app="agent"))
    agent = w.daemon_set("agent", labels={"app": "agent"}, ports=HTTP)
    assert w.solved(w.node("n"), agent, near).placed
    assert w.solved(w.node("n"), agent, w.pod("other", node="n", ports=HTTP), near).unplaced


# --- new nodes ------------------------------------------------------------------------------------------------------
#: A pod that requests neither cpu nor memory.
NOTHING: Any = ("0", "0")


def test_a_type_without_room_for_its_daemon_pods_is_planned_for_no_pod() -> None:
    """`small` has 2 cpu, `default` 4."""
    agent = w.daemon_set("agent", "3")
    (bare,) = w.solved(w.pool(), w.pod("p", *NOTHING)).new_nodes
    (beside,) = w.solved(w.pool(), agent, w.pod("p", *NOTHING)).new_nodes
    assert "small" in bare.instance_types
    assert not {"small"} & {*beside.instance_types}


def test_without_any_such_type_the_refusal_says_why() -> None:
    agent = w.daemon_set("agent", "64")
    refusal = w.solved(w.pool(), agent, w.pod("p", *NOTHING)).unplaced["default/p"]
    assert "no instance type has enough resources for" in refusal.pools["default"]
    assert "beside its daemon sets" in refusal.pools["default"]


def test_such_types_count_for_no_min_values() -> None:
    """The NodePool itself has no problem: types for other pods may do."""
    rows = [{"key": labels.INSTANCE_TYPE, "operator": "In", "values": ["small", "default"], "minValues": 2}]
    solution = w.solved(w.pool(requirements=rows), w.daemon_set("agent", "3"), w.pod("p", *NOTHING))
    assert solution.unplaced.keys() == {"default/p"}
    assert not solution.pool_problems
    assert w.solved(w.pool(requirements=rows), w.daemon_set("agent", "1"), w.pod("p", *NOTHING)).new_nodes
