"""What the scheduler answers to small worlds, beside the examples of the numbered catalogue (`test_catalogue_*.py`)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model.aws.cloud import Instance
from kerf.model.changes.indexes import InstanceIndex
from kerf.model.kubernetes.objects import Namespace
from kerf.model.snapshot import LaunchFailure
from kerf.scheduling.solve import SolveOptions, solve
from kerf_api import labels
from kerf_api.requirements import Requirements, requirement
from tests.referee import violations
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w


def types_of(*objects: Any, **facts: Any) -> list[tuple[str, ...]]:
    return [n.instance_types for n in w.solved(*objects, **facts).new_nodes]


def node_count(*objects: Any, **facts: Any) -> int:
    solution = w.solved(*objects, **facts)
    assert not solution.unplaced
    return len(solution.new_nodes)


def pending(*objects: Any, **facts: Any) -> int:
    return len(w.solved(*objects, **facts).unplaced)


# --- selectors and preferences ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        ({labels.ZONE: "z3"}, True),
        ({"failure-domain.beta.kubernetes.io/zone": "z3"}, True),
        ({labels.OS: "windows"}, False),
    ],
)
def test_node_selectors(selector: dict[str, str], fits: bool) -> None:
    assert pending(w.pool(), w.pod("p", nodeSelector=selector)) == (0 if fits else 1)


def test_contradictory_demands_stay_pending() -> None:
    pod = w.pod("p", nodeSelector={labels.ZONE: "z1"}, affinity=w.node_affinity([(labels.ZONE, "In", ["z2"])]))
    assert pending(w.pool(), pod) == 1
    custom = w.pod("p", nodeSelector={"k": "a"}, affinity=w.node_affinity([("k", "In", ["b"])]))
    assert pending(w.pool(requirements=[{"key": "k", "operator": "Exists"}]), custom) == 1


def test_preferences_fall_from_the_heaviest() -> None:
    pod = w.pod("p", affinity=c.prefers((1, labels.ZONE, "z1"), (50, labels.ZONE, "z2"), (100, labels.ZONE, "z9")))
    (new,) = w.solved(w.pool(), pod).new_nodes
    assert new.zones == ("z2",)
    (new,) = w.solved(w.pool(), pod, preference_policy="Ignore").new_nodes
    assert new.zones == ("z1", "z2", "z3")


# --- packing ----------------------------------------------------------------------------------------------------
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
    stock = {("small", zone, kind): w.NOW.replace(hour=13) for zone, kind in w.MARKETS}
    (types,) = types_of(w.pool(), w.pod("p"), out_of_stock=stock)
    assert "small" not in types


# --- existing nodes ---------------------------------------------------------------------------------------------
def test_a_node_without_the_label_is_refused() -> None:
    solution = w.solved(w.pool(), w.node("n"), w.pod("p", nodeSelector={labels.ZONE: "z2"}))
    assert not solution.placed
    assert len(solution.new_nodes) == 1


def test_excluded_and_tainted_nodes_are_no_targets() -> None:
    taint = [{"key": labels.DISRUPTED_TAINT, "effect": "NoSchedule"}]
    assert not w.solved(w.pool(), w.node("n", taints=taint), w.pod("p")).placed
    snapshot = w.world(w.pool(), w.node("n"), w.pod("p"))
    assert not solve(snapshot, [snapshot.pods["default/p"]], SolveOptions(exclude=frozenset({"node/n"}))).placed


def test_bound_pods_take_room_unless_they_are_moved() -> None:
    snapshot = w.world(w.node("n", cpu="2"), w.node("m", cpu="2"), w.pod("a", "1500m", node="n"), w.pod("b", "1500m"))
    pods = [snapshot.pods["default/a"], snapshot.pods["default/b"]]
    assert solve(snapshot, pods[1:]).placed == {"default/b": "node/m"}
    both = solve(snapshot, pods)
    assert sorted(both.placed.values()) == ["node/m", "node/n"]
    alone = solve(snapshot, pods, SolveOptions(exclude=frozenset({"node/n"}), open_new=False))
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


@pytest.mark.parametrize(
    ("group", "failed", "given", "expected"),
    [
        ("", False, False, False),  # it can be launched no more
        ("g", False, False, True),  # EC2 has not answered yet
        ("g", True, False, False),
        ("g", True, True, True),  # it gave less than was asked for, but not nothing
    ],
)
def test_a_claim_that_may_have_its_machine_takes_its_pods_whatever_is_out_of_stock_since(
    group: str, failed: bool, given: bool, expected: bool
) -> None:
    world = (w.pool(), w.pod("p"))
    snapshot = w.world(*world)
    (claim,) = w.claims(snapshot, solve(snapshot, list(snapshot.pods.values())))
    notes = {**claim.metadata.annotations, **({labels.LAUNCH_GROUP: group} if group else {})}
    claim = replace(claim, metadata=replace(claim.metadata, annotations=notes))
    soon = w.NOW.replace(hour=13)
    facts: dict[str, Any] = {
        "out_of_stock": {o.keys[0]: soon for t in snapshot.catalogues["default"] for o in t.offerings},
        "launch_failures": {group: LaunchFailure((), w.NOW)} if failed else {},
        "instances": InstanceIndex.of({"i-1": machine(group)} if given else {}),
    }
    again = w.world(*world, claim, **facts)
    solution = solve(again, list(again.pods.values()))
    assert solution.placed == ({"default/p": claim.name} if expected else {})
    assert not solution.new_nodes


def machine(group: str) -> Instance:
    return Instance(
        id="i-1",
        instance_type="small",
        zone="z1",
        state="pending",
        capacity_type=labels.SPOT,
        launched=w.NOW,
        image_id="ami-1",
        subnet_id="subnet-1",
        tags={labels.LAUNCH_GROUP: group},
    )


def test_host_ports_clash() -> None:
    pods = [w.pod(n, ports=[{"hostPort": 8080}]) for n in "ab"]
    assert node_count(w.pool(), *pods) == 2
    udp = w.pod("c", ports=[{"hostPort": 8080, "protocol": "UDP"}])
    assert node_count(w.pool(), pods[0], udp) == 1


# --- pools, limits, minValues -----------------------------------------------------------------------------------
def test_limits_count_what_is_planned_in_the_same_pass() -> None:
    anti = w.between("podAntiAffinity")
    pods = w.replicas(3, "p", "1500m", labels={"app": "web"}, affinity=anti)
    assert pending(w.pool(limits={"cpu": "3"}), pods) == 2
    assert pending(w.pool(limits={"nodes": "2"}), pods) == 1
    spill = w.solved(w.pool(limits={"nodes": "2"}, weight=1), w.pool("more"), pods)
    assert sorted(n.pool for n in spill.new_nodes) == ["default", "default", "more"]


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


def test_a_pool_of_which_everything_is_out_of_stock_says_so() -> None:
    gone = {(t.name, *market): w.NOW + timedelta(minutes=3) for t in w.CATALOGUE for market in w.MARKETS}
    refusal = w.solved(w.pool(), w.pod("p"), out_of_stock=gone).unplaced["default/p"]
    assert refusal.text == "no NodePool can make nodes for now"
    assert "(30 offerings out of stock for now, such as arm on-demand in z1)" in refusal.pools["default"]


def test_a_soft_taint_is_avoided_then_accepted() -> None:
    soft = w.pool("soft", weight=5, taints=[{"key": "k", "effect": "PreferNoSchedule"}])
    assert [n.pool for n in w.solved(soft, w.pool("plain"), w.pod("p")).new_nodes] == ["plain"]
    assert [n.pool for n in w.solved(soft, w.pod("p")).new_nodes] == ["soft"]


def min_values(count: int) -> list[dict[str, Any]]:
    return [{"key": labels.INSTANCE_TYPE, "operator": "Exists", "minValues": count}]


def test_min_values_strict_and_best_effort() -> None:
    pool = w.pool(requirements=min_values(3))
    pod = w.pod("p", nodeSelector={labels.ARCH: "arm64"})
    assert "minValues" in str(w.solved(pool, pod).unplaced["default/p"])
    (new,) = w.solved(pool, pod, min_values_policy="BestEffort").new_nodes
    assert new.min_values_relaxed
    assert new.requirements[labels.INSTANCE_TYPE].min_values == 1


# --- spread and affinity ----------------------------------------------------------------------------------------
WEB = {"app": "web"}


def spreading(count: int, *constraints: dict[str, Any], **spec: Any) -> list[Any]:
    return w.replicas(count, "web", labels=WEB, topologySpreadConstraints=list(constraints), **spec)


def test_a_soft_spread_gives_way() -> None:
    one = w.pool(requirements=[{"key": labels.ZONE, "operator": "In", "values": ["z1"]}])
    other = w.node("n", zone="z2", cpu="50m")
    soft = w.spread(whenUnsatisfiable="ScheduleAnyway")
    assert pending(one, other, spreading(5, w.spread())) == 4
    assert pending(one, other, spreading(5, soft)) == 0
    assert node_count(w.pool(), spreading(4, soft), preference_policy="Ignore") == 1


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
