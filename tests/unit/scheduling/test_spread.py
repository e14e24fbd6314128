"""Topology spread: rows of the catalogue (scheduling reference §11, numbers in the comments) on small worlds."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from kerf.model.aws.instance_type import Offering
from kerf.scheduling.nodes.table import serves
from kerf.scheduling.solve import SolveOptions, solve
from kerf_api import labels
from kerf_api.requirements import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, Requirement, requirement
from tests.unit.scheduling import worlds as w

WEB = {"app": "web"}


def web(count: int, *constraints: dict[str, Any], name: str = "web", **spec: Any) -> list[Any]:
    chosen = constraints or (w.spread(),)
    return w.replicas(count, name, labels=WEB, topologySpreadConstraints=list(chosen), **spec)


def zones_of_pool(*zones: str) -> list[dict[str, Any]]:
    return [{"key": labels.ZONE, "operator": "In", "values": list(zones)}]


def running(zone: str, count: int, name: str = "", **spec: Any) -> list[Any]:
    """A full node in a zone with so many pods that match."""
    node = name or f"n-{zone}"
    spec = {"labels": WEB, **spec}
    return [w.node(node, zone, cpu="50m"), *w.replicas(count, f"old-{node}", "1m", "1Mi", node=node, **spec)]


def test_a_wide_skew_lets_one_zone_run_ahead_so_far() -> None:
    """147."""
    world = [w.pool(requirements=zones_of_pool("z3")), *running("z1", 1), *running("z2", 1)]
    solution = w.solved(world, web(10, w.spread(skew=5)))
    assert w.counts(solution) == [6]
    assert len(solution.unplaced) == 4


def test_the_emptier_zones_are_filled_first() -> None:
    """148."""
    assert w.counts(w.solved(w.pool(), running("z1", 3), web(3))) == [1, 2]


@pytest.mark.parametrize(
    "spec", [{"namespace": "other"}, {"labels": {"app": "else"}}, {"labels": {}}], ids=["namespace", "label", "none"]
)
def test_who_is_not_counted(spec: dict[str, Any]) -> None:
    """150."""
    pool = w.pool(requirements=zones_of_pool("z1", "z2"))
    assert w.counts(w.solved(pool, running("z1", 2, **spec), web(2))) == [1, 1]
    assert w.counts(w.solved(pool, running("z1", 2), web(2))) == [2]


@pytest.mark.parametrize("change", ["terminating", "Succeeded", "Failed"])
def test_who_is_gone_or_going_is_not_counted(change: str) -> None:
    """150."""
    node, *old = running("z1", 2)
    if change == "terminating":
        old = [
            msgspec.structs.replace(p, metadata=msgspec.structs.replace(p.metadata, deletion_timestamp=w.NOW))
            for p in old
        ]
    else:
        old = [msgspec.structs.replace(p, status=msgspec.structs.replace(p.status, phase=change)) for p in old]
    pool = w.pool(requirements=zones_of_pool("z1", "z2"))
    assert w.counts(w.solved(pool, node, old, web(2))) == [1, 1]


@pytest.mark.parametrize("selector", [None, {}])
def test_without_a_selector_and_with_an_empty_one_no_pod_is_counted(selector: dict[str, Any] | None) -> None:
    """151."""
    assert len(w.solved(w.pool(), web(2, w.spread(labelSelector=selector))).new_nodes) == 1


def test_two_workloads_that_spread_alone_share_nodes() -> None:
    """155."""
    pods = [
        w.pod(f"{app}-{i}", labels={"app": app}, topologySpreadConstraints=[w.spread(labels.HOSTNAME, app=app)])
        for app in ("one", "two")
        for i in range(2)
    ]
    assert [len(n.pods) for n in w.solved(w.pool(), pods).new_nodes] == [2, 2]


def by_capacity_type(*objects: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for new in w.solved(*objects).new_nodes:
        (kind,) = new.capacity_types
        counts[kind] = counts.get(kind, 0) + len(new.pods)
    return counts


def test_a_pool_of_one_capacity_type_stops_at_the_skew_unless_the_spread_is_soft() -> None:
    """156, 157: the on-demand node counts, except for pods that could not run there."""
    spot = w.pool(requirements=[{"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["spot"]}])
    hard, soft = w.spread(labels.CAPACITY_TYPE), w.spread(labels.CAPACITY_TYPE, whenUnsatisfiable="ScheduleAnyway")
    assert by_capacity_type(spot, running("z1", 1), web(5, hard)) == {"spot": 2}
    assert by_capacity_type(spot, running("z1", 1), web(5, soft)) == {"spot": 5}
    bound_to_spot = web(5, hard, nodeSelector={labels.CAPACITY_TYPE: "spot"})
    assert by_capacity_type(spot, running("z1", 1), bound_to_spot) == {"spot": 5}


def test_who_counts_for_the_spread_of_others_comes_before_them() -> None:
    """In whatever order they are bound: larger pods that were planned on spot first would find too many there."""
    old = w.spread(labelSelector={"matchLabels": {"version": "1"}})
    small = w.replicas(2, "small", "50m", labels={**WEB, "version": "1"}, topologySpreadConstraints=[old])
    assert by_capacity_type(w.pool(), small, web(4, w.spread(labels.CAPACITY_TYPE))) == {"on-demand": 3, "spot": 3}


def test_architectures_are_domains_too() -> None:
    """158."""
    arm = w.pool(requirements=[{"key": labels.ARCH, "operator": "In", "values": ["arm64"]}])
    solution = w.solved(arm, running("z1", 1), web(4, w.spread(labels.ARCH)))
    assert sum(len(n.pods) for n in solution.new_nodes) == 2


@pytest.mark.parametrize(("count", "expected"), [(2, [1, 1]), (5, [1, 2, 2]), (11, [3, 4, 4]), (21, [7, 7, 7])])
def test_zones_and_hosts_at_once(count: int, expected: list[int]) -> None:
    """159."""
    solution = w.solved(w.pool(), web(count, w.spread(), w.spread(labels.HOSTNAME, 3)))
    assert w.counts(solution) == expected
    assert max(len(n.pods) for n in solution.new_nodes) <= 3


@pytest.mark.parametrize("seconds", [0, 1], ids=["as packed", "searched for a cheaper answer"])
def test_a_host_has_no_more_pods_than_a_spread_allows_whichever_are_bound_first(seconds: int) -> None:
    """Pods that the spread counts and does not bind are packed last, and bound first for their priority."""
    first = w.replicas(2, "first", labels=WEB, priority=1)
    world = w.world(w.pool(), web(2, w.spread(labels.HOSTNAME, 2)), first)
    solution = solve(world, list(world.pods.pending.values()), SolveOptions(improve=timedelta(seconds=seconds)))
    assert [len(node.pods) for node in solution.new_nodes] == [2, 2]
    assert not solution.unplaced


def test_pods_that_come_after_those_of_a_spread_share_their_host() -> None:
    last = w.replicas(2, "last", labels=WEB)
    solution = w.solved(w.pool(), web(2, w.spread(labels.HOSTNAME, 2), priority=1), last)
    assert [len(node.pods) for node in solution.new_nodes] == [4]


def test_pods_of_a_soft_spread_limit_no_others_on_their_host() -> None:
    first = w.replicas(2, "first", labels=WEB, priority=1)
    soft = w.spread(labels.HOSTNAME, 2, whenUnsatisfiable="ScheduleAnyway")
    assert [len(node.pods) for node in w.solved(w.pool(), web(2, soft), first).new_nodes] == [4]


def test_a_zone_whose_pool_is_at_its_limit_is_no_domain() -> None:
    """162: no node is there, and none can be made now."""
    open_ = w.pool("open", requirements=zones_of_pool("z1", "z2"))
    shut = w.pool("shut", requirements=zones_of_pool("z3"), limits={"cpu": "0"})
    solution = w.solved(open_, shut, web(10))
    assert w.counts(solution) == [5, 5]
    assert not solution.unplaced


def test_a_zone_of_the_region_without_a_subnet_is_no_domain() -> None:
    """Offerings tell of it, so that an edit can be thought of; the types say that they cannot be had there."""
    plain = w.instance_type("small", 2, 4, markets=[("z1", "spot"), ("z2", "spot")])
    far = Offering("small", "z9", "spot", plain.offerings[0].price, available=False)
    catalogue = (replace(plain, offerings=(*plain.offerings, far)),)
    pods = w.replicas(4, "web", "500m", labels=WEB, topologySpreadConstraints=[w.spread()])
    assert not w.solved(w.pool(), pods, catalogue=catalogue).unplaced


@pytest.mark.parametrize("policy", ["Ignore", "Honor"])
def test_a_pool_whose_taints_the_pods_do_not_tolerate_offers_no_domain(policy: str) -> None:
    """165: a node of it would not be for these pods, whichever nodes count."""
    foo = w.pool("foo", labels={"rack": "foo"})
    bar = w.pool("bar", labels={"rack": "bar"}, taints=[{"key": "k", "effect": "NoSchedule"}])
    solution = w.solved(foo, bar, web(2, w.spread("rack", nodeTaintsPolicy=policy)))
    assert not solution.unplaced


@pytest.mark.parametrize(("policy", "placed"), [("Ignore", 1), ("Honor", 5)])
def test_nodes_that_the_pods_do_not_select_count_only_where_that_is_ignored(policy: str, placed: int) -> None:
    """167."""
    nodes = [w.node(name, labels={"rack": name, "team": "other"}) for name in ("foo", "bar")]
    pool = w.pool(labels={"rack": "baz", "team": "ours"})
    pods = web(5, w.spread("rack", nodeAffinityPolicy=policy), nodeSelector={"team": "ours"})
    assert 5 - len(w.solved(pool, nodes, pods).unplaced) == placed


def test_pods_that_select_their_zone_do_not_hold_up_each_other() -> None:
    """168."""
    first = web(5, nodeSelector={labels.ZONE: "z1"}, name="first")
    second = web(10, nodeSelector={labels.ZONE: "z2"}, name="second")
    assert w.counts(w.solved(w.pool(), first, second)) == [5, 10]


def test_required_zones_bound_the_domains_and_preferred_ones_do_not() -> None:
    """169, 170."""
    required = w.node_affinity([(labels.ZONE, "In", ["z1", "z2"])])
    assert w.counts(w.solved(w.pool(), web(6, affinity=required))) == [3, 3]
    term = {"matchExpressions": [{"key": labels.ZONE, "operator": "In", "values": ["z1", "z2"]}]}
    wish = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
    assert w.counts(w.solved(w.pool(), web(6, affinity={"nodeAffinity": wish}))) == [2, 2, 2]


@pytest.mark.parametrize(
    ("own", "operator", "served"),
    [
        (None, IN, False),
        (None, EXISTS, False),
        (None, NOT_IN, True),
        (None, DOES_NOT_EXIST, True),
        (requirement("k", DOES_NOT_EXIST), IN, False),
        (requirement("k", DOES_NOT_EXIST), NOT_IN, True),
        (requirement("k", IN, ["a"]), IN, True),
        (requirement("k", IN, ["a", "b"]), IN, False),
        (requirement("k", IN, ["b"]), NOT_IN, True),
        (requirement("k", IN, ["a", "b"]), EXISTS, True),
        (requirement("k", EXISTS), EXISTS, False),
    ],
)
def test_a_target_serves_what_all_its_outcomes_satisfy(own: Requirement | None, operator: str, served: bool) -> None:
    assert serves(own, requirement("k", operator, ["a"] if operator in (IN, NOT_IN) else ())) == served


# --- pods that are moved ----------------------------------------------------------------------------------------
def test_a_moved_pod_does_not_count_where_it_was() -> None:
    """Were it counted in z1, the node in z2 would do, and comes first."""
    (moving,) = web(1, name="moving", node="old")
    snapshot = w.world(w.node("old", "z1"), moving, running("z2", 1), w.node("a", "z2"), w.node("b", "z1"))
    moved = solve(snapshot, [moving], SolveOptions(exclude=frozenset({"node/old"}), open_new=False))
    assert moved.placed == {"default/moving-0": "node/b"}


def test_the_zone_of_a_node_that_is_left_out_is_no_domain() -> None:
    pool = w.pool(requirements=zones_of_pool("z1", "z2"))
    (moving,) = web(1, name="moving", node="old")
    objects = [pool, w.node("old", "z3"), moving, *running("z1", 1), *running("z2", 1)]
    for others, fits in (([], True), ([w.node("stays", "z3", cpu="50m")], False)):
        solution = solve(w.world(objects, others), [moving], SolveOptions(exclude=frozenset({"node/old"})))
        assert bool(solution.new_nodes) == fits


def test_the_company_that_a_moved_pod_was_is_gone_with_it() -> None:
    shy = w.pod("shy", node="old", labels=WEB, affinity=w.between("podAntiAffinity", labels.ZONE))
    snapshot = w.world(w.node("old", "z1"), shy, w.node("a", "z1"), w.pod("plain", labels=WEB))
    alone = solve(snapshot, [snapshot.pods["default/plain"]], SolveOptions(open_new=False))
    assert "default/plain" in alone.unplaced
    assert solve(snapshot, [shy], SolveOptions(exclude=frozenset({"node/old"}), open_new=False)).placed == {
        "default/shy": "node/a"
    }


def test_a_node_that_is_left_out_does_not_count_against_the_limits() -> None:
    pool = w.pool(limits={"nodes": "1"})
    moving = w.pod("p", node="old")
    snapshot = w.world(pool, w.node("old", labels={labels.NODEPOOL: "default"}), moving)
    assert solve(snapshot, [moving], SolveOptions(exclude=frozenset({"node/old"}))).new_nodes
    assert not solve(snapshot, [w.pod("q", "3900m")], SolveOptions(exclude=frozenset())).new_nodes
