"""The order of a plan: the kube-scheduler, asked in that order, binds each pod to its new node."""

from __future__ import annotations

from typing import Any

from kerf.scheduling.answers.solution import Solution
from kerf_api import labels
from tests.unit.scheduling import worlds as w

NEAR = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": labels.HOSTNAME, "labelSelector": {"matchLabels": {"app": "api"}}}
        ]
    }
}
API = {"app": "api"}


def _refused(plan: Solution, near: set[str], api: set[str]) -> list[str]:
    """The pods that are not admitted when they come in the plan's order."""
    node = {pod: number for number, one in enumerate(plan.new_nodes) for pod in one.pods}
    hosts: set[int] = set()
    refused = []
    for pod in plan.order:
        first = pod in api and not hosts
        if pod in near and node[pod] not in hosts and not first:
            refused.append(pod)
        elif pod in api:
            hosts.add(node[pod])
    return refused


def _pods(name: str, number: int, cpu: str, **spec: Any) -> list[Any]:
    return w.replicas(number, name, cpu, **spec)


def test_pods_come_after_those_on_their_node_that_they_must_be_near() -> None:
    """Each has a node of its own for its host port; the company of one of them is the smallest pod, planned last."""
    large, small = _pods("large", 1, "2", labels=API), _pods("small", 1, "100m", labels=API)
    followers = _pods("web", 2, "1", affinity=NEAR, ports=[{"hostPort": 80}])
    plan = w.solved(w.pool(), large, followers, small)
    assert len(plan.new_nodes) == 2
    assert len(plan.order) == 4
    assert not _refused(plan, {pod.key for pod in followers}, {pod.key for pod in (*large, *small)})


def test_a_pod_alone_on_its_node_comes_before_all_that_it_must_be_near() -> None:
    """It may be the first of them, and only that."""
    large = _pods("large", 2, "3500m", labels=API)
    small = _pods("small", 3, "100m", labels=API, affinity=NEAR)
    plan = w.solved(w.pool(), large, small)
    near = {pod.key for pod in small}
    assert len(plan.order) == 5
    assert not _refused(plan, near, near | {pod.key for pod in large})


def test_a_pod_that_must_be_first_comes_after_pods_whose_spread_counts_it() -> None:
    """It shares the node of a pod that is planned as the first which a spread over zones counts in its zone."""
    counted = {"tier": "web"}
    over = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": counted}}
    zones, hosts = ([{**over, "topologyKey": key}] for key in (labels.ZONE, labels.HOSTNAME))
    spread = _pods("a", 1, "500m", labels=counted, topologySpreadConstraints=zones)
    others = _pods("b", 2, "500m", labels={**API, **counted}, topologySpreadConstraints=hosts)
    founder = _pods("c", 1, "500m", labels={**API, **counted}, affinity=NEAR)
    plan = w.solved(w.pool(), spread, others, founder, catalogue=(w.instance_type("large", 8, 32),))
    assert {frozenset(node.pods) for node in plan.new_nodes} >= {frozenset(("default/a-0", "default/c-0"))}
    assert plan.order == ("default/a-0", "default/c-0", "default/b-0", "default/b-1")


def test_pods_without_affinity_stay_in_their_order() -> None:
    plan = w.solved(w.pool(), _pods("one", 3, "2"), _pods("two", 3, "1"))
    assert list(plan.order) == [f"default/{name}-{number}" for name in ("one", "two") for number in range(3)]


def _near_api(number: int, spread: Any) -> list[Any]:
    """Pods of `web`, each with a node of its own for its host port, and `large`, the company of one of them."""
    web = {"labels": {"app": "web"}, "priority": 10, "ports": [{"hostPort": 80}]}
    followers = _pods("web", number, "1", affinity=NEAR, topologySpreadConstraints=[spread], **web)
    return [*_pods("large", 1, "2900m", labels=API, priority=20), *followers]


def _order_on_nodes(plan: Solution) -> list[list[str]]:
    """The pods of each planned node in their order, by workload."""
    turns = {pod: turn for turn, pod in enumerate(plan.order)}
    return [
        [pod.split("/")[1].rpartition("-")[0] for pod in sorted(node.pods, key=lambda pod: turns[pod])]
        for node in plan.new_nodes
    ]


ONE_TYPE = (w.instance_type("default", 4, 4, pods=9),)


def test_company_comes_before_a_pod_on_whose_host_a_spread_admits_no_later_turn() -> None:
    """The spread of `web` admits one of `cache` on its host; three of them come before the company of `web-1`."""
    pods = _near_api(2, w.spread(labels.HOSTNAME, app="cache"))
    cache = _pods("cache", 3, "500m", labels={"app": "cache"}, priority=5)
    plan = w.solved(w.pool(), pods, cache, _pods("small", 1, "100m", labels=API), catalogue=ONE_TYPE)
    assert _order_on_nodes(plan) == [["large", "web"], ["small", "web", "cache", "cache", "cache"]]


def test_pods_that_the_spread_of_a_waiting_pod_counts_wait_too() -> None:
    """The zones of `small` depend on its turn, so `web-1` waits for it, and with it all but one of `cache`."""
    pods = _near_api(2, w.spread(labels.HOSTNAME, app="cache"))
    cache = _pods("cache", 3, "500m", labels={"app": "cache"}, priority=5)
    small = _pods("small", 1, "100m", labels=API, topologySpreadConstraints=[w.spread(app="api")])
    plan = w.solved(w.pool(), pods, cache, small, catalogue=ONE_TYPE)
    assert len(plan.order) == 7
    assert _order_on_nodes(plan)[1] == ["small", "web", "cache", "cache", "cache"]


def test_company_comes_before_a_pod_whose_zone_has_its_turn() -> None:
    """Two pods of `web` are in zone z1; the second one comes when zones z2 and z3 have one each."""
    pods = _near_api(4, w.spread())
    plan = w.solved(w.pool(), pods, _pods("small", 3, "100m", labels=API), catalogue=ONE_TYPE)
    zones = {pod: node.zones for node in plan.new_nodes for pod in node.pods}
    web = [zones[pod] for pod in plan.order if "web" in pod]
    assert sorted(web[:3]) == [("z1",), ("z2",), ("z3",)]
    near = {pod.key for pod in pods if "web" in pod.key}
    assert not _refused(plan, near, {pod for pod in plan.order if pod not in near})
