"""Several nodes that go together, and in which order single ones do (83 to 86, 89, 94 of the disruption catalogue)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from kerf.disruption.asking import Manner
from kerf.disruption.disrupt import disrupt
from kerf.disruption.propose import propose
from kerf.model.kubernetes.objects import Pod
from kerf.sandbox.world import World as Sandbox
from kerf.scheduling.answers.solution import Solution
from kerf.scheduling.solve import solve
from kerf.telemetry.telemetry import Telemetry
from kerf_api import labels
from tests.unit.disruption import markets as m
from tests.unit.disruption import worlds as w

LARGE = m.machine("m.large", 4, 200_000, 160_000)
ROOMY = m.machine("c.roomy", 8, 250_000, 100_000)
LATER = w.NOW + timedelta(seconds=15)


def three(*markets: str, cpu: str = "2500m", type_: Any = LARGE) -> list[Any]:
    names = "abc"[: len(markets)]
    nodes = [
        each for name, market in zip(names, markets, strict=True) for each in m.host(name, type_, capacity_type=market)
    ]
    return [*nodes, *(m.pod(name, name, cpu=cpu) for name in names)]


@pytest.mark.parametrize(
    ("markets", "own"),
    [
        ((m.ON_DEMAND,) * 3, m.only(m.ON_DEMAND)),
        ((m.SPOT,) * 3, w.pool()),
        ((m.ON_DEMAND, m.SPOT, m.ON_DEMAND), w.pool()),
    ],
    ids=["on demand", "spot", "mixed"],
)
def test_083_three_nodes_become_one_that_is_cheaper(markets: tuple[str, ...], own: Any) -> None:
    """Of one type only, and from spot to spot where the gate is open."""
    (found,) = m.proposed(own, *three(*markets), types=(LARGE, ROOMY), settings=m.GATE)
    assert (sorted(found.candidates), m.bought(found)) == (["a", "b", "c"], [("c.roomy",)])
    closed = m.moves(own, *three(*markets), types=(LARGE, ROOMY))
    assert closed == ([] if set(markets) == {m.SPOT} else [("abc", "replace")])


def test_084_two_nodes_are_not_replaced_by_one_like_them() -> None:
    """The one with fewer pods goes."""
    nodes = [*m.host("a", LARGE), *m.host("b", LARGE)]
    pods = [m.pod("1", "a"), m.pod("2", "b"), m.pod("3", "b")]
    world = [m.only(m.ON_DEMAND), *nodes, *pods]
    assert m.said(m.verdict(*world, types=(LARGE,), names="ab")) == "NotCheaper"
    assert m.moves(*world, types=(LARGE,)) == [("a", "delete")]


def test_a_node_for_which_one_like_it_would_come_stays_where_it_is() -> None:
    """Two would be replaced by two, one of which is as the cheaper of them."""
    full = m.machine("m.full", 2, 100_000)
    dear = m.machine("m.dear", 2, 400_000)
    world = [m.only(m.ON_DEMAND), *m.host("a", full), *m.host("b", dear), *(m.pod(n, n, cpu="1900m") for n in "ab")]
    assert m.moves(*world, types=(full, dear)) == [("b", "replace")]


#: A node that is a little too dear, and what would do.
ODD, TWO = m.machine("m.odd", 2, 60_000), m.machine("t.two", 2, 20_000)


def both_ways() -> list[Any]:
    """Three nodes for which one would do, and another node, whose pod fits on none of them."""
    lone = [*m.host("z", ODD), m.pod("z", "z", cpu="1500m")]
    return [m.only(m.ON_DEMAND), *three(*(m.ON_DEMAND,) * 3, cpu="2600m"), *lone]


def test_085_when_several_cannot_go_together_a_single_one_goes_in_the_same_plan() -> None:
    """A pod has come to one of them."""
    objects = both_ways()
    facts: dict[str, Any] = {"catalogues": {"default": (LARGE, ROOMY, ODD, TWO)}}
    found = propose(w.snapshot(objects, **facts))
    assert {("".join(p.candidates), p.kind) for p in found} == {("abc", "replace"), ("z", "replace")}
    as_found = disrupt(w.snapshot(objects, now=LATER, proposals=found, **facts))
    assert w.started(as_found) == ["a", "b", "c"]
    changed = disrupt(w.snapshot([*objects, m.pod("late", "b")], now=LATER, proposals=found, **facts))
    assert w.started(changed) == ["z"]


# --- counted --------------------------------------------------------------------------------------------------------
FAILED = "karpenter_voluntary_disruption_failed_validations_total"
DECIDED = "karpenter_voluntary_disruption_decisions_total"


@pytest.mark.parametrize(("going", "kind", "count"), [("abc", "multi", 3), ("z", "single", 1)], ids=["several", "one"])
def test_086_each_node_that_is_spared_is_counted(going: str, kind: str, count: int) -> None:
    """A pod comes to the first of them; and what went back is found anew."""
    facts: dict[str, Any] = {"catalogues": {"default": (LARGE, ROOMY, ODD, TWO)}}
    found = tuple(p for p in propose(w.snapshot(both_ways(), **facts)) if p.candidates == tuple(going))
    world = w.World.of(*both_ways(), now=LATER, ask=None, facts={**facts, "proposals": found})
    sandbox = Sandbox()
    telemetry = Telemetry.quiet(sandbox.kube, sandbox.clock)

    def tick() -> None:
        for action in world.plan().actions:
            known = world.objects.get(action.lane)
            world.perform([action])
            telemetry.done(action, "ok", None, None, known)

    tick()
    decided = {"decision": "replace", "reason": "underutilized", "consolidation_type": kind}
    value = telemetry.metrics.registry.get_sample_value
    assert value(DECIDED, decided) == count
    world.facts = facts
    world.add(m.pod("late", going[0], cpu="100m"))
    tick()
    world.now += timedelta(seconds=16)
    for _ in range(3):
        tick()
    assert value(FAILED, {"consolidation_type": kind}) == count
    assert not any(world.tainted(name) for name in going)
    again = propose(world.snapshot())
    assert sorted("".join(p.candidates) for p in again)


def test_089_a_pod_that_comes_while_a_replacement_does_needs_no_other_node() -> None:
    objects = [w.pool(), *m.host("a", ROOMY), m.pod("1", "a")]
    facts: dict[str, Any] = {"catalogues": {"default": (LARGE, ROOMY)}}
    found = propose(w.snapshot(objects, **facts))
    world = w.World.of(*objects, now=LATER, ask=None, facts={**facts, "proposals": found})
    world.settle()
    (name,) = world.replacements
    late = m.waiting("late", "1")
    world.add(late)
    seen = solve(world.snapshot(), [late])
    assert (dict(seen.placed), seen.new_nodes) == ({"shop/late": name}, ())


# --- the order of single nodes ------------------------------------------------------------------------------------
def only_on(pool: str) -> dict[str, Any]:
    return {"nodeSelector": {labels.NODEPOOL: pool}}


def alone(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
    """A cheap new node for a candidate that goes by itself."""
    return w.alone(w.on_new_nodes("t.cheap", price=10_000))(pods, exclude, manner, *beside)


def only_last(pods: Sequence[Pod], exclude: frozenset[str], manner: Manner, *beside: Any) -> Solution:
    """A place for the pods of z alone."""
    return w.elsewhere("n000")(pods, exclude, manner) if exclude == {"z"} else w.nowhere(pods, exclude, manner)


def test_094_single_nodes_go_in_the_order_of_what_they_save_pools_in_turn() -> None:
    """The price per disruption: a node of the second pool comes before the second of the first."""
    sizes = {name: m.machine(f"m.{name}", 2, price) for name, price in (("p", 90_000), ("q", 80_000), ("r", 70_000))}
    cheap = m.machine("t.cheap", 1, 10_000)
    own = {"p": "default", "q": "default", "r": "other"}
    nodes = [each for name, pool in own.items() for each in m.host(name, sizes[name], pool_name=pool)]
    pods = [m.pod(name, name, cpu="900m", **only_on(own[name])) for name in own]
    pools = [m.only(m.ON_DEMAND, name=name) for name in ("default", "other")]
    seen = propose(w.snapshot([*pools, *nodes, *pods], catalogues={"default": (*sizes.values(), cheap)}), alone)
    assert [p.candidates for p in seen] == [("p",), ("r",), ("q",)]


def test_094_no_candidate_is_left_out_for_ever() -> None:
    """There are more than one run looks at alone; only the one that saves least can go."""
    names = [f"n{i:03}" for i in range(90)]
    nodes = [each for name in names for each in w.pairs(name, instance_type="m5.xlarge")]
    nodes += w.pairs("z")
    pods = [w.pod(name, name) for name in [*names, "z"]]
    found = {
        p.candidates
        for minute in range(6)
        for p in propose(w.snapshot([w.pool(), *nodes, *pods], now=w.NOW + minute * w.MINUTE / 6), only_last)
    }
    assert found == {("z",)}
