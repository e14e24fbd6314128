"""Pods of DaemonSets that are not on their nodes yet, for the topology constraints of other pods."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.scheduling.solve import solve
from kerf_api import labels
from tests.referee import violations
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.test_spread import zones_of_pool

AGENT, ALL = {"app": "agent", "part": "all"}, {"app": "web", "part": "all"}
SELECTOR: dict[str, Any] = {"labelSelector": {"matchLabels": {"part": "all"}}}
PLAIN = {"labels": ALL, "topologySpreadConstraints": [w.spread(**SELECTOR)]}


def _apart(app: str) -> dict[str, Any]:
    return w.between("podAntiAffinity", app=app)


def _near(app: str) -> dict[str, Any]:
    return w.between("podAffinity", app=app)


def _of_gpu_a(**spec: Any) -> Any:
    """A DaemonSet that runs on one instance type."""
    term = w.node_affinity([(labels.INSTANCE_TYPE, "In", ["gpu-a"])])
    return w.daemon_set("agent", labels=AGENT, affinity={**term, **spec})


def _types(solution: Any) -> set[str]:
    return {name for node in solution.new_nodes for name in node.instance_types}


# --- some instance types only ---------------------------------------------------------------------------------------
def test_pods_that_keep_away_from_a_daemon_set_get_a_type_without_it() -> None:
    solution = w.solved(w.pool(), _of_gpu_a(), w.replicas(2, "web", affinity=_apart("agent")))
    assert not solution.unplaced
    assert "gpu-a" not in _types(solution)


def test_in_a_zone_other_nodes_may_carry_the_daemon_set() -> None:
    far = w.between("podAntiAffinity", labels.ZONE, "agent")
    assert w.solved(w.pool(), _of_gpu_a(), w.replicas(1, "web", affinity=far)).unplaced


def test_a_type_without_the_daemon_set_keeps_no_other_node_of_the_zone_from_carrying_it() -> None:
    """Its anti-affinity keeps it off the hosts of `web`, and that of `web` off the zone."""
    far = w.between("podAntiAffinity", labels.ZONE, "agent")
    web = w.replicas(1, "web", labels={"app": "web"}, affinity=far)
    assert w.solved(w.pool(), _of_gpu_a(**_apart("web")), web).unplaced


def test_a_planned_node_with_the_daemon_set_opens_its_zone_to_pods_that_must_be_near_it() -> None:
    """Each pod has a host for itself; the node of the first one brings the DaemonSet pod that the other one needs."""
    near, ports = w.between("podAffinity", labels.ZONE, "agent"), [{"containerPort": 80, "hostPort": 80}]
    in_one_zone = (w.instance_type("gpu-a", 4, 4, markets=(("z1", "spot"),)),)
    agent = w.daemon_set("agent", labels=AGENT, nodeSelector={labels.INSTANCE_TYPE: "gpu-a"})
    world = (w.pool(), agent, w.node("n"), w.replicas(2, "web", affinity=near, ports=ports))
    solution = w.solved(*world, catalogue=in_one_zone)
    assert solution.placed == {"default/web-1": "node/n"}
    assert [node.pods for node in solution.new_nodes] == [("default/web-0",)]


def test_pods_that_a_daemon_set_keeps_away_from_get_a_type_without_it() -> None:
    solution = w.solved(w.pool(), _of_gpu_a(**_apart("web")), w.replicas(2, "web", labels={"app": "web"}))
    assert not solution.unplaced
    assert "gpu-a" not in _types(solution)


def test_pods_with_affinity_to_a_daemon_set_get_a_type_with_it() -> None:
    solution = w.solved(w.pool(), _of_gpu_a(), w.replicas(2, "web", affinity=_near("agent")))
    assert not solution.unplaced
    assert _types(solution) == {"gpu-a"}


def test_a_node_pool_without_such_a_type_has_no_node_for_them() -> None:
    only = [{"key": labels.INSTANCE_TYPE, "operator": "In", "values": ["gpu-a"]}]
    solution = w.solved(w.pool(requirements=only), _of_gpu_a(), w.replicas(1, "web", affinity=_apart("agent")))
    assert "DaemonSet default/agent" in solution.unplaced["default/web-0"].pools["default"]


# --- spreads over zones ---------------------------------------------------------------------------------------------
def test_a_spread_counts_the_daemon_pods_of_the_nodes_that_other_pods_get() -> None:
    """Three nodes in z1 bring three DaemonSet pods there, so both pods of the spread go to z2."""
    others = [w.pod(f"other-{n}", "3500m", nodeSelector={labels.ZONE: "z1"}) for n in range(3)]
    pods = w.replicas(2, "web", labels=ALL, topologySpreadConstraints=[w.spread(**SELECTOR)])
    pool = w.pool(requirements=zones_of_pool("z1", "z2"))
    solution = w.solved(pool, w.daemon_set("agent", labels=AGENT), others, pods)
    homes = [
        node.requirements.allowed(labels.ZONE).values for node in solution.new_nodes for p in node.pods if "web" in p
    ]
    assert sorted(map(sorted, homes)) == [["z2"], ["z2"]]


def test_a_node_whose_daemon_pod_breaks_the_spread_is_not_made() -> None:
    """With fewer zones than minDomains the least count is 0, and the DaemonSet pod is there first."""
    least = w.spread(minDomains=4, **SELECTOR)
    pods = w.replicas(1, "web", labels=ALL, topologySpreadConstraints=[least])
    assert not w.solved(w.pool(), w.daemon_set("agent", labels=AGENT), pods).new_nodes
    assert w.solved(w.pool(), pods).new_nodes


def test_a_new_node_lists_types_with_the_same_counted_daemon_pods() -> None:
    """`small` alone carries the DaemonSet. The types of `default` and `gpu-a` hold the other pod, too."""
    term = w.node_affinity([(labels.INSTANCE_TYPE, "In", ["small"])])
    agent = w.daemon_set("agent", labels=AGENT, affinity=term)
    pods = w.replicas(2, "web", "3", labels=ALL, topologySpreadConstraints=[w.spread(**SELECTOR)])
    other = w.pod("other", "1500m", nodeSelector={labels.ZONE: "z1"})
    alone, beside = w.solved(w.pool(), agent, other), w.solved(w.pool(), agent, pods, other)
    assert {"small", "default"} <= _types(alone)
    assert not beside.unplaced
    types = [{*node.instance_types} for node in beside.new_nodes]
    assert all(found == {"small"} or "small" not in found for found in types)
    least = {"key": labels.INSTANCE_TYPE, "operator": "Exists", "minValues": 3}
    strict = w.solved(w.pool(requirements=[least]), agent, other, w.replicas(1, "web", **PLAIN))
    assert not strict.unplaced


@pytest.mark.parametrize(("cpu", "waiting"), [("3500m", []), ("12", ["default/web-0", "default/web-1"])])
def test_a_pod_whose_own_node_would_break_its_spread_waits(cpu: str, waiting: list[str]) -> None:
    """Other pods get a node in each zone. One more node brings a DaemonSet pod: with the pod, its zone has too many.

    No type holds two pods of 12 CPUs. The nodes of smaller ones become larger instead.
    """
    others = [w.pod(f"other-{zone}", cpu, nodeSelector={labels.ZONE: zone}) for zone in w.ZONES]
    pods = w.replicas(2, "web", cpu, labels=ALL, topologySpreadConstraints=[w.spread(**SELECTOR)])
    snapshot = w.world(w.pool(), w.daemon_set("agent", labels=AGENT), others, pods)
    asked = list(snapshot.pods.pending.values())
    solution = solve(snapshot, asked)
    assert sorted(solution.unplaced) == waiting
    assert len(solution.new_nodes) == 3
    assert violations(snapshot, asked, solution) == []


# --- existing nodes -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("hindrance", ["room", "port", "anti-affinity", "none"])
def test_a_daemon_pod_that_cannot_come_is_not_counted_on(hindrance: str) -> None:
    port = [{"containerPort": 80, "hostPort": 80}]
    agent = {
        "room": w.daemon_set("agent", "3", labels=AGENT),
        "port": w.daemon_set("agent", labels=AGENT, ports=port),
        "anti-affinity": w.daemon_set("agent", labels=AGENT, affinity=_apart("there")),
        "none": w.daemon_set("agent", labels=AGENT),
    }[hindrance]
    there = w.pod("there", "2", node="n", labels={"app": "there"}, ports=port)
    solution = w.solved(w.node("n"), there, agent, w.replicas(1, "web", affinity=_near("agent")))
    assert bool(solution.placed) is (hindrance == "none")


def test_a_pod_on_a_node_that_is_there_reckons_with_the_daemon_pods_of_later_nodes() -> None:
    """The pod of the spread comes first in the plan, and the DaemonSet pod of the new node in z1 before it is bound."""
    spread = [w.spread(**SELECTOR)]
    world = [w.node("a", "z1"), w.node("b", "z2"), w.daemon_set("agent", labels=AGENT)]
    pods = w.replicas(1, "web", "3", labels=ALL, topologySpreadConstraints=spread)
    other = w.pod("other", "3500m", nodeSelector={labels.ZONE: "z1"}, priority=-1)
    pool_of_two = w.pool(requirements=zones_of_pool("z1", "z2"))
    assert w.solved(pool_of_two, *world, pods).placed["default/web-0"] == "node/a"
    taken = w.pod("taken", "500m", node="a")
    assert w.solved(pool_of_two, *world, taken, pods, other).placed["default/web-0"] == "node/b"


# --- hosts of several NodePools -------------------------------------------------------------------------------------
def _two_pools(*objects: Any) -> Any:
    """A DaemonSet runs on nodes of one of two NodePools, and on the node `n`, which has one pod of `web`."""
    tainted = w.pool("tainted", taints=[{"key": "team", "value": "red", "effect": "NoSchedule"}])
    hosts = [w.spread(labels.HOSTNAME, 2, **SELECTOR)]
    there = (w.node("n"), w.pod("old", node="n", labels=ALL), w.pod("web", labels=ALL, topologySpreadConstraints=hosts))
    world = w.world(w.pool(), tainted, w.daemon_set("agent", labels=AGENT), *there, *objects)
    pods = list(world.pods.pending.values())
    found = solve(world, pods)
    assert violations(world, pods, found) == []
    return found


def test_a_host_spread_expects_no_nodes_of_a_node_pool_that_its_pods_cannot_use() -> None:
    assert _two_pools().placed == {"default/web": "node/n"}


def test_a_host_spread_counts_the_nodes_of_other_node_pools_that_other_pods_get() -> None:
    red = w.pod(
        "red", "3", tolerations=[{"key": "team", "operator": "Exists"}], nodeSelector={labels.NODEPOOL: "tainted"}
    )
    found = _two_pools(red)
    assert not found.placed
    assert sorted(key for node in found.new_nodes for key in node.pods) == ["default/red", "default/web"]


# --- anti-affinity that keeps DaemonSet pods off new nodes ------------------------------------------------------------
@pytest.mark.parametrize("node", ["n", ""], ids=["bound", "pending"])
def test_no_node_is_made_where_anti_affinity_keeps_the_daemon_pods_off_that_pods_must_be_near(node: str) -> None:
    """The pod `far` is in zone z1, on the node that only it tolerates: no pod of the DaemonSet comes to the zone."""
    taint = {"key": "team", "value": "red", "effect": "NoSchedule"}
    apart = w.between("podAntiAffinity", labels.ZONE, "agent")
    far = w.pod("far", node=node, priority=1, tolerations=[{"key": "team", "operator": "Exists"}], affinity=apart)
    world = (w.node("n", taints=[taint]), far, w.daemon_set("agent", labels=AGENT))
    solution = w.solved(w.pool(), *world, w.replicas(1, "web", affinity=_near("agent")))
    assert [new.requirements.allowed(labels.ZONE).has("z1") for new in solution.new_nodes] == [False]
    assert not solution.unplaced


def test_no_node_is_made_where_the_daemon_pods_keep_away_that_pods_must_be_near() -> None:
    apart = w.between("podAntiAffinity", labels.ZONE, "there")
    there = (w.node("n"), w.pod("there", "3950m", node="n", labels={"app": "there"}))
    agent = w.daemon_set("agent", labels=AGENT, affinity=apart)
    solution = w.solved(w.pool(), *there, agent, w.replicas(1, "web", affinity=_near("agent")))
    assert [new.requirements.allowed(labels.ZONE).has("z1") for new in solution.new_nodes] == [False]


def test_a_spread_over_hosts_gets_types_without_daemon_pods_that_leave_no_place() -> None:
    """The DaemonSet runs on one type. With its pod, a host would have two pods more than an empty one."""
    hosts = [w.spread(labels.HOSTNAME, **SELECTOR)]
    solution = w.solved(w.pool(), _of_gpu_a(), w.replicas(2, "web", labels=ALL, topologySpreadConstraints=hosts))
    assert not solution.unplaced
    assert len(solution.new_nodes) == 2
    assert "gpu-a" not in _types(solution)


def test_a_domain_that_comes_with_a_node_has_the_daemon_pods_of_that_node() -> None:
    """No zone has a node. The first node brings a pod of `web` to its zone, which is the only domain then."""
    agent = w.daemon_set("agent", labels={"app": "web"})
    web = w.pod("web", labels={"app": "web"}, topologySpreadConstraints=[w.spread()])
    found = w.solved(w.pool(), agent, web)
    assert len(found.new_nodes) == 1
    least = w.pod("web", labels={"app": "web"}, topologySpreadConstraints=[w.spread(minDomains=3)])
    assert list(w.solved(w.pool(), agent, least).unplaced) == ["default/web"]


def test_a_node_without_daemon_pods_in_a_domain_that_would_come_with_them_counts() -> None:
    """The node of `other` brings no pod of the DaemonSet to zone z2, so `web` would be one too many in zone z1."""
    agent = w.daemon_set("agent", labels={"app": "web"})
    pools = [w.pool(), w.pool("tainted", taints=[{"key": "team", "effect": "NoSchedule"}])]
    tolerates = [{"key": "team", "operator": "Exists", "effect": "NoSchedule"}]
    other = w.pod("other", nodeSelector={labels.ZONE: "z2", labels.NODEPOOL: "tainted"}, tolerations=tolerates)
    web = w.pod("web", labels={"app": "web"}, topologySpreadConstraints=[w.spread()])
    for more, zone in (((), "z1"), ((other,), "z2")):
        found = w.solved(pools, agent, web, *more)
        assert [one.zones for one in found.new_nodes if one.pool == "default"] == [(zone,)]
