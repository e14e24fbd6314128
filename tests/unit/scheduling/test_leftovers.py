"""Pods that limits left over have a place at last where there is one: what it costs is not asked then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kerf.scheduling.solve import Solution, solve
from kerf_api import labels
from tests.referee import violations
from tests.unit.scheduling import worlds as w

TWO = w.instance_type("two", 2, 8, pods=20, price=100_000)
FOUR = w.instance_type("four", 4, 16, pods=20, price=300_000)
EIGHT = w.instance_type("eight", 8, 32, pods=20, price=900_000)
ONE_NODE = {"nodes": "1"}


def answer(*objects: Any, **facts: Any) -> Solution:
    """Without any search for other courses, and right by the referee."""
    snapshot = w.world(*objects, **{"catalogue": (TWO, FOUR, EIGHT), **facts})
    pods = list(snapshot.pods.pending.values())
    found = solve(snapshot, pods)
    assert violations(snapshot, pods, found) == []
    return found


def test_the_only_node_is_made_large_enough_for_all() -> None:
    """Two small nodes are the best buy, and there may be one."""
    found = answer(w.pool(limits=ONE_NODE), w.replicas(4, "p", "900m"))
    assert found.unplaced == {}
    assert [node.instance_types[0] for node in found.new_nodes] == ["four"]


def test_a_node_becomes_no_larger_than_limits_allow() -> None:
    found = answer(w.pool(limits={"nodes": "1", "cpu": "4"}), w.replicas(8, "p", "900m"))
    assert [(node.instance_types, len(node.pods)) for node in found.new_nodes] == [(("four",), 4)]


def test_who_would_have_spot_joins_the_on_demand_node_when_there_may_be_no_other() -> None:
    """It costs him three times what he would pay, and so he does not join it where nodes are to be had."""
    made = w.instance_type("four", 4, 16, pods=20, price=300_000)
    offers = tuple(replace(o, price=100_000 if o.capacity_type == labels.SPOT else o.price) for o in made.offerings)
    fixed = w.pod("fixed", "1", nodeSelector={labels.CAPACITY_TYPE: labels.ON_DEMAND}, priority=10)
    found = answer(w.pool(limits=ONE_NODE), fixed, w.pod("free", "1"), catalogue=(replace(made, offerings=offers),))
    assert [sorted(node.pods) for node in found.new_nodes] == [["default/fixed", "default/free"]]


def test_what_there_is_goes_to_the_more_important_pod() -> None:
    """Room for one more: the largest type that limits allow has three cores."""
    three = w.instance_type("three", 3, 8, pods=20, price=900_000)
    pods = [w.pod("first", "1", priority=10), w.pod("a-least", "1"), w.pod("more", "1", priority=5)]
    found = answer(w.pool(limits=ONE_NODE), pods, catalogue=(TWO, three))
    assert [sorted(node.pods) for node in found.new_nodes] == [["default/first", "default/more"]]
    assert list(found.unplaced) == ["default/a-least"]


def test_who_keeps_apart_does_so_all_the_same() -> None:
    own = {"labels": {"app": "a"}, "affinity": w.between("podAntiAffinity", labels.HOSTNAME, "a")}
    found = answer(w.pool(limits=ONE_NODE), w.replicas(2, "apart", "900m", **own), w.replicas(3, "p", "900m"))
    assert [sorted(node.pods) for node in found.new_nodes] == [
        ["default/apart-0", "default/p-0", "default/p-1", "default/p-2"]
    ]
    assert list(found.unplaced) == ["default/apart-1"]


def test_a_spread_is_kept_and_what_was_tried_in_vain_counts_nowhere() -> None:
    """One node means one zone: it takes as many as the other zones' counts allow, and others who ask for no zone."""
    own = {"labels": {"app": "web"}, "topologySpreadConstraints": [w.spread(skew=2)]}
    found = answer(w.pool(limits=ONE_NODE), w.replicas(6, "web", "900m", **own), w.replicas(2, "p", "900m"))
    (node,) = found.new_nodes
    assert sorted(node.pods) == ["default/p-0", "default/p-1", "default/web-0", "default/web-1"]


def test_who_must_be_near_another_follows_him_onto_a_larger_node() -> None:
    near = w.between("podAffinity", labels.HOSTNAME, "db")
    found = answer(
        w.pool(limits=ONE_NODE),
        w.pod("db", "1500m", labels={"app": "db"}, priority=10),
        w.pod("near", "1500m", affinity=near),
        w.pod("other", "1500m"),
    )
    assert found.unplaced == {}
    assert len(found.new_nodes) == 1


def test_the_heavier_nodepool_comes_first_also_for_those_who_are_left_over() -> None:
    heavy, light = w.pool("heavy", weight=5, limits=ONE_NODE), w.pool("light", limits=ONE_NODE)
    found = answer(heavy, light, w.replicas(10, "p", "900m"), catalogue=(TWO, FOUR))
    assert [(node.pool, len(node.pods)) for node in found.new_nodes] == [("heavy", 4), ("light", 4)]


def test_min_values_hold_for_a_node_that_is_made_larger() -> None:
    """Only two of the three types have room for three, and only one for seven."""
    pool = w.pool(limits=ONE_NODE, requirements=[{"key": labels.INSTANCE_TYPE, "operator": "Exists", "minValues": 2}])
    found = answer(pool, w.replicas(8, "p", "900m"))
    assert [(len(node.pods), node.instance_types) for node in found.new_nodes] == [(4, ("four", "eight"))]


def test_a_larger_node_gives_back_what_the_smaller_one_had_of_limits() -> None:
    """Eight cores in all: a node of two that becomes one of four leaves four for another."""
    found = answer(w.pool(limits={"cpu": "8", "nodes": "2"}), w.replicas(9, "p", "900m"), catalogue=(TWO, FOUR))
    assert sorted(len(node.pods) for node in found.new_nodes) == [4, 4]


def test_nodes_list_fewer_types_where_that_leaves_room_for_one_more_and_no_fewer_than_that() -> None:
    """As nodes of up to three cores the first two use six of nine, and four are needed for the last."""
    catalogue = (
        TWO,
        w.instance_type("three", 3, 8, pods=20, price=110_000),
        w.instance_type("arm-four", 4, 16, arch="arm64", pods=20, price=300_000),
    )
    amd64, arm64 = ({labels.ARCH: arch} for arch in ("amd64", "arm64"))
    pods = [
        *w.replicas(2, "p", "1900m", priority=1, nodeSelector=amd64),
        w.pod("arm", "3500m", nodeSelector=arm64),
    ]
    found = answer(w.pool(limits={"cpu": "9"}), pods, catalogue=catalogue)
    assert found.unplaced == {}
    assert sorted(node.instance_types for node in found.new_nodes) == [("arm-four",), ("two",), ("two", "three")]
