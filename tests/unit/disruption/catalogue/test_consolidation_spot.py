"""Spot nodes, and how many types a replacement has to have (63 to 69 of the disruption catalogue)."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.disruption.disrupt import disrupt
from kerf.disruption.propose import consider
from kerf.model.settings import FeatureGates, Settings
from kerf_api import labels
from tests.unit.disruption import markets as m
from tests.unit.disruption import worlds as w

#: The node's type, and twenty that are cheaper as spot: the dearest first.
OLD = m.machine("old", 4, 200_000, 90_000)
LADDER = tuple(m.machine(f"s{i:02}", 2, 150_000, 50_000 - 1_000 * i) for i in range(20))
CHEAPEST = {f"s{i:02}" for i in range(5, 20)}
KEY = labels.INSTANCE_TYPE


def spot(type_: Any = OLD, own: Any = None) -> list[Any]:
    return [own or w.pool(), *m.host("a", type_, capacity_type=m.SPOT), m.pod("1", "a")]


def bought(*objects: Any, types: Any, settings: Settings = m.GATE) -> list[tuple[str, ...]]:
    found = m.proposed(*objects, types=types, settings=settings)
    return [types for one in found for types in m.bought(one)]


def told(*objects: Any, types: Any, settings: Settings) -> list[tuple[str, str]]:
    """What is said of nodes that stay, by the kind of object and the code."""
    facts: dict[str, Any] = {"catalogues": {"default": types}, "settings": settings}
    kept = consider(w.snapshot(objects, **facts)).kept
    plan = disrupt(w.snapshot(objects, kept=kept, **facts))
    return [(event.ref.kind, event.dedupe) for event in plan.events if event.reason == "Unconsolidatable"]


def test_063_a_spot_node_is_replaced_by_one_of_the_fifteen_cheapest_types() -> None:
    (found,) = m.proposed(*spot(), types=(OLD, *LADDER), settings=m.GATE)
    (types,) = m.bought(found)
    assert (len(types), set(types)) == (15, CHEAPEST)
    assert m.bought(found, labels.CAPACITY_TYPE) == [(m.SPOT,)]


@pytest.mark.parametrize(
    ("number", "settings", "code"),
    [(14, m.GATE, "TooFewSpotTypes"), (20, Settings("test"), "SpotToSpotDisabled"), (15, m.GATE, "replace")],
)
def test_064_with_fewer_types_or_without_the_gate_a_spot_node_is_kept(
    number: int, settings: Settings, code: str
) -> None:
    types = (OLD, *LADDER[:number])
    assert m.said(m.verdict(*spot(), types=types, settings=settings)) == code
    assert len(bought(*spot(), types=types, settings=settings)) == (code == "replace")
    assert told(*spot(), types=types, settings=settings) == [("Node", code), ("NodeClaim", code)] * (code != "replace")


@pytest.mark.parametrize(("rank", "goes"), [(19, False), (5, False), (4, True), (0, True)])
def test_065_a_spot_node_of_one_of_the_cheapest_types_is_kept(rank: int, goes: bool) -> None:
    """So the one that came for another is not replaced again at once."""
    assert bool(bought(*spot(LADDER[rank]), types=(OLD, *LADDER))) is goes


def test_066_the_cheapest_types_are_taken_wherever_they_stand_in_the_list() -> None:
    """They come last, and first."""
    for types in ((OLD, *LADDER), (*reversed(LADDER), OLD)):
        (kept,) = bought(*spot(), types=types)
        assert set(kept) == CHEAPEST


@pytest.mark.parametrize(("least", "sent"), [(16, 16), (10, 15), (18, 18)])
def test_067_as_many_types_as_min_values_asks_are_sent(least: int, sent: int) -> None:
    own = w.pool(requirements=[m.wanted(KEY, least=least)])
    (kept,) = bought(*spot(own=own), types=(OLD, *LADDER))
    assert (len(kept), set(kept) >= CHEAPEST) == (sent, True)


@pytest.mark.parametrize("market", [m.ON_DEMAND, m.SPOT])
@pytest.mark.parametrize(("least", "goes"), [(3, True), (4, False)])
@pytest.mark.parametrize("names", ["a", "ab"])
def test_068_too_few_cheaper_types_for_min_values_keep_the_nodes(
    market: str, least: int, goes: bool, names: str
) -> None:
    """Three types are cheaper, and one is dearer; of several nodes nothing else is said."""
    own = m.only(market, requirements=[m.wanted(KEY, least=least)])
    old = m.machine("m.old", 8, 200_000, 100_000)
    cheap = tuple(m.machine(f"c.{i}", 4, 50_000 + i, 20_000 + i) for i in range(3))
    dear = m.machine("d.dear", 4, 900_000, 800_000)
    more = tuple(m.machine(f"s.{i}", 4, None, 30_000 + i) for i in range(15)) if market == m.SPOT and goes else ()
    world = [own, *(each for n in names for each in m.host(n, old, capacity_type=market))]
    found = m.verdict(
        *world, *(m.pod(n, n) for n in names), types=(old, *cheap, dear, *more), names=names, settings=m.GATE
    )
    few = "TooFewSpotTypes" if market == m.SPOT and names == "a" else "MinValues"
    assert m.said(found) == ("replace" if goes else few)


def test_069_a_best_effort_is_not_enough_for_consolidation() -> None:
    """What is refused names the label."""
    own = m.only(m.ON_DEMAND, requirements=[m.wanted(KEY, least=4)])
    old, cheap = m.machine("m.old", 4, 200_000), m.machine("c.cheap", 2, 20_000)
    dear = tuple(m.machine(f"d.{i}", 4, 900_000 + i) for i in range(3))
    settings = Settings("test", min_values_policy="BestEffort", gates=FeatureGates())
    world = [own, *m.host("a", old), m.pod("1", "a")]
    found = m.verdict(*world, types=(old, cheap, *dear), settings=settings)
    assert m.said(found) == "MinValues"
    assert KEY in found.text  # type: ignore[union-attr]
    assert m.moves(*world, types=(old, cheap, *dear), settings=settings) == []
    assert told(*world, types=(old, cheap, *dear), settings=settings) == [
        ("Node", "MinValues"),
        ("NodeClaim", "MinValues"),
    ]
