"""One node that goes: what it is replaced by, and what keeps it (62, 70, 71, 74 to 82 of the disruption catalogue)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.disrupt import disrupt
from kerf.disruption.propose import propose
from kerf.model.plan import Plan
from kerf_api import labels
from tests.unit.disruption import markets as m
from tests.unit.disruption import worlds as w

SMALL, LARGE, HUGE = m.machine("t.small", 1, 20_000), m.machine("m.large", 2, 96_000), m.machine("m.huge", 8, 384_000)
TYPES = (SMALL, LARGE, HUGE)
LATER = w.NOW + timedelta(seconds=15)


def two(**more: Any) -> list[Any]:
    """Either node's pods fit on the other; b has more of them."""
    return [*m.host("a", LARGE, **more), *m.host("b", LARGE, **more), m.pod("1", "a"), m.pod("2", "b"), m.pod("3", "b")]


def carried_out(*objects: Any, **facts: Any) -> w.World:
    """The world when what the real scheduler finds in it has been done, replacements that join included."""
    found = m.proposed(*objects, types=TYPES, **facts)
    facts |= {"catalogues": {"default": TYPES}, "proposals": found}
    world = w.World.of(*objects, now=LATER, ask=None, facts=facts)
    world.settle()
    world.facts = {"catalogues": {"default": TYPES}}
    for name in world.replacements:
        world.join(name)
    world.settle()
    return world


def test_062_a_node_that_is_too_large_is_replaced_by_a_cheaper_one() -> None:
    objects = [w.pool(), *m.host("a", HUGE), m.pod("1", "a")]
    (found,) = m.proposed(*objects, types=TYPES)
    assert [set(types) for types in m.bought(found)] == [{"t.small", "m.large"}]
    world = carried_out(*objects)
    assert len(world.replacements) == 1
    assert world.claim("a").metadata.deleting


@pytest.mark.parametrize("by", ["budget", "pod", "node"])
def test_070_only_nodes_that_nothing_protects_go(by: str) -> None:
    """A budget of another namespace protects nothing."""
    names = "abc"
    marked = {"b": w.PROTECTED} if by in ("pod", "node") else {}
    nodes = [each for name in names for each in m.host(name, HUGE)]
    if by == "node":
        old = nodes[3]
        nodes[3] = replace(old, metadata=replace(old.metadata, annotations=marked["b"]))
    pods = [
        m.pod(name, name, cpu="5", labels_={"app": name}, annotations=marked.get(name, {}) if by == "pod" else {})
        for name in names
    ]
    far = w.pdb("far", app="a", namespace="elsewhere")
    held = [w.pdb("strict", app="b")] if by == "budget" else []
    extra = m.machine("m.five", 6, 200_000)
    found = m.moves(w.pool(), *nodes, *pods, *held, far, types=(*TYPES, extra))
    assert sorted("".join(names for names, _ in found)) == ["a", "c"]


@pytest.mark.parametrize(
    ("policy", "ready", "goes"),
    [("AlwaysAllow", "False", True), ("AlwaysAllow", "True", False), (None, "False", False)],
)
def test_071_a_budget_that_always_allows_unhealthy_pods_blocks_no_node_of_theirs(
    policy: str | None, ready: str, goes: bool
) -> None:
    sick = m.pod("1", "a", pod_conditions=[{"type": "Ready", "status": ready}])
    spec: dict[str, Any] = {"unhealthyPodEvictionPolicy": policy} if policy else {}
    found = m.moves(w.pool(), *m.host("a", HUGE), sick, w.pdb("strict", **spec), types=TYPES)
    assert found == ([("a", "replace")] if goes else [])


def test_074_of_two_nodes_that_cost_the_same_the_one_with_fewer_pods_goes() -> None:
    assert m.moves(w.pool(), *two(), types=TYPES) == [("a", "delete")]
    swapped = [*m.host("b", LARGE), *m.host("a", LARGE), m.pod("1", "b"), m.pod("2", "a"), m.pod("3", "a")]
    assert m.moves(w.pool(), *swapped, types=TYPES) == [("b", "delete")]


def test_075_pods_without_a_controller_block_no_node() -> None:
    pods = [m.pod("1", "a"), m.pod("2", "b"), m.pod("3", "b")]
    bare = [replace(pod, metadata=replace(pod.metadata, owner_references=())) for pod in pods]
    world = carried_out(w.pool(), *m.host("a", LARGE), *m.host("b", LARGE), *bare)
    assert [world.claim(name).metadata.deleting for name in "ab"] == [True, False]


