"""Prices and places of what comes instead (72, 73, 87, 88, 90, 91, 96 of the disruption catalogue)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kerf.disruption.disrupt import disrupt
from kerf.model.aws.instance_type import InstanceType
from kerf.model.settings import Settings
from kerf.model.snapshot import Batch
from kerf.provisioning.provision import provision
from kerf_api import labels
from tests.unit.disruption import markets as m
from tests.unit.disruption import worlds as w

OLD = m.machine("m.old", 2, 100_000)


def lone(own: Any = None, type_: Any = OLD, **more: Any) -> list[Any]:
    return [own or w.pool(), *m.host("a", type_, **more), m.pod("1", "a")]


@pytest.mark.parametrize(("worst", "zones"), [(100_000, {m.A, m.B}), (99_999, {m.A, m.B, m.C})])
def test_072_a_type_that_is_expensive_in_one_allowed_zone_does_not_replace(worst: int, zones: set[str]) -> None:
    """Spot is cheap in two zones; in the third it costs what the node does, so the new one may not come up there."""
    spot = {(m.A, m.SPOT): 10_000, (m.B, m.SPOT): 10_000, (m.C, m.SPOT): worst}
    (found,) = m.proposed(*lone(), types=(OLD, m.machine("c.new", 2, offers=spot)))
    allowed = {zone for values in m.bought(found, labels.ZONE) for zone in values} or {m.A, m.B, m.C}
    assert allowed == zones
    far = w.pool(requirements=[m.wanted(labels.ZONE, m.C)])
    assert bool(m.moves(*lone(far), types=(OLD, m.machine("c.new", 2, offers=spot)))) is (m.C in zones)


def test_073_prices_of_a_market_that_a_pool_does_not_buy_in_do_not_count() -> None:
    """One that buys in both is pinned to spot."""
    types = (OLD, m.machine("c.new", 2, 120_000, 10_000))
    assert m.moves(*lone(m.only(m.ON_DEMAND)), types=types) == []
    (found,) = m.proposed(*lone(), types=types)
    assert m.bought(found) == [("c.new",)]
    assert m.bought(found, labels.CAPACITY_TYPE) == [(m.SPOT,)]


# --- places -----------------------------------------------------------------------------------------------------
def spread(when: str = "DoNotSchedule") -> dict[str, Any]:
    row = {"maxSkew": 1, "topologyKey": labels.ZONE, "whenUnsatisfiable": when}
    return {"topologySpreadConstraints": [{**row, "labelSelector": {"matchLabels": {"app": "web"}}}]}


def test_087_what_comes_instead_stands_in_the_zone_that_was_vacated() -> None:
    large = m.machine("m.large", 8, 400_000, zones=(m.A, m.B, m.C))
    small = m.machine("c.small", 2, 50_000, zones=(m.A, m.B, m.C))
    hosts = [*m.host("a", small, consolidatable=False), *m.host("b", large, zone=m.B)]
    hosts += m.host("c", small, zone=m.C, consolidatable=False)
    pods = [m.pod(name, name, cpu="1500m", **spread()) for name in "abc"]
    (found,) = m.proposed(w.pool(), *hosts, *pods, types=(large, small))
    assert (found.candidates, m.bought(found)) == (("b",), [("c.small",)])
    assert m.bought(found, labels.ZONE) == [(m.B,)]


def apart(required: bool = True) -> dict[str, Any]:
    term = {"topologyKey": labels.HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    rule = (
        {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        if required
        else {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}
    )
    return {"affinity": {"podAntiAffinity": rule}}


@pytest.mark.parametrize("held", [True, False])
def test_088_pods_that_must_be_apart_keep_nodes_that_cost_the_least(held: bool) -> None:
    nodes = [each for name in "abc" for each in m.host(name, OLD)]
    pods = [m.pod(name, name, cpu="100m", **(apart() if held else {})) for name in "abc"]
    found = m.moves(w.pool(), *nodes, *pods, types=(OLD,))
    assert found == ([] if held else [("a", "delete"), ("b", "delete")])


# --- reservations -----------------------------------------------------------------------------------------------
RESERVED: dict[str, Any] = {"reserved": {"cr-1": 1}}


@pytest.mark.parametrize("market", [m.ON_DEMAND, m.SPOT])
@pytest.mark.parametrize("gate", [True, False])
def test_090_a_node_goes_for_a_reserved_one_of_its_own_type(market: str, gate: bool) -> None:
    """Spot too, whatever the gate says."""
    old = m.machine("m.old", 2, 100_000, 40_000, **RESERVED)
    settings = m.GATE if gate else None
    world = lone(type_=old, capacity_type=market)
    assert m.moves(*world, types=(old,), settings=settings) == [("a", "replace")]
    (found,) = m.proposed(*world, types=(old,), settings=settings)
    assert m.bought(found) == [("m.old",)]
    assert m.bought(found, labels.CAPACITY_TYPE) == [(m.RESERVED,)]


@pytest.mark.parametrize(("left", "expected"), [(1, [("a", "replace")]), (0, [])])
def test_090_a_reserved_node_goes_for_a_cheaper_reserved_one(left: int, expected: list[tuple[str, str]]) -> None:
    """And never for one that is not."""
    old = m.machine("m.old", 8, 400_000, 100_000, offers={(m.A, m.RESERVED): 40})
    new = m.machine("m.new", 2, 100_000, 30_000, reserved={"cr-1": left})
    world = lone(type_=old, capacity_type=m.RESERVED)
    assert m.moves(*world, types=(old, new)) == expected


LARGE = m.machine("m.large", 8, 400_000, reserved={"cr-1": 0}, free=True)
SMALL = m.machine("m.small", 2, 100_000, reserved={"cr-2": 2}, free=True)
EQUAL = m.machine("r.large", 8, 400_000, reserved={"cr-3": 2}, free=True)
MIDDLE = m.machine("m.middle", 4, 300_000, reserved={"cr-4": 1}, free=True)
TAKEN = m.machine("m.small", 2, 100_000, reserved={"cr-2": 0}, free=True)


@pytest.mark.parametrize(
    ("types", "cpu", "bought"),
    [
        ((LARGE, SMALL), "1", ["m.small"]),
        ((LARGE, MIDDLE), "1", ["m.middle"]),
        ((LARGE, MIDDLE, SMALL), "1", ["m.small"]),
        ((LARGE, MIDDLE, SMALL), "3", ["m.middle"]),
        ((LARGE, EQUAL), "1", []),
        ((LARGE, TAKEN), "1", []),
        ((LARGE, SMALL), "3", []),
        ((LARGE, m.machine("m.small", 2, 1)), "1", []),
    ],
)
def test_090_reserved_capacity_that_costs_nothing_is_ordered_by_its_price_on_demand(
    types: tuple[InstanceType, ...], cpu: str, bought: list[str]
) -> None:
    """To a smaller reservation that fits and has a machine left, and never to capacity that is bought."""
    world = [w.pool(), *m.host("a", LARGE, capacity_type=m.RESERVED), m.pod("1", "a", cpu=cpu)]
    found = m.proposed(*world, types=types)
    assert [proposal.kind for proposal in found] == (["replace"] if bought else [])
    assert [m.bought(proposal) for proposal in found] == ([[tuple(bought)]] if bought else [])
    if found:
        assert m.bought(found[0], labels.CAPACITY_TYPE) == [(m.RESERVED,)]


def test_090_a_move_within_reserved_capacity_is_carried_out() -> None:
    world = [w.pool(), *m.host("a", LARGE, capacity_type=m.RESERVED), m.pod("1", "a", cpu="1")]
    types = {"default": (LARGE, SMALL)}
    found = [replace(one, made_at=w.NOW - w.MINUTE) for one in m.proposed(*world, types=types["default"])]
    plan = disrupt(w.snapshot(world, catalogues=types, proposals=tuple(found)))
    assert w.started(plan) == ["a"]
    assert any("replace, saves no money" in repr(action) for action in plan.actions)


def test_090_two_large_reservations_go_for_one_that_is_smaller_than_both() -> None:
    nodes = [each for name in "ab" for each in m.host(name, LARGE, capacity_type=m.RESERVED)]
    pods = [m.pod(name, name, cpu="5") for name in "ab"]
    both = m.machine("m.both", 12, 600_000, reserved={"cr-5": 1}, free=True)
    assert m.moves(w.pool(), *nodes, *pods, types=(LARGE, both)) == [("ab", "replace")]
    same = m.machine("m.both", 12, 800_000, reserved={"cr-5": 1}, free=True)
    assert m.moves(w.pool(), *nodes, *pods, types=(LARGE, same)) == []


def test_090_minimum_savings_in_dollars_keep_moves_that_save_none() -> None:
    asked = w.pool(annotations={labels.MINIMUM_SAVING: "0.01"})
    world = [asked, *m.host("a", LARGE, capacity_type=m.RESERVED), m.pod("1", "a", cpu="1")]
    assert m.moves(*world, types=(LARGE, SMALL)) == []


# --- wishes -----------------------------------------------------------------------------------------------------
IGNORE = Settings("test", preference_policy="Ignore")


@pytest.mark.parametrize(("settings", "expected"), [(None, []), (IGNORE, [("a", "delete"), ("b", "delete")])])
def test_091_ignored_preferences_stop_no_deletion(settings: Settings | None, expected: list[Any]) -> None:
    """Pods that would rather be apart."""
    nodes = [each for name in "abc" for each in m.host(name, OLD)]
    pods = [m.pod(name, name, cpu="100m", **apart(required=False)) for name in "abc"]
    assert m.moves(w.pool(), *nodes, *pods, types=(OLD,), settings=settings) == expected


@pytest.mark.parametrize(("settings", "expected"), [(None, []), (IGNORE, [("a", "replace")])])
def test_091_ignored_preferences_stop_no_replacement(settings: Settings | None, expected: list[Any]) -> None:
    """Pods that would rather be where it is dear."""
    dear, cheap = m.machine("m.dear", 2, 100_000), m.machine("c.cheap", 2, offers={(m.B, m.ON_DEMAND): 20_000})
    term = {"matchExpressions": [{"key": labels.ZONE, "operator": "In", "values": [m.A]}]}
    rule = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
    world = [w.pool(), *m.host("a", dear), m.pod("1", "a", affinity={"nodeAffinity": rule})]
    assert m.moves(*world, types=(dear, cheap), settings=settings) == expected


@pytest.mark.parametrize(("cpu", "target", "expected"), [("3", "a", []), ("5", None, [("a", "replace")])])
def test_096_a_pod_that_waits_for_the_room_of_a_large_node_keeps_it(
    cpu: str, target: str | None, expected: list[Any]
) -> None:
    """One that has no room there does not."""
    large, small = m.machine("m.large", 4, 400_000), m.machine("c.small", 2, 50_000)
    world = [w.pool(), *m.host("a", large), m.pod("1", "a"), m.waiting("big", cpu)]
    batch = Batch(first=w.NOW - w.MINUTE, last=w.NOW - w.MINUTE)
    waiting = w.snapshot(world, catalogues={"default": (large, small)}, batch=batch)
    told = {n.target: n.until for n in provision(waiting).nominations}
    assert set(told) == ({target} if target else set())
    assert m.moves(*world, types=(large, small), nominated_until=told) == expected
