"""Emptiness and drift within budgets: who goes, in which order, how many at once."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kerf.disruption.asking import Manner
from kerf.disruption.command import Command, Failure
from kerf.disruption.disrupt import disrupt
from kerf.disruption.methods import replacing
from kerf.kube.salvage import salvage
from kerf.model.annotations import text_of
from kerf.model.aws.interruptions import Interruption, InterruptionKind, Message
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import Source
from kerf.scheduling.answers.solution import PodRefusal, Solution
from kerf_api import labels
from kerf_api.v1.meta import encode
from kerf_api.v1.nodepool import NodePool
from tests.sources import ROOT
from tests.unit.disruption.worlds import (
    HASHES,
    HOUR,
    MINUTE,
    NOW,
    World,
    claim,
    drifted,
    instance_type,
    never,
    node,
    nowhere,
    on_new_nodes,
    pairs,
    pdb,
    pod,
    pool,
    refusals,
    rolling,
    snapshot,
    started,
    torn,
)

OLD_HASHES = {**HASHES, labels.NODEPOOL_HASH: "old"}


# --- what is not known ------------------------------------------------------------------------------------------
def seen(source: Source, age: timedelta | None) -> dict[Source, datetime]:
    """All is fresh but one source, which is so old, or was never seen."""
    return {s: NOW - age if s is source and age else NOW for s in Source if s is not source or age is not None}


@pytest.mark.parametrize("source", [Source.PODS, Source.PDBS, Source.NODES, Source.NODE_CLAIMS, Source.NODE_POOLS])
@pytest.mark.parametrize("age", [timedelta(seconds=91), None])
def test_no_command_starts_on_what_is_old_or_unknown(source: Source, age: timedelta | None) -> None:
    plan = disrupt(snapshot([pool(), *pairs("n1")], fresh_at=seen(source, age)), never)
    assert started(plan) == []
    assert refusals(plan)["disruption"] == "StaleSource"


@pytest.mark.parametrize("age", [timedelta(seconds=91), None])
def test_while_node_classes_are_old_or_unknown_nothing_is_replaced_for_drift(age: timedelta | None) -> None:
    world = [pool(annotations=HASHES), *drifted("d"), *pairs("e")]
    plan = disrupt(snapshot(world, fresh_at=seen(Source.NODE_CLASSES, age)), never)
    assert started(plan) == ["e"]
    assert refusals(plan) == {"disruption": "StaleSource"}


# --- emptiness --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("own", [{"budgets": [{"nodes": 0}]}, {"consolidateAfter": 9}])
@pytest.mark.parametrize("names", ["n", "nm"])
def test_what_cannot_be_read_of_a_pool_protects_its_nodes(own: dict[str, Any], names: str) -> None:
    """What takes its place is the default: a budget of a tenth, and no time to wait."""
    raw = encode(pool())
    raw["spec"]["disruption"] = own
    read = salvage(NodePool, msgspec.json.encode(raw), "Expected `str`, got `int`")
    plan = disrupt(snapshot([read, *pairs(*names)]), never)
    assert plan.actions == ()
    assert refusals(plan) == {f"node/node-{name}": "Unreadable" for name in names}


def test_the_most_expensive_empty_node_goes_first() -> None:
    cheap, dear = pairs("a"), pairs("b", instance_type="m5.xlarge")
    assert started(disrupt(snapshot([pool(budgets=[{"nodes": "1"}]), *cheap, *dear]), never)) == ["b"]


def test_pools_that_never_consolidate_keep_empty_nodes() -> None:
    assert started(disrupt(snapshot([pool(consolidateAfter="Never"), *pairs("a")]), never)) == []


@pytest.mark.parametrize("policy", ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"])
def test_emptiness_works_under_every_policy(policy: str) -> None:
    assert started(disrupt(snapshot([pool(consolidationPolicy=policy), *pairs("a")]), never)) == ["a"]


def test_a_blocked_empty_node_is_refused_and_told() -> None:
    stuck = pod("log", "a", owner="DaemonSet", annotations={labels.DO_NOT_DISRUPT: "true"})
    plan = disrupt(snapshot([pool(), *pairs("a"), stuck]), never)
    assert refusals(plan) == {"node/node-a": "PodDoNotDisrupt"}
    assert {(e.ref.kind, e.reason) for e in plan.events} == {
        ("Node", "DisruptionBlocked"),
        ("NodeClaim", "DisruptionBlocked"),
    }
    assert plan.next_due == NOW + timedelta(seconds=10)


# --- drift ------------------------------------------------------------------------------------------------------
def test_drift_waits_until_replacements_of_others_can_be_seen() -> None:
    world = World.of(rolling(), *drifted("b", "a"), pod("1", "b"), pod("2", "a"), ask=on_new_nodes("m5.large"))
    order = []
    for _ in range(8):
        plan = world.tick()
        order += [a.key.split(" ")[0] for a in plan.actions if "nodeclaim/" in a.lane and "Set" not in a.key]
    assert order == ["StartCommand", "CreateNodeClaim", "NoteReplacements"] * 2


def test_no_pool_waits_until_another_has_rolled() -> None:
    """Ten old nodes of one pool, one young one of another: after the first of the one the other has its turn."""
    many = [v for i in range(10) for v in (*pairs(f"a{i}", drifted=NOW - HOUR), pod(f"p{i}", f"a{i}"))]
    late = [*pairs("b", pool_name="late", drifted=NOW - MINUTE), pod("q", "b")]
    objects = [pool(annotations=HASHES), pool("late", annotations=HASHES), *many, *late]
    world = World.of(*objects, ask=on_new_nodes("m5.large"))
    world.settle(80)
    order = [key.split("/")[1] for key in world.done if key.startswith("StartCommand")]
    assert order[:3] == ["a0", "b", "a1"]
    assert len(order) == 11


def test_pending_pods_and_pods_of_leaving_nodes_take_part_but_do_not_decide() -> None:
    waits = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    pending = pod("wait", phase="Pending", pod_conditions=waits)
    leaving = claim("z")
    leaving = replace(leaving, metadata=replace(leaving.metadata, deletion_timestamp=NOW))
    asked: list[str] = []

    def ask(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
        asked.extend(p.key for p in pods)
        lost = {p.key: PodRefusal("NoRoom", "no room") for p in pods if p.metadata.name != "1"}
        return Solution(unplaced=lost, placed={"shop/1": "b"})

    world = [rolling(), *drifted("a"), pod("1", "a"), *pairs("b"), pod("2", "b"), leaving, node(leaving)]
    plan = disrupt(snapshot([*world, pod("old", "z"), pending]), ask)
    assert asked[:3] == ["shop/1", "shop/old", "shop/wait"]
    assert asked[3:5] == ["shop/old", "shop/wait"]  # whose places the candidate's pod may have taken
    assert asked[5:] == ["shop/old", "shop/wait"]  # whose places may be on the candidate
    assert started(plan) == ["a"]


def test_nodes_whose_pods_have_no_place_hold_up_no_other() -> None:
    def ask(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
        (one,) = pods
        return Solution(placed={one.key: "z"}) if one.metadata.name == "n11" else nowhere(pods, exclude, manner)

    names = [f"n{i:02}" for i in range(12)]
    plan = disrupt(snapshot([rolling(), *drifted(*names), *(pod(n, n) for n in names), *pairs("z")]), ask)
    assert started(plan) == ["n11"]
    assert refusals(plan).keys() == {f"node/node-{n}" for n in names[:11]}


def test_with_many_stuck_nodes_every_one_is_tried_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacing, "_PROBED_STEPS", 0)
    names = [f"n{i:02}" for i in range(11)]
    seen = snapshot([rolling(), *drifted(*names), *(pod(n, n) for n in names)])
    tried = []
    for _ in range(6):
        plan = disrupt(seen, nowhere)
        tried.append({subject.removeprefix("node/node-") for subject in refusals(plan)})
        seen = dataclasses.replace(seen, candidates_left_over=plan.candidates_left_over)
    assert [len(some) for some in tried] == [2, 2, 2, 2, 2, 1]
    assert set.union(*tried) == set(names)
    assert not seen.candidates_left_over


def test_simulations_that_fail_take_no_more_than_their_part_of_a_pass() -> None:
    names = [f"n{i:02}" for i in range(6)]
    plan = disrupt(snapshot([rolling(), *drifted(*names), *(pod(n, n) for n in names)]), broken)
    assert refusals(plan) == {"node/node-n00": "InternalError", "node/node-n01": "InternalError"}
    assert plan.candidates_left_over == {("drift", name) for name in names[2:]}


# --- what fails -------------------------------------------------------------------------------------------------
def broken(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
    raise TypeError("no solution at all")


def test_a_simulation_that_fails_costs_its_candidate_only() -> None:
    def ask(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
        return broken(pods, exclude, manner) if pods[0].metadata.name == "1" else Solution(placed={"shop/2": "z"})

    plan = disrupt(snapshot([rolling(), *drifted("b", "a"), pod("1", "b"), pod("2", "a"), *pairs("z")]), ask)
    assert started(plan) == ["a"]
    assert refusals(plan) == {"node/node-b": "InternalError"}


def test_a_method_that_fails_takes_nothing_else_with_it() -> None:
    """Neither the end of a spot instance, nor an expiry, nor a command under way, nor another method's."""
    nonsense: Any = ("no proposal at all",)
    under_way = text_of(Command(id="x", reason="Drifted", started=NOW))
    reclaimed = Interruption(InterruptionKind.SPOT_INTERRUPTED, ("i-spot",), Message("m", "receipt", "{}"))
    world = [
        *pairs("spot"),
        *pairs("old", expireAfter="1m"),
        *drifted("busy", annotations={labels.COMMAND: under_way, **OLD_HASHES}),
        *drifted("d"),
        *pairs("e"),
    ]
    facts = {"proposals": nonsense, "interruptions": (reclaimed,)}
    plan = disrupt(snapshot([pool(annotations=HASHES), *world], **facts), broken)
    assert {a.key for a in plan.actions} >= {
        "DeleteObject nodeclaim/spot",
        "DeleteObject nodeclaim/old",
        "TaintNode node/node-busy",
        "StartCommand nodeclaim/e",
        "StartCommand nodeclaim/d",
    }
    assert refusals(plan) == {"disruption/consolidation": "InternalError"}
    assert plan.next_due == NOW + timedelta(seconds=10)


