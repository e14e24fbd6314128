"""What becomes of nodes that have drifted (110 to 115 of the disruption catalogue)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.asking import Manner, Solve
from kerf.disruption.command import command_of
from kerf.disruption.disrupt import disrupt
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import PatchObject, Plan
from kerf.model.settings import FeatureGates, Settings
from kerf.scheduling.answers.solution import PodRefusal, Solution
from tests.unit.disruption import worlds as w


def plan(*objects: Any, ask: Solve = w.never, **facts: Any) -> Plan:
    return disrupt(w.snapshot([w.rolling(), *objects], **facts), ask)


def replacements(found: Plan) -> list[str]:
    """What the commands that begin will create."""
    names: list[str] = []
    for action in found.actions:
        if isinstance(action, PatchObject) and action.verb == "StartCommand":
            command = command_of(action.patch["metadata"]["annotations"])
            assert command is not None
            names += command.replacements
    return names


@pytest.mark.parametrize("status", ["False", "Unknown", None])
def test_110_what_is_not_drifted_or_is_annotated_is_left_alone(status: str | None) -> None:
    one, node = w.drifted("a")
    rows = [c for c in one.status.conditions if c.type != "Drifted" or status is not None]
    rows = [replace(c, status=status) if c.type == "Drifted" and status is not None else c for c in rows]
    other = replace(one, status=replace(one.status, conditions=tuple(rows)))
    assert w.started(plan(one, node)) == ["a"]
    assert w.started(plan(other, node)) == []
    held = plan(one, w.node(one, annotations=w.PROTECTED))
    assert (w.started(held), w.refusals(held)) == ([], {"node/node-a": "NodeDoNotDisrupt"})


def test_111_the_next_one_is_tried_when_the_pods_of_the_first_have_no_place() -> None:
    """That is told of the first."""

    def ask(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
        stuck = {p.key: PodRefusal("NoRoom", "no room") for p in pods if p.metadata.name == "1"}
        return Solution(unplaced=stuck, placed={p.key: "z" for p in pods if p.key not in stuck})

    world = [*w.drifted("b", "a"), w.pod("1", "b"), w.pod("2", "a"), *w.pairs("z", consolidatable=False)]
    found = plan(*world, ask=ask)
    assert w.started(found) == ["a"]
    assert w.refusals(found) == {"node/node-b": "PodsWouldNotSchedule"}
    assert {e.ref.name for e in found.events if e.reason == "DisruptionBlocked"} == {"node-b", "b"}
    assert all("shop/1" in words for words in w.blocked(found).values())


@pytest.mark.parametrize("grace", [None, "1h"])
def test_112_for_a_pod_that_may_not_go_nothing_is_bought(grace: str | None) -> None:
    """Nor for one whose budget never allows it, nor for one that comes with each node."""
    own = {"terminationGracePeriod": grace} if grace else {}
    held = w.pod("1", "a", annotations=w.PROTECTED)
    shut = [w.pod("2", "a", labels_={"app": "db"}), w.pdb("db", app="db", maxUnavailable=0)]
    found = plan(*w.drifted("a", **own), held, *shut, w.pod("3", "a", owner="DaemonSet"), ask=nobody)
    assert w.started(found) == (["a"] if grace else [])
    assert replacements(found) == []


def nobody(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
    assert not pods
    return Solution()


@pytest.mark.parametrize("count", [1, 3])
def test_113_pods_that_fit_nowhere_have_new_nodes_first(count: int) -> None:
    pods = [w.pod(str(i), "a") for i in range(count)]
    world = w.World.of(w.rolling(), *w.drifted("a"), *pods, ask=w.on_new_nodes("m5.large", count=count))
    world.settle()
    assert len(world.replacements) == count
    for name in world.replacements:
        assert not world.claim("a").metadata.deleting
        world.join(name)
        world.settle()
    assert world.claim("a").metadata.deleting


def test_114_pods_that_fit_elsewhere_need_no_new_node() -> None:
    world = w.World.of(
        w.rolling(), *w.drifted("a"), w.pod("web", "a"), *w.pairs("b", consolidatable=False), ask=w.elsewhere("b")
    )
    world.settle()
    assert world.claim("a").metadata.deleting
    assert world.replacements == []


def test_114_empty_ones_go_first_then_the_one_that_drifted_longest_one_at_a_time() -> None:
    pods = [w.pod("1", "b"), w.pod("2", "a")]
    world = w.World.of(w.rolling(), *w.drifted("b", "a", "c"), *pods, ask=w.on_new_nodes("m5.large"))
    begun = [w.started(world.tick()) for _ in range(8)]
    assert [names for names in begun if names] == [["c"], ["b"], ["a"]]


@pytest.mark.parametrize("gate", [False, True])
def test_115_static_pools_do_not_drift_this_way(gate: bool) -> None:
    """But each by a successor from the template, where the gate is open."""
    settings = Settings("test", gates=FeatureGates(static_capacity=gate))
    world = [w.rolling(replicas=1), *w.drifted("a"), w.pod("web", "a")]
    asked: list[str] = []

    def ask(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
        asked.extend(pod.key for pod in pods)
        return w.on_new_nodes("m5.large")(pods, exclude, manner, *beside)

    found = disrupt(w.snapshot(world, settings=settings), ask)
    assert (w.started(found), asked) == (["a"] if gate else [], [])
