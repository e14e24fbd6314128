"""Prices of types that may be launched and of nodes that run."""

from __future__ import annotations

from kerf.model.aws.instance_type import InstanceType, Offering
from kerf.scheduling.offerings.prices import cheapest, price_of, worst_launch_price
from kerf_api import labels
from kerf_api.requirements import EMPTY, Requirements
from tests.unit.scheduling import worlds as w

BASE = w.instance_type("t", 2, 2)
OFFERS = (
    Offering("t", "z1", "spot", 30),
    Offering("t", "z2", "spot", 50),
    Offering("t", "z1", "on-demand", 100),
    Offering("t", "z2", "on-demand", 110),
    Offering("t", "z3", "on-demand", 1, available=False),
)
TYPE = InstanceType("t", BASE.requirements, BASE.capacity, BASE.allocatable, OFFERS)
ON_DEMAND = Requirements.of_labels({labels.CAPACITY_TYPE: "on-demand"})


def test_the_cheapest_offering_that_is_allowed_and_in_stock() -> None:
    gone = {("t", "z1", "spot"): w.NOW.replace(hour=13)}
    assert cheapest(TYPE, EMPTY, w.world()) == 30
    assert cheapest(TYPE, EMPTY, w.world(out_of_stock=gone)) == 50
    assert cheapest(TYPE, ON_DEMAND, w.world()) == 100
    assert cheapest(TYPE, Requirements.of_labels({labels.ZONE: "z3"}), w.world()) is None


def test_the_worst_launch_price_is_within_the_type_that_a_launch_prefers() -> None:
    assert worst_launch_price(TYPE, EMPTY, w.world()) == 50
    assert worst_launch_price(TYPE, ON_DEMAND, w.world()) == 110
    assert worst_launch_price(TYPE, Requirements.of_labels({labels.ZONE: "z3"}), w.world()) is None


def test_the_price_of_a_running_node() -> None:
    own = {labels.INSTANCE_TYPE: "t", labels.ZONE: "z3", labels.CAPACITY_TYPE: "on-demand"}
    assert price_of(own, [TYPE]) == 1
    assert price_of({**own, labels.ZONE: "z9"}, [TYPE]) is None
    assert price_of({}, [TYPE]) is None
