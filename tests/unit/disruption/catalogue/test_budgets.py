"""Budgets: who counts, how many go, over many plans (35 to 44 of the disruption catalogue)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.asking import Solve
from kerf.disruption.candidates.budgets import PoolBudget, budgets_of
from kerf.disruption.command import Command
from kerf.disruption.disrupt import disrupt
from kerf.disruption.propose import propose
from kerf.disruption.view import view
from kerf.model.annotations import text_of
from kerf_api import labels
from tests.unit.disruption import worlds as w

TEN = [f"n{i}" for i in range(10)]
POOLS = "abcdefghij"
DELAY = timedelta(seconds=15)


def counted(*objects: Any) -> PoolBudget:
    return budgets_of(view(w.snapshot(objects)))["default"]


def share(text: str) -> dict[str, Any]:
    return {"budgets": [{"nodes": text}]}


def used(*names: str, **more: Any) -> list[Any]:
    """Nodes with a pod each."""
    return [*w.pairs(*names, **more), *(w.pod(f"on-{name}", name) for name in names)]


def moved(world: w.World, ask: Solve, plans: int = 40) -> list[str]:
    """The nodes that are tainted after so many plans, each of which sees what the slow half proposes by then."""
    world.ask = ask
    for _ in range(plans):
        world.facts["proposals"] = propose(world.snapshot(), ask)
        world.now += DELAY
        world.tick()
    nodes = [lane for lane in world.objects if lane.startswith("node/")]
    return [lane for lane in nodes if any(t.key == labels.DISRUPTED_TAINT for t in world.objects[lane].spec.taints)]


@pytest.mark.parametrize(("text", "count"), [("30%", 3), ("100%", 10), ("0%", 0), ("4", 4)])
def test_035_so_many_of_ten_empty_nodes_go(text: str, count: int) -> None:
    plan = disrupt(w.snapshot([w.pool(**share(text)), *w.pairs(*TEN)]), w.never)
    assert len(w.started(plan)) == count
    assert sorted(w.refusals(plan).values()) == ["Budget"] * (10 - count)
    assert [e.reason for e in plan.events if e.ref.kind == "NodePool"] == ["DisruptionBlocked"] * (count == 0)


def test_036_of_nine_nodes_that_could_be_deleted_three_are() -> None:
    world = w.World.of(w.pool(**share("30%")), *used(*TEN[:9]), *w.pairs("z", consolidatable=False))
    assert len(moved(world, w.elsewhere("z"))) == 3


def test_037_of_ten_nodes_that_could_be_replaced_three_are() -> None:
    world = w.World.of(w.pool(**share("30%")), *used(*TEN))
    assert len(moved(world, w.on_new_nodes("t3.small", count=10))) == 3
    assert len(world.replacements) == 3


def test_038_each_pool_has_a_budget_of_its_own() -> None:
    """Half of three is two; in one plan."""
    pools = [w.pool(name, **share("50%")) for name in POOLS]
    nodes = [each for p in POOLS for each in w.pairs(*(f"{p}{i}" for i in range(3)), pool_name=p)]
    found = w.started(disrupt(w.snapshot([*pools, *nodes]), w.never))
    assert {name: sum(key[0] == name for key in found) for name in POOLS} == dict.fromkeys(POOLS, 2)


@pytest.mark.parametrize("pools", ["a", POOLS], ids=["one pool", "many"])
@pytest.mark.parametrize("kind", ["empty", "single"])
def test_039_what_a_closed_budget_held_up_goes_when_it_opens(kind: str, pools: str) -> None:
    """Nothing of what was found then stands in the way."""
    make: Callable[..., list[Any]] = w.pairs if kind == "empty" else used
    nodes = [each for p in pools for each in make(f"{p}1", pool_name=p)]
    world = w.World.of(*(w.pool(p, **share("0")) for p in pools), *nodes, *w.pairs("z", consolidatable=False))
    ask = w.never if kind == "empty" else w.elsewhere("z")
    assert moved(world, ask, plans=6) == []
    world.add(*(w.pool(p) for p in pools))
    assert moved(world, ask, plans=3) != []


def test_040_who_counts_neither_as_a_node_nor_as_one_on_its_way() -> None:
    """Nodes of others, nodes that are not usable yet, and those whose instances are ending."""
    foreign = w.claim("f", nodeClassRef={"group": "other.io", "kind": "Thing", "name": "x"})
    young, ending = w.claim("y"), w.claim("e")
    told = replace(ending.status.conditions[0], type="InstanceTerminating")
    ending = replace(ending, status=replace(ending.status, conditions=(*ending.status.conditions, told)))
    raw = w.node(young, ready=False)
    raw = replace(raw, metadata=replace(raw.metadata, labels={labels.REGISTERED: "true"}))
    others = [foreign, w.node(foreign), w.node(w.claim("stray")), young, raw, ending, w.node(ending, ready=False)]
    found = counted(w.pool(), *w.pairs("a"), *others)
    assert (found.nodes, found.disrupting) == (1, 0)


def test_041_more_that_go_than_may_leave_nothing_and_not_less() -> None:
    found = counted(w.pool(**share("1")), *w.pairs("a"), *(sick(name) for name in "bcd"), *map(w.claim, "bcd"))
    assert (found.disrupting, found.allowed["Empty"], found.remaining("Empty")) == (3, 1, 0)


def sick(name: str) -> Any:
    return w.node(w.claim(name), ready=False)


@pytest.mark.parametrize("how", ["claim", "node", "command", "not ready"])
def test_042_a_node_that_is_removed_or_is_not_ready_uses_up_one(how: str) -> None:
    """Whoever asked for it."""
    command = text_of(Command(id="x", reason="Drifted", started=w.NOW, created=True))
    one = w.claim("b", annotations={labels.COMMAND: command} if how == "command" else {})
    node = w.node(one, ready=how != "not ready")
    if how == "claim":
        one = replace(one, metadata=replace(one.metadata, deletion_timestamp=w.NOW))
    if how == "node":
        node = replace(node, metadata=replace(node.metadata, deletion_timestamp=w.NOW))
    found = counted(w.pool(**share("2")), *w.pairs("a"), one, node)
    assert (found.nodes, found.disrupting, found.remaining("Underutilized")) == (2, 1, 1)


def test_043_drift_keeps_to_its_budget_over_many_plans() -> None:
    """What is under way is counted."""
    five, others = TEN[:5], TEN[5:]
    pods = [w.pod(f"p{name}", name) for name in five]
    nodes = [*w.drifted(*five), *w.pairs(*others, annotations=w.HASHES)]
    world = w.World.of(w.rolling(**share("30%")), *nodes, *pods, ask=w.on_new_nodes("m5.large"))
    for _ in range(40):
        world.tick()
    assert [name for name in TEN if world.tainted(name)] == TEN[:3]


def test_044_each_pool_replaces_one_drifted_node() -> None:
    names = {p: [f"{p}{i}" for i in range(3)] for p in POOLS}
    nodes = [each for p in POOLS for each in w.drifted(*names[p], pool_name=p)]
    pods = [w.pod(f"p{name}", name) for p in POOLS for name in names[p]]
    pools = [w.rolling(p, **share("1")) for p in POOLS]
    world = w.World.of(w.pool(), *pools, *nodes, *pods, ask=w.on_new_nodes("m5.large"))
    for _ in range(60):
        world.tick()
    assert {p: sum(map(world.tainted, names[p])) for p in POOLS} == dict.fromkeys(POOLS, 1)
