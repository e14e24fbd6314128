"""What NodeOverlays and offerings with a capacity of their own do to a pass, beyond the catalogue of behaviours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kerf.decide import decide
from kerf.model.aws.instance_type import Catalogue, InstanceType
from kerf.model.plan import CreateNodeClaim
from kerf.model.settings import FeatureGates
from kerf_api import labels
from kerf_api.resources import Resources
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

ON = FeatureGates(node_overlay=True)
EXTRA = "example.com/extra"
TYPES: Catalogue = (c.machine("one", 4, 4, price=1_020_000), c.machine("two", 4, 4, price=1_030_000))


def overlay(name: str, *rows: dict[str, Any], **spec: Any) -> Any:
    return c.made("NodeOverlay", name, spec={"requirements": list(rows), **spec})


def of_type(name: str) -> dict[str, Any]:
    return c.row(labels.INSTANCE_TYPE, "In", name)


def run(*objects: Any, **facts: Any) -> c.Pass:
    return c.run(*objects, **{"catalogue": TYPES, "gates": ON, **facts})


def notes(done: c.Pass) -> set[str]:
    (claim,) = done.claims()
    return {labels.PRICE_OVERLAY, labels.CAPACITY_OVERLAY} & claim.metadata.annotations.keys()


# --- overlays -----------------------------------------------------------------------------------------------------
def test_pools_of_one_class_have_each_their_own_prices() -> None:
    pools = [w.pool("a", labels={"team": "red"}), w.pool("b", labels={"team": "blue"})]
    cheap = overlay("o", c.row("team", "In", "red"), of_type("two"), price="0.5")
    done = run(pools, cheap, *(w.pod(team, nodeSelector={"team": team}) for team in ("red", "blue")))
    assert (done.of("red").instance_types[0], done.of("red").price) == ("two", 500_000)
    assert (done.of("blue").instance_types[0], done.of("blue").price) == ("one", 1_020_000)


def test_a_claim_says_only_what_holds_of_its_types() -> None:
    only = w.pod("p", nodeSelector={labels.INSTANCE_TYPE: "one"})
    assert notes(run(w.pool(), only, overlay("o", of_type("two"), price="1"))) == set()
    assert notes(run(w.pool(), only, overlay("o", of_type("one"), price="1"))) == {labels.PRICE_OVERLAY}
    capacity = overlay("o", of_type("one"), capacity={EXTRA: "1"})
    assert notes(run(w.pool(), only, capacity)) == {labels.CAPACITY_OVERLAY}
    assert notes(run(w.pool(), only, capacity, gates=FeatureGates())) == set()


def test_so_does_a_member_of_a_static_pool() -> None:
    """Of the types that its template allows."""
    pool = c.pool(c.row(labels.INSTANCE_TYPE, "In", "one"), replicas=1)
    gates = FeatureGates(node_overlay=True, static_capacity=True)
    for name, expected in (("one", {labels.PRICE_OVERLAY}), ("two", set[str]())):
        plan = decide(w.world(pool, overlay("o", of_type(name), price="1"), catalogue=TYPES, gates=gates))
        (claim,) = [action.claim for action in plan.actions if isinstance(action, CreateNodeClaim)]
        assert {labels.PRICE_OVERLAY, labels.CAPACITY_OVERLAY} & claim.metadata.annotations.keys() == expected


def test_the_amount_of_an_overlay_is_shared_out_among_pods() -> None:
    pods = w.replicas(4, "p", requests={EXTRA: "1"})
    assert run(w.pool(), pods, overlay("o", of_type("two"), capacity={EXTRA: "2"})).sizes() == [2, 2]
    without = run(w.pool(), pods)
    assert without.why("p-0").endswith(f"no instance type has {EXTRA}")


def test_a_claim_on_its_way_has_room_for_what_an_overlay_says() -> None:
    capacity = overlay("o", capacity={EXTRA: "2"})
    first = w.pod("first", requests={EXTRA: "1"})
    claim = run(w.pool(), capacity, first).claims()[0]
    done = run(w.pool(), capacity, claim, first, w.pod("p", requests={EXTRA: "1"}))
    assert done.placed == {"first": claim.name, "p": claim.name}
    more = run(w.pool(), capacity, claim, first, *w.replicas(2, "q", requests={EXTRA: "1"}))
    assert (len(more.placed), more.sizes()) == (2, [1])


@pytest.mark.parametrize(("amount", "expected"), [("2", ["p"]), ("9", [])])
def test_limits_count_what_overlays_say(amount: str, expected: list[str]) -> None:
    pool = w.pool(limits={EXTRA: amount})
    done = run(pool, overlay("o", capacity={EXTRA: "3"}), w.pod("p", requests={EXTRA: "1"}))
    assert done.pending == expected


# --- offerings with a capacity of their own -----------------------------------------------------------------------
def special(**amounts: int) -> InstanceType:
    """Dear in z3 on demand, where it has more."""
    base = c.machine("plain", 4, 4, price=1_000_000)
    own = Resources(amounts)
    return replace(
        base,
        offerings=tuple(
            replace(o, capacity=own, price=3_000_000) if (o.zone, o.capacity_type) == ("z3", "on-demand") else o
            for o in base.offerings
        ),
    )


def test_what_fits_anywhere_goes_where_it_is_cheap_and_the_type_is_listed_once() -> None:
    node = run(w.pool(), w.pod("p"), catalogue=(special(cpu=16_000),)).node
    assert (node.instance_types, node.price, node.zones) == (("plain",), 1_000_000, ("z1", "z2", "z3"))


def test_what_fits_only_there_pays_for_it() -> None:
    node = run(w.pool(), w.pod("p", cpu="12"), catalogue=(special(cpu=16_000),)).node
    assert (node.instance_types, node.price, node.zones) == (("plain",), 3_000_000, ("z3",))


def test_an_offering_may_have_less() -> None:
    in_z3 = {labels.ZONE: "z3"}
    catalogue = (special(cpu=1_000),)
    assert run(w.pool(), w.pod("p", cpu="3", nodeSelector=in_z3), catalogue=catalogue).pending == ["p"]
    assert run(w.pool(), w.pod("p", cpu="500m", nodeSelector=in_z3), catalogue=catalogue).node.price == 3_000_000


def test_a_claim_on_its_way_to_such_an_offering_has_its_room_and_its_zone() -> None:
    catalogue = (special(**{EXTRA: 2}),)
    first = w.pod("first", requests={EXTRA: "1"})
    claim = run(w.pool(), first, catalogue=catalogue).claims()[0]
    there = w.pod("p", requests={EXTRA: "1"}, nodeSelector={labels.ZONE: "z3"})
    done = run(w.pool(), claim, first, there, catalogue=catalogue)
    assert done.placed == {"first": claim.name, "p": claim.name}


def test_an_overlay_reaches_such_offerings_too_and_they_keep_their_amounts() -> None:
    catalogue = (special(**{EXTRA: 2}),)
    pod = w.pod("p", requests={EXTRA: "1", "example.com/x": "1"})
    cheap = overlay("o", c.row(labels.ZONE, "In", "z3"), price="0.25", capacity={"example.com/x": "1"})
    node = run(w.pool(), pod, cheap, catalogue=catalogue).node
    assert (node.price, node.zones) == (250_000, ("z3",))
