"""Instance types of which some offerings have a capacity of their own."""

from __future__ import annotations

from dataclasses import replace

from kerf.model.aws.instance_type import InstanceType, Offering
from kerf_api.resources import Resources
from tests.unit.scheduling import catalogue_world as c

PLAIN = c.machine("plain", 4, 4)
LESS, MORE = Resources({"cpu": 2000}), Resources({"cpu": 8000, "example.com/extra": 2})


def sold(zone: str, capacity: Resources | None) -> Offering:
    return Offering("plain", zone, "on-demand", 1, capacity=capacity)


def with_offerings(*offerings: Offering) -> InstanceType:
    return replace(PLAIN, offerings=offerings)


def test_a_type_without_such_offerings_is_one_group() -> None:
    assert PLAIN.groups() == (PLAIN,)
    assert with_offerings().groups() == (with_offerings(),)
    assert PLAIN.launched("z1", "spot") is PLAIN


def test_offerings_of_equal_capacity_are_a_group_and_the_plain_ones_the_first() -> None:
    mixed = with_offerings(sold("a", MORE), sold("b", None), sold("c", LESS), sold("d", MORE))
    assert [tuple(o.zone for o in group.offerings) for group in mixed.groups()] == [("b",), ("a", "d"), ("c",)]
    assert [group.capacity["cpu"] for group in mixed.groups()] == [4000, 8000, 2000]
    assert [tuple(o.zone for o in g.offerings) for g in with_offerings(sold("a", MORE)).groups()] == [("a",)]


def test_what_the_system_keeps_is_what_it_was() -> None:
    (group,) = with_offerings(sold("a", MORE)).groups()
    assert (group.allocatable["cpu"], group.allocatable["example.com/extra"]) == (7900, 2)
    assert group.allocatable["memory"] == PLAIN.allocatable["memory"]
    assert with_offerings(sold("a", MORE), sold("b", None)).launched("a", "on-demand").capacity["cpu"] == 8000
    assert with_offerings(sold("a", MORE), sold("b", None)).launched("b", "on-demand").capacity["cpu"] == 4000


def test_what_holds_so_much_are_the_offerings_whose_machines_do() -> None:
    mixed = with_offerings(sold("a", MORE), sold("b", None), sold("c", LESS))

    def zones(**requests: int) -> list[str]:
        return [o.zone for o in mixed.holding(Resources(requests)).offerings]

    assert zones(cpu=1000) == ["b", "a", "c"]
    assert zones(cpu=3000) == ["b", "a"]
    assert zones(cpu=5000) == ["a"]
    assert zones(cpu=9000) == []
    assert PLAIN.holding(Resources({"cpu": 1000})) is PLAIN
    assert PLAIN.holding(Resources({"cpu": 9000})).offerings == ()