def test_a_node_that_nobody_can_judge_holds_up_no_other() -> None:
    nonsense: Any = None
    log = pod("log", "b", owner="DaemonSet")
    odd = replace(log, spec=replace(log.spec, tolerations=nonsense))
    plan = disrupt(snapshot([pool(), *pairs("a", "b"), odd, pdb("one")]), never)
    assert started(plan) == ["a"]
    assert refusals(plan) == {"node/node-b": "InternalError"}


def test_a_node_whose_replacement_failed_in_the_future_does_not_wait_for_it() -> None:
    last = text_of(Failure(at=datetime.max.replace(tzinfo=UTC)))
    odd = drifted("odd", annotations={labels.COMMAND_FAILED: last, **OLD_HASHES})
    plan = disrupt(snapshot([rolling(), *odd, *drifted("a")]), never)
    assert started(plan) == ["a", "odd"]


def test_pods_for_which_no_node_would_ever_be_made_take_no_part() -> None:
    """One would take the only room that there is for b's pod."""
    waits = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    size = [{"name": "c", "resources": {"requests": {"cpu": "1900m"}}}]
    own: dict[str, Any] = {"phase": "Pending", "pod_conditions": waits, "containers": size}
    custom = pod("0", nodeSelector={"karpenter.sh/custom": "x"}, **own)
    world = [rolling(), *drifted("b"), pod("2", "b", containers=size), *pairs("z"), custom, torn(pod("1", **own))]
    small_ones = {"default": (instance_type("t3.small", 20_000),)}
    assert started(disrupt(snapshot(world, catalogues=small_ones))) == ["b"]


