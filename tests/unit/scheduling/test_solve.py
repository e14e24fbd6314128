"""Examples of the catalogue in the scheduling reference (§11), with the numbers of their rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from api import labels
from api.requirements import Requirements, requirement
from reconciler.model.objects import Namespace
from reconciler.scheduling.solve import solve
from tests.referee import violations
from tests.unit.scheduling import worlds as w


def types_of(*objects: Any, **facts: Any) -> list[tuple[str, ...]]:
    return [n.instance_types for n in w.solved(*objects, **facts).new_nodes]


def node_count(*objects: Any, **facts: Any) -> int:
    solution = w.solved(*objects, **facts)
    assert not solution.unplaced
    return len(solution.new_nodes)


def pending(*objects: Any, **facts: Any) -> int:
    return len(w.solved(*objects, **facts).unplaced)


# --- selectors and labels (13-32) -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        ({labels.NODEPOOL: "default"}, True),
        ({labels.NODEPOOL: "other"}, False),
        ({labels.ZONE: "z3"}, True),
        ({labels.ZONE: "z9"}, False),
        ({"failure-domain.beta.kubernetes.io/zone": "z3"}, True),
        ({labels.INSTANCE_TYPE: "arm"}, True),
        ({labels.INSTANCE_TYPE: "nope"}, False),
        ({labels.ARCH: "arm64"}, True),
        ({labels.OS: "windows"}, False),
        ({labels.CAPACITY_TYPE: "spot"}, True),
        ({labels.HOSTNAME: "somewhere"}, False),
        ({"team": "red"}, False),
    ],
)
def test_node_selectors(selector: dict[str, str], fits: bool) -> None:
    assert pending(w.pool(), w.pod("p", nodeSelector=selector)) == (0 if fits else 1)


@pytest.mark.parametrize(
    ("operator", "values", "open_fits", "label_fits"),
    [
        ("In", ["v"], False, True),
        ("In", ["other"], False, False),
        ("Exists", [], False, True),
        ("NotIn", ["v"], True, False),
        ("NotIn", ["other"], True, True),
        ("DoesNotExist", [], True, False),
    ],
)
def test_custom_keys(operator: str, values: list[str], open_fits: bool, label_fits: bool) -> None:
    pod = w.pod("p", affinity=w.node_affinity([("team", operator, values)]))
    assert (not pending(w.pool(), pod)) == open_fits
    assert (not pending(w.pool(labels={"team": "v"}), pod)) == label_fits


def test_two_values_of_a_custom_key_make_two_nodes_and_one_value_makes_one() -> None:
    pool = w.pool(requirements=[{"key": "team", "operator": "In", "values": ["v", "w"]}])
    a, b = w.pod("a", nodeSelector={"team": "v"}), w.pod("b", nodeSelector={"team": "w"})
    any_team = w.pod("c", affinity=w.node_affinity([("team", "Exists", [])]))
    assert node_count(pool, a, b) == 2
    assert node_count(pool, a, any_team) == 1


@pytest.mark.parametrize(
    ("operator", "bound", "left"), [("Gt", "8", {"arm"}), ("Lt", "3", {"small"}), ("Gte", "16", {"arm"})]
)
def test_integer_labels_select_types(operator: str, bound: str, left: set[str]) -> None:
    (types,) = types_of(w.pool(), w.pod("p", affinity=w.node_affinity([(w.SIZE, operator, [bound])])))
    assert set(types) == left


def test_contradictory_demands_stay_pending() -> None:
    pod = w.pod("p", nodeSelector={labels.ZONE: "z1"}, affinity=w.node_affinity([(labels.ZONE, "In", ["z2"])]))
    assert pending(w.pool(), pod) == 1
    custom = w.pod("p", nodeSelector={"k": "a"}, affinity=w.node_affinity([("k", "In", ["b"])]))
    assert pending(w.pool(requirements=[{"key": "k", "operator": "Exists"}]), custom) == 1


def test_or_terms_are_tried_in_turn() -> None:
    terms = [
        [("no", "In", ["x"])],
        [("nor", "In", ["x"])],
        [(labels.ZONE, "In", ["z1"])],
        [(labels.ZONE, "In", ["z2"])],
    ]
    (new,) = w.solved(w.pool(), w.pod("p", affinity=w.node_affinity(*terms))).new_nodes
    assert new.zones == ("z1",)


def preferring(*terms: tuple[int, str, str]) -> dict[str, Any]:
    rows = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": k, "operator": "In", "values": [v]}]}}
        for weight, k, v in terms
    ]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": rows}}


def test_preferences_fall_from_the_heaviest() -> None:
    pod = w.pod("p", affinity=preferring((1, labels.ZONE, "z1"), (50, labels.ZONE, "z2"), (100, labels.ZONE, "z9")))
    (new,) = w.solved(w.pool(), pod).new_nodes
    assert new.zones == ("z2",)
    (new,) = w.solved(w.pool(), pod, preference_policy="Ignore").new_nodes
    assert new.zones == ("z1", "z2", "z3")


def test_a_preference_against_a_requirement_is_dropped() -> None:
    pod = w.pod("p", nodeSelector={labels.ZONE: "z3"}, affinity=preferring((1, labels.ZONE, "z2")))
    (new,) = w.solved(w.pool(), pod).new_nodes
    assert new.zones == ("z3",)


# --- packing (45-69) --------------------------------------------------------------------------------------------
def test_a_pod_larger_than_any_type_waits_and_the_refusal_says_why() -> None:
    solution = w.solved(w.pool(), w.pod("p", "1000"))
    assert "enough resources" in str(solution.unplaced["default/p"])


def test_architectures_make_two_nodes() -> None:
    pods = [w.pod("a", nodeSelector={labels.ARCH: "amd64"}), w.pod("b", nodeSelector={labels.ARCH: "arm64"})]
    assert node_count(w.pool(), *pods) == 2


def test_a_pod_that_wants_two_gpus_no_type_has_together_waits() -> None:
    both = w.pod("p", requests={"example.com/gpu-a": "1", "example.com/gpu-b": "1"})
    each = [w.pod(n, requests={f"example.com/gpu-{n}": "1"}) for n in "ab"]
    assert pending(w.pool(), both) == 1
    assert sorted(types_of(w.pool(), *each)) == [("gpu-a",), ("gpu-b",)]


def test_five_tiny_pods_share_the_smallest_node() -> None:
    (types,) = types_of(w.pool(), w.replicas(5, "p", "10m", "10Mi"))
    assert types[0] == "small"


def test_forty_pods_and_fillers_take_twenty_nodes() -> None:
    amd = {labels.ARCH: "amd64"}
    big = w.replicas(40, "big", "10m", "1800Mi", nodeSelector=amd)
    small = w.replicas(20, "small", "10m", "400Mi", nodeSelector=amd)
    solution = w.solved(w.pool(), big, small, catalogue=w.CATALOGUE[:1])
    assert len(solution.new_nodes) == 20
    assert not solution.unplaced


def test_pod_slots_bound_a_node() -> None:
    only = w.pool(requirements=[{"key": labels.INSTANCE_TYPE, "operator": "In", "values": ["single-pod"]}])
    assert node_count(only, w.replicas(3, "p")) == 3


def test_a_zero_of_an_unknown_resource_is_no_demand() -> None:
    assert pending(w.pool(), w.pod("p", requests={"example.com/none": "0"})) == 0
    assert pending(w.pool(), w.pod("p", requests={"example.com/none": "1"})) == 1


def test_price_is_compared_over_what_is_allowed() -> None:
    one = w.instance_type("one", 4, 4, price=1_000_000, markets=[("z1", "on-demand")])
    two = w.instance_type("two", 4, 4, price=1_300_000, markets=[("z1", "on-demand")])
    cheap_spot = w.instance_type("two", 4, 4, price=100_000, markets=[("z1", "spot")])
    two = type(two)(
        two.name,
        two.requirements.without(labels.CAPACITY_TYPE),
        two.capacity,
        two.allocatable,
        two.offerings + cheap_spot.offerings,
    )
    on_demand = w.pool(requirements=[{"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]}])
    assert types_of(on_demand, w.pod("p"), catalogue=(one, two)) == [("one", "two")]
    assert types_of(w.pool(), w.pod("p"), catalogue=(one, two)) == [("two", "one")]


def test_many_small_pods_do_not_buy_one_giant() -> None:
    types = tuple(w.instance_type(f"t{n}", n, 2 * n, pods=60 * n, price=90_000 * n + 1000) for n in (2, 4, 8, 16, 96))
    solution = w.solved(w.pool(), w.replicas(100, "p", "250m", "512Mi"), catalogue=types)
    assert not solution.unplaced
    assert "t96" not in {n.instance_types[0] for n in solution.new_nodes}
    assert solution.price < 90_000 * 25 * 1.1


def test_a_node_stays_flexible() -> None:
    types = tuple(w.instance_type(f"f{i}", 4, 16, pods=58, price=200_000 + 2000 * i) for i in range(8))
    roomy = type(types[0])(
        types[0].name, types[0].requirements, types[0].capacity, types[0].capacity, types[0].offerings
    )
    solution = w.solved(w.pool(), w.replicas(40, "p", "200m", "400Mi"), catalogue=(roomy, *types[1:]))
    assert all(len(n.instance_types) >= 5 for n in solution.new_nodes)


def test_what_is_out_of_stock_is_not_planned() -> None:
    stock = {("small", z, c): w.NOW.replace(hour=13) for z, c in w.MARKETS}
    (types,) = types_of(w.pool(), w.pod("p"), out_of_stock=stock)
    assert "small" not in types


# --- existing nodes (70-85) -------------------------------------------------------------------------------------
def test_an_unmanaged_node_is_used_before_a_new_one() -> None:
    solution = w.solved(w.pool(), w.node("n"), w.replicas(10, "p"))
    assert set(solution.placed.values()) == {"node/n"}
    assert not solution.new_nodes


def test_a_node_without_the_label_is_refused() -> None:
    solution = w.solved(w.pool(), w.node("n"), w.pod("p", nodeSelector={labels.ZONE: "z2"}))
    assert not solution.placed
    assert len(solution.new_nodes) == 1


def test_excluded_tainted_and_cordoned_nodes_are_no_targets() -> None:
    taint = [{"key": labels.DISRUPTED_TAINT, "effect": "NoSchedule"}]
    assert not w.solved(w.pool(), w.node("n", taints=taint), w.pod("p")).placed
    snapshot = w.world(w.pool(), w.node("n"), w.pod("p"))
    assert not solve(snapshot, [snapshot.pods["default/p"]], exclude=frozenset({"node/n"})).placed


def test_bound_pods_take_room_unless_they_are_moved() -> None:
    snapshot = w.world(w.node("n", cpu="2"), w.node("m", cpu="2"), w.pod("a", "1500m", node="n"), w.pod("b", "1500m"))
    pods = [snapshot.pods["default/a"], snapshot.pods["default/b"]]
    assert solve(snapshot, pods[1:]).placed == {"default/b": "node/m"}
    both = solve(snapshot, pods)
    assert sorted(both.placed.values()) == ["node/m", "node/n"]
    alone = solve(snapshot, pods, exclude=frozenset({"node/n"}), open_new=False)
    assert len(alone.placed) == 1
    assert len(alone.unplaced) == 1


def test_a_claim_on_its_way_takes_the_pods_that_it_was_made_for() -> None:
    snapshot = w.world(w.pool(), w.replicas(12, "p", "900m", "900Mi"))
    first = solve(snapshot, list(snapshot.pods.values()))
    claims = w.claims(snapshot, first)
    again = w.world(w.pool(), w.replicas(12, "p", "900m", "900Mi"), claims)
    second = solve(again, list(again.pods.values()))
    assert not second.new_nodes
    assert not second.unplaced


def test_host_ports_clash() -> None:
    pods = [w.pod(n, ports=[{"hostPort": 8080}]) for n in "ab"]
    assert node_count(w.pool(), *pods) == 2
    udp = w.pod("c", ports=[{"hostPort": 8080, "protocol": "UDP"}])
    assert node_count(w.pool(), pods[0], udp) == 1


# --- daemon sets (86-103) ---------------------------------------------------------------------------------------
def test_daemons_take_their_share() -> None:
    (types,) = types_of(w.pool(), w.daemon_set("d", "1500m", "1Gi"), w.pod("p", "500m", "500Mi"))
    assert types[0] == "default"
    tainted = w.pool(taints=[{"key": "k", "effect": "NoSchedule"}])
    pod = w.pod("p", "500m", "500Mi", tolerations=[{"operator": "Exists"}])
    (types,) = types_of(tainted, w.daemon_set("d", "1500m", "1Gi"), pod)
    assert types[0] == "small"


def test_a_daemon_only_burdens_the_types_it_runs_on() -> None:
    daemon = w.daemon_set("d", "1500m", nodeSelector={labels.INSTANCE_TYPE: "small"})
    (types,) = types_of(w.pool(), daemon, w.pod("p", "1"))
    assert types[0] == "default"
    (types,) = types_of(w.pool(), w.daemon_set("d", "1500m", nodeSelector={"no": "where"}), w.pod("p", "1"))
    assert types[0] == "small"


def test_requests_of_a_new_node_hold_pods_and_daemons() -> None:
    (one,) = w.solved(w.pool(), w.daemon_set("d", "1", "1Mi"), w.replicas(2, "p", "1", "1Mi")).new_nodes
    assert one.requests.texts() == {"cpu": "3", "memory": "3Mi", "pods": "3"}


def test_an_existing_node_keeps_room_for_its_daemons() -> None:
    daemon = w.daemon_set("d", "1")
    assert not w.solved(w.node("n", cpu="2"), daemon, w.pod("p", "1500m")).placed
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u"}
    bound = w.pod("d-x", "1", node="n", owner=owner)
    assert w.solved(w.node("n", cpu="2"), daemon, bound, w.pod("p", "1")).placed


# --- pools, limits, minValues (104-129) -------------------------------------------------------------------------
def test_weight_comes_before_price() -> None:
    dear = w.pool("dear", weight=10, requirements=[{"key": labels.ARCH, "operator": "In", "values": ["arm64"]}])
    (new,) = w.solved(w.pool("cheap"), dear, w.pod("p")).new_nodes
    assert new.pool == "dear"


@pytest.mark.parametrize(("cpu", "limit", "fits"), [("1750m", "2", True), ("2100m", "2", False), ("1", "1", False)])
def test_limits(cpu: str, limit: str, fits: bool) -> None:
    assert (not pending(w.pool(limits={"cpu": limit}), w.pod("p", cpu))) == fits


def test_limits_count_what_is_planned_in_the_same_pass() -> None:
    anti = w.between("podAntiAffinity")
    pods = w.replicas(3, "p", "1500m", labels={"app": "web"}, affinity=anti)
    assert pending(w.pool(limits={"cpu": "3"}), pods) == 2
    assert pending(w.pool(limits={"nodes": "2"}), pods) == 1
    spill = w.solved(w.pool(limits={"nodes": "2"}, weight=1), w.pool("more"), pods)
    assert sorted(n.pool for n in spill.new_nodes) == ["default", "default", "more"]


def test_limits_count_existing_nodes() -> None:
    mine = w.node("n", cpu="4", labels={labels.NODEPOOL: "default"})
    assert pending(w.pool(limits={"cpu": "5"}), mine, w.pod("p", "1900m"), w.pod("big", "3900m", node="n")) == 1


def test_static_unready_and_deleting_pools_make_no_nodes() -> None:
    for pool in (w.pool(replicas=1), w.pool(ready="False")):
        assert pending(pool, w.pod("p")) == 1


def test_a_malformed_pool_loses_only_itself() -> None:
    bad = w.pool("bad", weight=9, requirements=[{"key": "k", "operator": "Gt", "values": ["x"]}])
    solution = w.solved(bad, w.pool(), w.pod("p"))
    assert [n.pool for n in solution.new_nodes] == ["default"]
    assert solution.pool_problems["bad"].code == "InvalidNodePool"


def test_a_pool_without_types_is_named() -> None:
    empty = w.pool(requirements=[{"key": labels.ARCH, "operator": "In", "values": ["mips"]}])
    solution = w.solved(empty, w.pod("p"))
    assert solution.pool_problems["default"].code == "NoCompatibleInstanceTypes"
    text = "filtered out all compatible available instance types"
    assert text in str(solution.unplaced["default/p"])


def test_a_soft_taint_is_avoided_then_accepted() -> None:
    soft = w.pool("soft", weight=5, taints=[{"key": "k", "effect": "PreferNoSchedule"}])
    assert [n.pool for n in w.solved(soft, w.pool("plain"), w.pod("p")).new_nodes] == ["plain"]
    assert [n.pool for n in w.solved(soft, w.pod("p")).new_nodes] == ["soft"]


def min_values(count: int) -> list[dict[str, Any]]:
    return [{"key": labels.INSTANCE_TYPE, "operator": "Exists", "minValues": count}]


def test_min_values_keep_two_types_on_each_claim() -> None:
    catalogue = (w.instance_type("one", 1, 1), w.instance_type("four", 4, 4))
    solution = w.solved(w.pool(requirements=min_values(2)), w.replicas(2, "p", "850m"), catalogue=catalogue)
    assert [set(n.instance_types) for n in solution.new_nodes] == [{"one", "four"}] * 2


def test_min_values_strict_and_best_effort() -> None:
    pool = w.pool(requirements=min_values(3))
    pod = w.pod("p", nodeSelector={labels.ARCH: "arm64"})
    assert "minValues" in str(w.solved(pool, pod).unplaced["default/p"])
    (new,) = w.solved(pool, pod, min_values_policy="BestEffort").new_nodes
    assert new.min_values_relaxed
    assert new.requirements[labels.INSTANCE_TYPE].min_values == 1


# --- spread (144-171) -------------------------------------------------------------------------------------------
WEB = {"app": "web"}


def spreading(count: int, *constraints: dict[str, Any], **spec: Any) -> list[Any]:
    return w.replicas(count, "web", labels=WEB, topologySpreadConstraints=list(constraints), **spec)


def test_zone_spread() -> None:
    assert w.counts(w.solved(w.pool(), spreading(4, w.spread()))) == [1, 1, 2]


def test_zone_spread_within_the_pools_zones() -> None:
    two = w.pool(requirements=[{"key": labels.ZONE, "operator": "In", "values": ["z1", "z2"]}])
    assert w.counts(w.solved(two, spreading(4, w.spread()))) == [2, 2]


def test_existing_pods_count() -> None:
    bound = w.pod("old", node="n", labels=WEB)
    full = w.node("n", cpu="100m")
    solution = w.solved(w.pool(), full, bound, spreading(4, w.spread()))
    in_z1 = sum(len(n.pods) for n in solution.new_nodes if n.zones == ("z1",))
    elsewhere = w.counts(solution)
    assert in_z1 <= 1
    assert len(elsewhere) == (3 if in_z1 else 2)
    assert max(elsewhere) == 2


def test_a_domain_that_only_a_node_has_bounds_the_skew() -> None:
    pool = w.pool(requirements=[{"key": labels.ZONE, "operator": "In", "values": ["z2", "z3"]}])
    solution = w.solved(pool, w.node("n", cpu="100m"), w.pod("old", node="n", labels=WEB), spreading(10, w.spread()))
    assert w.counts(solution) == [2, 2]
    assert len(solution.unplaced) == 6


def test_min_domains() -> None:
    two = w.pool(requirements=[{"key": labels.ZONE, "operator": "In", "values": ["z1", "z2"]}])
    solution = w.solved(two, spreading(3, w.spread(minDomains=3)))
    assert w.counts(solution) == [1, 1]
    assert w.counts(w.solved(w.pool(), spreading(11, w.spread(minDomains=3)))) == [3, 4, 4]


@pytest.mark.parametrize(("skew", "nodes"), [(1, 4), (4, 1)])
def test_hostname_spread(skew: int, nodes: int) -> None:
    assert node_count(w.pool(), spreading(4, w.spread(labels.HOSTNAME, skew))) == nodes


def test_capacity_type_spread_and_what_a_pods_own_selector_excludes() -> None:
    new = w.solved(w.pool(), spreading(4, w.spread(labels.CAPACITY_TYPE))).new_nodes
    by_type = {n.capacity_types: sum(len(m.pods) for m in new if m.capacity_types == n.capacity_types) for n in new}
    assert by_type == {("on-demand",): 2, ("spot",): 2}
    spot = spreading(5, w.spread(labels.CAPACITY_TYPE), nodeSelector={labels.CAPACITY_TYPE: "spot"})
    assert pending(w.pool(), spot) == 0


def test_a_soft_spread_gives_way() -> None:
    one = w.pool(requirements=[{"key": labels.ZONE, "operator": "In", "values": ["z1"]}])
    other = w.node("n", zone="z2", cpu="50m")
    soft = w.spread(whenUnsatisfiable="ScheduleAnyway")
    assert pending(one, other, spreading(5, w.spread())) == 4
    assert pending(one, other, spreading(5, soft)) == 0
    assert node_count(w.pool(), spreading(4, soft), preference_policy="Ignore") == 1


def test_match_label_keys_spread_each_value_alone() -> None:
    constraint = w.spread(labels.HOSTNAME, matchLabelKeys=["rev"])
    pods = [
        w.pod(f"{rev}-{i}", labels={**WEB, "rev": rev}, topologySpreadConstraints=[constraint])
        for rev in "ab"
        for i in range(2)
    ]
    assert node_count(w.pool(), *pods) == 2


def test_node_taints_policy() -> None:
    taint = [{"key": "k", "effect": "NoSchedule"}]
    nodes = [w.node(n, labels={"rack": n}, taints=taint) for n in ("foo", "bar")]
    pool = w.pool(labels={"rack": "baz"})
    assert pending(pool, nodes, spreading(5, w.spread("rack"))) == 4
    assert pending(pool, nodes, spreading(5, w.spread("rack", nodeTaintsPolicy="Honor"))) == 0


def test_an_unknown_key_waits_alone() -> None:
    solution = w.solved(w.pool(), w.pod("p"), spreading(1, w.spread("no/such")))
    assert list(solution.unplaced) == ["default/web-0"]


def test_interdependent_spreads() -> None:
    a = [w.pod(f"a-{i}", labels={"app": "a"}, topologySpreadConstraints=[w.spread(app="b")]) for i in range(3)]
    b = [w.pod(f"b-{i}", labels={"app": "b"}, topologySpreadConstraints=[w.spread(app="a")]) for i in range(3)]
    assert pending(w.pool(), a, b) == 0


# --- affinity (172-187) -----------------------------------------------------------------------------------------
def test_self_affinity_by_hostname_fills_one_node() -> None:
    pods = w.replicas(10, "web", "10m", labels=WEB, affinity=w.between("podAffinity"))
    solution = w.solved(w.pool(), pods)
    assert [len(n.pods) for n in solution.new_nodes] == [5]
    assert len(solution.unplaced) == 5


def test_self_affinity_by_zone() -> None:
    pods = w.replicas(3, "web", labels=WEB, affinity=w.between("podAffinity", labels.ZONE))
    (new,) = w.solved(w.pool(), pods).new_nodes
    assert len(new.zones) == 1


def test_affinity_to_nobody_waits() -> None:
    assert pending(w.pool(), w.pod("p", affinity=w.between("podAffinity", app="ghost"))) == 1


def test_a_chain_of_affinity_resolves_in_one_pass() -> None:
    chain = ["ui", "cache", "web", "db"]
    pods = [w.pod("db", labels={"app": "db"})]
    pods += [w.pod(a, labels={"app": a}, affinity=w.between("podAffinity", app=b)) for a, b in pairwise(chain)]
    (new,) = w.solved(w.pool(), *pods).new_nodes
    assert len(new.pods) == 4


def test_followers_join_a_target_whose_zone_was_open() -> None:
    target = w.pod("target", labels=WEB)
    followers = w.replicas(10, "f", affinity=w.between("podAffinity", labels.ZONE))
    solution = w.solved(w.pool(), target, followers)
    assert not solution.unplaced
    assert len({n.zones for n in solution.new_nodes}) == 1


def test_anti_affinity_by_zone_places_one_in_each() -> None:
    pods = w.replicas(4, "web", labels=WEB, affinity=w.between("podAntiAffinity", labels.ZONE))
    solution = w.solved(w.pool(), pods)
    assert w.counts(solution) == [1, 1, 1]
    assert len(solution.unplaced) == 1


def test_inverse_anti_affinity() -> None:
    nodes = [w.node(f"n-{z}", zone=z, cpu="100m") for z in w.ZONES]
    shun = w.between("podAntiAffinity", labels.ZONE, "victim")
    owners = [w.pod(f"o-{z}", node=f"n-{z}", affinity=shun) for z in w.ZONES]
    victim = w.pod("v", labels={"app": "victim"})
    assert pending(w.pool(), nodes, owners, victim) == 1
    assert pending(w.pool(), nodes[:2], owners[:2], victim) == 0


def test_namespaces_of_affinity() -> None:
    target = w.pod("t", node="n", labels=WEB, namespace="other")
    full = w.node("n", cpu="100m")
    spaces = [Namespace(metadata=w.pod("x").metadata.__class__(name=n)) for n in ("default", "other")]

    def with_term(**more: Any) -> Any:
        return w.pod("p", affinity=w.between("podAffinity", labels.ZONE, **more))

    assert pending(w.pool(), full, spaces, target, with_term()) == 1
    assert pending(w.pool(), full, spaces, target, with_term(namespaces=["other"])) == 0
    assert pending(w.pool(), full, spaces, target, with_term(namespaceSelector={})) == 0


def test_a_preferred_anti_affinity_gives_way() -> None:
    term = {"topologyKey": labels.HOSTNAME, "labelSelector": {"matchLabels": WEB}}
    soft = {
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}
    }
    pods = w.replicas(2, "web", labels=WEB, affinity=soft)
    assert node_count(w.pool(), pods) == 2
    assert pending(w.pool(limits={"nodes": "1"}), pods) == 0
    assert node_count(w.pool(), pods, preference_policy="Ignore") == 1


# --- the answer as a whole --------------------------------------------------------------------------------------
def test_a_busy_world_passes_the_referee() -> None:
    pods = [
        *spreading(7, w.spread(), w.spread(labels.HOSTNAME, 3)),
        *w.replicas(5, "db", "600m", "700Mi", labels={"app": "db"}, affinity=w.between("podAntiAffinity", app="db")),
        *w.replicas(9, "job", "300m", "100Mi"),
    ]
    snapshot = w.world(w.pool(), w.node("n"), pods)
    solution = solve(snapshot, pods)
    assert not solution.unplaced
    assert violations(snapshot, pods, solution) == []


def test_new_nodes_carry_the_pods_requirements() -> None:
    (new,) = w.solved(w.pool(), w.pod("p", nodeSelector={labels.ZONE: "z2"})).new_nodes
    wanted = Requirements([requirement(labels.ZONE, "In", ("z2",)), requirement(labels.NODEPOOL, "In", ("default",))])
    assert new.requirements.compatible(wanted)
    assert new.price == 400_000