@pytest.mark.parametrize("by", ["budget", "pod", "nothing"])
def test_076_a_grace_period_gives_consolidation_no_right(by: str) -> None:
    held = m.pod("1", "a", annotations=w.PROTECTED if by == "pod" else {})
    budget = [w.pdb("strict")] if by == "budget" else []
    found = m.moves(w.pool(), *m.host("a", HUGE, terminationGracePeriod="1h"), held, *budget, types=TYPES)
    assert found == ([("a", "replace")] if by == "nothing" else [])


@pytest.mark.parametrize(("text", "goes"), [("2h", False), ("30m", True), ("abc", True), ("true", False)])
def test_077_a_protection_that_has_lapsed_or_is_none_holds_no_node(text: str, goes: bool) -> None:
    """The pod has run for an hour."""
    held = m.pod("1", "a", annotations={labels.DO_NOT_DISRUPT: text})
    lone = m.host("b", LARGE, consolidatable=False)
    found = m.moves(w.pool(), *m.host("a", LARGE), *lone, held, types=TYPES)
    assert found == ([("a", "delete")] if goes else [])


def stirred(pair: list[Any], ago: timedelta) -> list[Any]:
    """A node to which a pod has come so long ago."""
    one = pair[0]
    return [replace(one, status=replace(one.status, last_pod_event_time=w.NOW - ago)), *pair[1:]]


@pytest.mark.parametrize(("seconds", "expected"), [(30, []), (61, [("a", "delete")])])
def test_078_what_has_just_come_to_rest_takes_no_pods(seconds: int, expected: list[tuple[str, str]]) -> None:
    busy = stirred(m.host("b", LARGE, consolidatable=False), timedelta(seconds=seconds))
    pods = [m.pod("1", "a", cpu="900m"), m.pod("2", "b")]
    assert m.moves(w.pool(consolidateAfter="1m"), *m.host("a", LARGE), *busy, *pods, types=(LARGE,)) == expected


def test_079_nodes_of_a_pool_that_never_consolidates_take_pods_at_any_time() -> None:
    busy = stirred(m.host("b", LARGE, consolidatable=False, pool_name="still"), timedelta(seconds=1))
    still = w.pool("still", consolidateAfter="Never")
    world = [w.pool(consolidateAfter="1m"), still, *m.host("a", LARGE), *busy, m.pod("1", "a"), m.pod("2", "b")]
    assert m.moves(*world, types=(LARGE,)) == [("a", "delete")]


def test_080_a_new_node_may_come_whatever_stirs_on_others() -> None:
    busy = stirred(m.host("b", LARGE, consolidatable=False), timedelta(seconds=30))
    world = [w.pool(consolidateAfter="1m"), *m.host("a", HUGE), *busy, m.pod("1", "a"), m.pod("2", "b")]
    assert m.moves(*world, types=TYPES) == [("a", "replace")]


def test_081_one_node_is_not_replaced_by_two_unless_it_has_drifted() -> None:
    """Two that are cheaper together."""
    pods = [m.pod("1", "a", cpu="900m"), m.pod("2", "a", cpu="900m")]
    types = (SMALL, HUGE)
    assert m.said(m.verdict(w.pool(), *m.host("a", HUGE), *pods, types=types)) == "TooManyNodes"
    assert m.moves(w.pool(), *m.host("a", HUGE), *pods, types=types) == []
    old = m.host("a", HUGE, drifted=w.NOW - w.HOUR, consolidatable=False)
    world = w.World.of(w.rolling(), *old, *pods, ask=None, facts={"catalogues": {"default": types}})
    world.settle()
    assert len(world.replacements) == 2


def standing(*objects: Any, was: tuple[Any, ...], types: Any = TYPES) -> Plan:
    """The plan 15 seconds after something was found in another world."""
    found = propose(w.snapshot(was, catalogues={"default": TYPES}))
    assert found
    return disrupt(w.snapshot(objects, now=LATER, proposals=found, catalogues={"default": types}))


@pytest.mark.parametrize("what", ["nothing", "types", "protected", "budget", "room"])
def test_082_what_changes_while_a_move_waits_drops_it(what: str) -> None:
    """Other types would be needed; something protects the node now; or the pods have no room any more."""
    was = (w.pool(), *m.host("a", HUGE), m.pod("1", "a"))
    now, types = list(was), [*TYPES]
    if what == "types":
        types = [LARGE, HUGE]
    elif what == "protected":
        now[-1] = m.pod("1", "a", annotations=w.PROTECTED)
    elif what == "budget":
        now.append(w.pdb("strict"))
    elif what == "room":
        now[-1] = m.pod("1", "a", cpu="7")
    plan = standing(*now, was=was, types=types)
    assert w.started(plan) == (["a"] if what == "nothing" else [])
