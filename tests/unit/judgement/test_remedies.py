"""The single change that would let a node go, one test per kind of hold: tried by the real scheduler; its saving."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.judgement.trials import MOST_TRIES
from kerf.judgement.values import Judgement
from kerf_api import labels
from tests.unit.disruption.worlds import CATALOGUE, HASHES, NOW, PROTECTED, instance_type, pdb, pool
from tests.unit.judgement.yards import LARGE, ON_DEMAND, SPOT, end, judged, machine, on_demand, worker

HOST = "kubernetes.io/hostname"
WEB = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
SPREAD = [{"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule", **WEB}]
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [WEB]}}
GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
HALF_FULL = worker("other", "b", "1", of="other")


def found(world: Judgement, code: str = "Underutilized") -> list[tuple[str, int]]:
    """The changes that help, with what each saves."""
    told = end(world, code).remedies
    assert told is not None
    return [(one.text, one.saving) for one in told.found]


# --- pods that have no room -------------------------------------------------------------------------------------
NO_ROOM = {
    "less of a resource": (
        [machine("b"), HALF_FULL, worker("w", "a", "1500m")],
        "Deployment shop/web: lower its request for cpu from 1500m to 1",
    ),
    "a spread": (
        [machine("b"), worker("v", "b", "100m"), worker("w", "a", "1100m", topologySpreadConstraints=SPREAD)],
        f"Deployment shop/web: remove its topology spread constraint over {HOST}",
    ),
    "anti-affinity": (
        [machine("b"), worker("v", "b", "100m"), worker("w", "a", "1100m", affinity=APART)],
        f"Deployment shop/web: remove its required pod anti-affinity over {HOST}",
    ),
    "anti-affinity of all pods of the workload": (
        [machine("b"), worker("v", "b", "100m", affinity=APART), worker("w", "a", "1100m", affinity=APART)],
        f"Deployment shop/web: remove its required pod anti-affinity over {HOST}",
    ),
    "a taint": (
        [machine("b", taints=[GPU]), worker("w", "a", "1500m")],
        "Deployment shop/web: tolerate the taint gpu=yes:NoSchedule",
    ),
    "a label": (
        [machine("b"), worker("w", "a", "1500m", nodeSelector={HOST: "node-a"})],
        f"Deployment shop/web: remove {HOST} from its nodeSelector",
    ),
    "a host port": (
        [machine("b"), worker("v", "b", "100m", port=80), worker("w", "a", "1100m", of="", port=80)],
        "pod shop/w: remove its host port 80/TCP",
    ),
}


@pytest.mark.parametrize("name", NO_ROOM)
def test_what_pods_would_have_to_do_without(name: str) -> None:
    objects, words = NO_ROOM[name]
    assert found(judged(on_demand(LARGE), machine("a"), *objects))[0] == (words, 96_000)


def test_all_pods_of_a_workload_change_together() -> None:
    """Two pods of 700m need a node each of the small type; of 500m they share one."""
    world = judged(on_demand(), machine("a"), worker("v", "a", "700m"), worker("w", "a", "700m"))
    assert found(world) == [("Deployment shop/web: lower its request for cpu from 700m to 500m", 76_000)]


def test_a_request_is_not_lowered_below_a_quarter() -> None:
    world = judged(on_demand(LARGE), machine("a"), machine("b"), worker("v", "b", "1900m"), worker("w", "a", "1500m"))
    assert [text for text, _ in found(world) if "lower its request" in text] == []


# --- what NodePools allow ---------------------------------------------------------------------------------------
def test_a_type_that_the_pool_does_not_allow() -> None:
    world = judged(on_demand(LARGE), machine("a"), worker("w", "a", "500m"))
    allowed = f"NodePool default: allow t3.small in the requirement {labels.INSTANCE_TYPE}"
    assert found(world) == [(allowed, 76_000)]


def test_a_type_that_the_pool_rules_out() -> None:
    large = {"key": labels.INSTANCE_TYPE, "operator": "NotIn", "values": ["t3.small"]}
    world = judged(on_demand(large), machine("a"), worker("w", "a", "500m"))
    allowed = f"NodePool default: allow t3.small in the requirement {labels.INSTANCE_TYPE}"
    assert found(world) == [(allowed, 76_000)]


def test_how_nodes_are_bought_comes_last() -> None:
    world = judged(on_demand(LARGE), machine("a"), worker("w", "a", "1900m"))
    assert found(world) == [(f"NodePool default: allow spot in the requirement {labels.CAPACITY_TYPE}", 56_000)]


def test_min_values_that_the_cheaper_types_do_not_have() -> None:
    two = {"key": labels.INSTANCE_TYPE, "operator": "Exists", "minValues": 2}
    world = judged(on_demand(two), machine("a"), worker("w", "a", "500m"))
    fewer = f"NodePool default: remove minValues in the requirement {labels.INSTANCE_TYPE}"
    assert found(world) == [(fewer, 76_000)]


def test_limits_that_leave_no_room_for_what_would_come() -> None:
    full = on_demand()
    full = replace(full, spec=replace(full.spec, limits={"cpu": "2"}))
    objects = [machine("a"), machine("b"), worker("w", "a", "800m"), worker("v", "b", "1900m", of="other")]
    world = judged(full, *objects)
    assert found(world) == [("NodePool default: raise limits.cpu from 2 to 4", 76_000)]


def spot_types(number: int) -> Any:
    return {"default": (*CATALOGUE, *(instance_type(f"c{n}.small", 90_000, 9_000 + n) for n in range(number)))}


def test_spot_behind_the_gate() -> None:
    world = pool(requirements=[SPOT]), machine("a", capacity_type="spot"), worker("w", "a", "500m")
    assert found(judged(*world, catalogues=spot_types(14))) == [
        ("enable the feature gate SpotToSpotConsolidation", 32_000)
    ]


def test_a_gate_that_is_not_enough_says_what_would_hold_the_node_then() -> None:
    world = pool(requirements=[SPOT]), machine("a", capacity_type="spot"), worker("w", "a", "500m")
    told = end(judged(*world, catalogues=spot_types(13))).remedies
    assert told is not None
    assert told.found == ()
    assert told.halfway == ("enable the feature gate SpotToSpotConsolidation", "only 14 cheaper spot types, not 15")


# --- what somebody has written down -----------------------------------------------------------------------------
def busy(**more: Any) -> list[Any]:
    return [machine("b"), HALF_FULL, worker("w", "a", "500m", **more)]


SETTINGS = {
    "Never": (
        [on_demand(consolidateAfter="Never"), machine("a")],
        "set consolidateAfter to a duration instead of Never",
    ),
    "WhenEmpty": (
        [on_demand(consolidationPolicy="WhenEmpty"), machine("a")],
        "set consolidationPolicy to WhenEmptyOrUnderutilized",
    ),
    "a budget": (
        [on_demand(budgets=[{"nodes": "50%"}, {"nodes": "0"}]), machine("a")],
        "raise budgets[1].nodes from 0 to 1",
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_what_the_pool_says(name: str) -> None:
    objects, words = SETTINGS[name]
    assert found(judged(*objects, *busy())) == [(f"NodePool default: {words}", 96_000)]


def test_a_budget_that_others_use_up_is_raised_by_one_more() -> None:
    going = machine("c", annotations={})
    going[1] = replace(going[1], status=replace(going[1].status, conditions=()))
    world = judged(on_demand(budgets=[{"nodes": "1"}]), machine("a"), going, *busy())
    assert found(world) == [("NodePool default: raise budgets[0].nodes from 1 to 2", 96_000)]


def test_a_policy_that_finds_it_not_worth_the_disruption() -> None:
    many = [worker(f"w{n}", "a", "50m") for n in range(20)]
    others = [machine("b", instance_type="m5.xlarge"), HALF_FULL, machine("c"), worker("third", "c", "1500m", of="x")]
    world = judged(on_demand(consolidationPolicy="Balanced"), machine("a"), *others, *many)
    assert found(world) == [("NodePool default: set consolidationPolicy to WhenEmptyOrUnderutilized", 96_000)]


def test_a_node_that_is_marked() -> None:
    world = judged(on_demand(), machine("a", annotations=PROTECTED), *busy())
    assert found(world) == [("node node-a: remove the annotation karpenter.sh/do-not-disrupt", 96_000)]


def test_marked_pods_of_one_workload_share_a_template() -> None:
    marked = [worker(f"w{n}", "a", "100m", annotations=PROTECTED) for n in range(3)]
    world = judged(on_demand(), machine("a"), *busy(), *marked)
    assert found(world) == [("Deployment shop/web: remove the annotation karpenter.sh/do-not-disrupt", 96_000)]


def test_a_pod_disruption_budget() -> None:
    world = judged(on_demand(), machine("a"), *busy(), pdb("x"))
    assert found(world) == [("PodDisruptionBudget shop/x: allow one more disruption", 96_000)]


def test_a_pod_disruption_budget_that_never_lets_go() -> None:
    world = judged(on_demand(), machine("a"), *busy(), pdb("x", maxUnavailable=0))
    assert found(world) == [("PodDisruptionBudget shop/x: allow one more disruption", 96_000)]


# --- other ends -------------------------------------------------------------------------------------------------
def test_an_empty_node_saves_what_it_costs() -> None:
    world = judged(on_demand(consolidateAfter="Never"), machine("a"))
    assert found(world, "Empty") == [("NodePool default: set consolidateAfter to a duration instead of Never", 96_000)]


def test_a_drifted_node_saves_nothing() -> None:
    late = machine("a", drifted=NOW - timedelta(hours=1), consolidatable=False)
    own = pool(annotations=HASHES, requirements=[ON_DEMAND], consolidateAfter="Never")
    world = judged(own, late, *busy(), pdb("x"))
    assert found(world, "Drifted") == [("PodDisruptionBudget shop/x: allow one more disruption", 0)]


def test_pods_of_a_drifted_node_may_go_where_others_have_just_come() -> None:
    """Only consolidation spares nodes that are not at rest."""
    late = machine("a", drifted=NOW - timedelta(hours=1), consolidatable=False)
    young = machine("b", since=NOW, consolidatable=False)
    limited = pool(annotations=HASHES, requirements=[ON_DEMAND], consolidateAfter="1h")
    limited = replace(limited, spec=replace(limited.spec, limits={"cpu": "2"}))
    world = judged(limited, late, young, HALF_FULL, worker("w", "a", "1500m"))
    assert found(world, "Drifted")[0] == ("Deployment shop/web: lower its request for cpu from 1500m to 1", 0)


# --- no change --------------------------------------------------------------------------------------------------
def test_two_things_in_the_way_are_not_tried() -> None:
    world = judged(on_demand(budgets=[{"nodes": "0"}]), machine("a", annotations=PROTECTED), *busy())
    told = end(world).remedies
    assert told is not None
    assert (told.found, told.tried, told.halfway) == ((), 0, None)


def test_what_holds_a_node_behind_the_first_thing_is_told() -> None:
    world = judged(on_demand(), machine("a"), *busy(annotations=PROTECTED), pdb("x"))
    told = end(world).remedies
    assert told is not None
    assert told.found == ()
    assert told.halfway == (
        "Deployment shop/web: remove the annotation karpenter.sh/do-not-disrupt",
        "PodDisruptionBudget shop/x allows no disruption now: shop/w",
    )


def test_what_ends_by_itself_needs_no_change() -> None:
    world = judged(on_demand(), machine("a"), *busy(annotations={labels.DO_NOT_DISRUPT: "90m"}))
    assert (world.code, end(world).remedies) == ("Due", None)


def test_tries_are_bounded() -> None:
    stuck = [worker(f"w{n}", "a", "40m", of=f"w{n}", nodeSelector={"x": str(n), "y": str(n)}) for n in range(20)]
    told = end(judged(on_demand(), machine("a"), *stuck)).remedies
    assert told is not None
    assert (told.found, told.tried) == ((), MOST_TRIES)
