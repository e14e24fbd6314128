"""Consolidation reckons with the prices that NodeOverlays tell: of nodes that run, and of what may replace them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kerf.disruption.asking import Solve
from kerf.disruption.candidates.candidates import Blocker, Candidate, candidate, known_candidate
from kerf.disruption.consolidation.moves import Move, judge
from kerf.disruption.disrupt import disrupt
from kerf.disruption.propose import propose
from kerf.disruption.view import view
from kerf.model import kinds
from kerf.model.aws.instance_type import Offering
from kerf.model.cluster import Cluster
from kerf.model.memory import Memory
from kerf.model.settings import FeatureGates, Settings
from kerf_api import labels
from kerf_api.resources import Resources
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeoverlay import NodeOverlay
from tests.unit.disruption.worlds import CATALOGUE, NOW, ZONE, claim, elsewhere, node, on_new_nodes, pod, pool, snapshot

GATE = Settings("test", gates=FeatureGates(node_overlay=True))
SMALL = on_new_nodes("t3.small")


def overlay(type_name: str, **spec: Any) -> NodeOverlay:
    rows = [{"key": labels.INSTANCE_TYPE, "operator": "In", "values": [type_name]}]
    return decode(NodeOverlay, {"metadata": {"name": type_name}, "spec": {"requirements": rows, **spec}})


def pair() -> list[Any]:
    """Two nodes; `b` runs more pods, so `a` is disturbed less for the same money."""
    both = [claim("a"), claim("b")]
    return [pool(), *both, *(node(one) for one in both), pod("1", "a"), pod("2", "b"), pod("3", "b")]


def judged(one: NodeOverlay, ask: Solve) -> tuple[int, Move | Blocker]:
    """The price of `a`, and what becomes of it."""
    seen = view(snapshot([*pair(), one], settings=GATE))
    found = candidate(seen, "a")
    assert isinstance(found, Candidate)
    return found.price, judge(seen, [found], ask)


@pytest.mark.parametrize(
    ("one", "price", "expected"),
    [
        (overlay("m5.large", price="0.02"), 20_000, "NotCheaper"),
        (overlay("m5.large", priceAdjustment="+100%"), 192_000, ("t3.small",)),
        (overlay("t3.small", price="0.5"), 96_000, "NotCheaper"),
        (overlay("m5.xlarge", priceAdjustment="-0.1"), 96_000, ("t3.small", "m5.xlarge")),
        (overlay("m5.large", capacity={"example.com/x": "1"}), 96_000, ("t3.small",)),
    ],
)
def test_nodes_and_what_replaces_them_cost_what_overlays_say(one: NodeOverlay, price: int, expected: Any) -> None:
    known, found = judged(one, on_new_nodes("t3.small", "m5.xlarge"))
    assert known == price
    if isinstance(found, Move):
        assert [new.instance_types for new in found.new] == [expected]
    else:
        assert found.code == expected


def test_what_a_deletion_saves_is_reckoned_at_the_overlays_price() -> None:
    _, found = judged(overlay("m5.large", price="7"), elsewhere("b"))
    assert isinstance(found, Move)
    assert found.saving == 7_000_000


def test_a_replacement_costs_what_the_offerings_ask_that_hold_the_pods() -> None:
    """`on_new_nodes` plans nodes for half a core; in the second zone, and only there, the small type has that much."""
    small = replace(CATALOGUE[2], allocatable=Resources({"cpu": 400, "memory": 2**30, "pods": 9}))
    dear, cheap = Offering("t3.small", ZONE, "on-demand", 120_000), Offering("t3.small", "z2", "on-demand", 20_000)
    types = (*CATALOGUE[:2], replace(small, offerings=(dear, replace(cheap, capacity=Resources({"cpu": 2000})))))
    seen = view(snapshot(pair(), catalogues={"default": types}))
    found = candidate(seen, "a")
    assert isinstance(found, Candidate)
    move = judge(seen, [found], SMALL)
    assert isinstance(move, Move)
    assert move.saving == 76_000


@pytest.mark.parametrize(("settings", "starts"), [(Settings("test"), True), (GATE, False)])
def test_a_proposal_from_before_an_overlay_is_checked_against_its_prices(settings: Settings, starts: bool) -> None:
    objects = [*pair(), overlay("t3.small", price="0.5")]
    found = propose(snapshot(pair()), SMALL)[:1]
    later = NOW + timedelta(seconds=15)
    plan = disrupt(snapshot(objects, now=later, proposals=found, settings=settings), SMALL)
    assert any(action.key.startswith("StartCommand") for action in plan.actions) is starts


def test_what_is_remembered_of_a_node_follows_the_overlays() -> None:
    cluster, memory, prices = Cluster(), Memory(), list[int]()
    for news in ([*pair()], [overlay("m5.large", price="7")], []):
        for value in news:
            cluster.apply(kinds.BY_NAME[kinds.ref(value).kind], value)
        seen = cluster.snapshot(now=NOW, settings=GATE, catalogues={"default": CATALOGUE})
        found = known_candidate(view(seen, memory.turn(seen)), "a")
        assert isinstance(found, Candidate)
        prices.append(found.price)
    assert prices == [96_000, 7_000_000, 7_000_000]
