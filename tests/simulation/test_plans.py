"""`kerf plan` against what then happens: the same change in a world whose seed, and so whose launches and pods, the
plan has not seen. The world is read by itself: NodeClaims that are gone, the cost of instances, pods that had to leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from kerf.model.settings import Settings
from kerf.planning.changes import Change
from kerf.planning.lives import Life
from kerf.planning.outcomes import Outcome
from kerf.runtime.controller import Controller
from kerf.runtime.observe.looking import captured
from kerf.sandbox.world import World
from kerf.snapshots.reading import read
from kerf.snapshots.writing import lines
from tests.simulation.scripts import TYPES
from tests.simulation.trouble import lives
from tests.worlds import deployment, node_class, node_pool

SETTINGS = Settings(cluster_name="sandbox")
Manifest = dict[str, Any]
ALL = [{"nodes": "100%"}]
NEVER = {"consolidateAfter": "Never", "budgets": ALL}


def pool(name: str = "general", **given: Any) -> Manifest:
    return node_pool(name, {"disruption": NEVER, **given})


def web(replicas: int = 6, **given: Any) -> Manifest:
    return deployment("web", {"replicas": replicas, "cpu": "900m", **given})


@dataclass(frozen=True)
class Case:
    """The cluster before, and what is applied and deleted."""

    before: tuple[Manifest, ...]
    applied: tuple[Manifest, ...] = ()
    deleted: tuple[tuple[str, str, str], ...] = ()


def image(version: str) -> Manifest:
    found = node_class()
    found["spec"]["amiSelectorTerms"] = [{"alias": version}]
    return found


CASES: Mapping[str, Callable[[], Case]] = {
    "nothing": lambda: Case((node_class(), pool(), web())),
    "label": lambda: Case((node_class(), pool(), web()), (pool(labels={"team": "a"}),)),
    "label, one at a time": lambda: Case(
        (node_class(), pool(), web(12)),
        (pool(labels={"team": "a"}, disruption={**NEVER, "budgets": [{"nodes": "1"}]}),),
    ),
    "label, a budget of none": lambda: Case(
        (node_class(), pool(), web()), (pool(labels={"team": "a"}, disruption={**NEVER, "budgets": [{"nodes": "0"}]}),)
    ),
    "requirement": lambda: Case(
        (node_class(), pool(), web()),
        (pool(requirements=[{"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["r"]}]),),
    ),
    "taint that pods do not tolerate": lambda: Case(
        (node_class(), pool(), web()), (pool(taints=[{"key": "a", "effect": "NoSchedule"}]),)
    ),
    "spot to on-demand": lambda: Case(
        (node_class(), pool(), web()),
        (pool(requirements=[{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]),),
    ),
    "image": lambda: Case((image("al2023@v20251201"), pool(), web()), (image("al2023@latest"),)),
    "an image at last": lambda: Case((image("al2023@v20250505"), pool(), web()), (image("al2023@latest"),)),
    "user data": lambda: Case(
        (node_class(), pool(), web()), ({**node_class(), "spec": {**node_class()["spec"], "userData": "#!/bin/sh"}},)
    ),
    "a NodePool is deleted": lambda: Case(
        (node_class(), pool(), pool("other"), web()), deleted=(("NodePool", "", "general"),)
    ),
    "consolidation is allowed": lambda: Case(
        (node_class(), pool(), web(8), deployment("low", {"replicas": 2, "cpu": "100m"})),
        (pool(disruption={"consolidateAfter": "0s", "budgets": ALL}),),
    ),
    "limit": lambda: Case((node_class(), pool(), web()), (pool(limits={"cpu": "1"}),)),
}


@dataclass
class Reality:
    """What happened: NodeClaims that were there and are gone, the price of what is left, pods without a place."""

    gone: set[str]
    cost: int
    waiting: int
    evicted: int
    last: datetime


def _life(case: Case, seed: int) -> tuple[World, Controller]:
    world = World(seed=seed, types=TYPES)
    loop = Controller(world.ports, settings=SETTINGS, inline=True)
    for manifest in case.before:
        world.apply(manifest)
    world.run(loop, timedelta(minutes=10))
    return world, loop


def _really(world: World, loop: Controller, case: Case) -> Reality:
    before = {one["metadata"]["name"] for one in world.objects("NodeClaim")}
    pods = {one["metadata"]["uid"] for one in world.objects("Pod")}
    last = [world.clock.now()]
    world.ec2.listen(lambda machine: last.append(world.clock.now()))
    for manifest in case.applied:
        world.apply(manifest)
    for kind, namespace, name in case.deleted:
        world.delete(kind, name, namespace)
    world.run(loop, timedelta(minutes=40))
    left = [one for one in world.objects("Pod") if not one["spec"].get("nodeName")]
    return Reality(
        before - {one["metadata"]["name"] for one in world.objects("NodeClaim")},
        sum(machine.price for machine in world.ec2.instances.values() if lives(machine)),
        len(left),
        len(pods - {one["metadata"]["uid"] for one in world.objects("Pod")}),
        max(last),
    )


def _planned(world: World, loop: Controller, case: Case) -> Outcome:
    """What the plan says, from a file, in a world with another seed."""
    found = read(lines(captured(loop.state, world.clock.now()), b"key"))
    return Life(found, Change(case.applied, case.deleted), seed=99).run(timedelta(minutes=40))


@pytest.mark.parametrize("name", CASES)
def test_what_is_planned_happens(name: str) -> None:
    case = CASES[name]()
    world, loop = _life(case, seed=11)
    planned = _planned(world, loop, case)
    really = _really(world, loop, case)
    assert {one.node.name for one in planned.departures} == really.gone
    assert planned.total == pytest.approx(really.cost, rel=0.02)
    assert len(planned.waiting) == really.waiting
    assert len(planned.moves) == really.evicted
    if planned.at_rest and planned.departures:
        took = really.last - planned.began
        assert abs(planned.ended - planned.began - took) <= max(timedelta(seconds=20), took / 5)