# --- the whole --------------------------------------------------------------------------------------------------
def test_an_idle_world_asks_for_nothing() -> None:
    plan = disrupt(snapshot([pool(consolidateAfter="30s"), *pairs("a"), pod("web", "a")]), never)
    assert (plan.actions, plan.refusals, plan.events) == ((), (), ())
    assert plan.next_due is not None
    assert plan.next_due > NOW + 500 * HOUR


_PROGRAM = """
from tests.unit.disruption.test_methods import busy
from kerf.disruption.disrupt import disrupt
from tests.unit.disruption.worlds import on_new_nodes, snapshot
print(repr(disrupt(snapshot(busy()), on_new_nodes("m5.large"))))
"""


def busy() -> list[Any]:
    empty, old = pairs(*(f"e{i}" for i in range(5))), drifted(*(f"d{i}" for i in range(5)))
    pods = [pod(f"p{i}", f"d{i % 2}", labels_={"app": f"x{i}"}) for i in range(6)]
    return [pool(annotations=HASHES, budgets=[{"nodes": "40%"}]), *empty, *old, *pods, pdb("x", app="x1")]


def test_the_same_world_gives_the_same_plan_under_any_hash_seed() -> None:
    plans = set()
    for seed in ("1", "77"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM], cwd=ROOT, env=env, capture_output=True, text=True, check=True
        )
        plans.add(done.stdout)
    assert len(plans) == 1
    assert "StartCommand" in plans.pop()
