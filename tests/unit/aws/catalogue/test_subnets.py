"""Subnets: which is named while addresses become few, and what is launched when there are none (18, 19, 42 to 45)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

from kerf.ec2 import errors
from kerf.ec2.errors import OUT_OF_STOCK
from kerf.ec2.instance_types.catalogue import build
from kerf.model.aws.cloud import FleetError, FleetRequest, Subnet
from kerf.model.aws.instance_type import Catalogue
from kerf.model.kinds import NODE_CLASS
from kerf.model.plan import LaunchInstances, Reason
from kerf.model.snapshot import Snapshot
from kerf.runtime.act.results import absorb
from kerf.runtime.inbox import Done, RegionRead, Resolved
from kerf.runtime.state.state import State
from kerf_api.resources import Resources
from tests.unit.aws.catalogue.test_fleet_errors import told
from tests.unit.ec2.ec2_facts import NOW, SETTINGS, ZONES, claim, facts, node_class, ready, region
from tests.unit.ec2.fleet_requests import BOTH, request, typed
from tests.unit.lifecycle.world import FACTS, World, large, node_claim, prepared

CODE = "InsufficientFreeAddressesInSubnet"
NAMES = ("c5.large", "m5.large")
A, B = ZONES[:2]


class Known:
    """What the controller knows of a class with these subnets (ID, zone, free addresses)."""

    def __init__(self, *subnets: tuple[str, str, int]) -> None:
        rows = tuple(Subnet(id_, zone, f"id-{zone}", free) for id_, zone, free in subnets)
        self.of = ready(node_class(), facts(subnets=rows))
        self.state = State(SETTINGS, build=build, interpret=lambda _: None)
        self.state.take(RegionRead(region(*NAMES), NOW), NOW)
        self.state.put(NODE_CLASS, self.of, NOW)
        self.resolve(rows)

    def resolve(self, rows: Sequence[Subnet], at: Any = NOW) -> None:
        self.state.take(Resolved("default", "class-uid", facts(subnets=tuple(rows)), at), at)

    def snapshot(self, at: Any = NOW) -> Snapshot:
        return self.state.snapshot(at)

    def types(self, at: Any = NOW) -> Catalogue:
        return self.snapshot(at).catalogues["default"]

    def ask(self, *rows: Any, at: Any = NOW) -> FleetRequest:
        seen = self.snapshot(at)
        return request(
            claim("a", *rows),
            types=seen.catalogues["default"],
            node_class=self.of,
            out_of_stock=seen.out_of_stock,
            full_subnets=seen.full_subnets("default"),
            now=at,
        )

    def answer(self, asked: FleetRequest, *subnets: str) -> None:
        """EC2 says that these have no address left."""
        rows = [
            {
                "ErrorCode": CODE,
                "ErrorMessage": "no address",
                "LaunchTemplateAndOverrides": {
                    "Overrides": {"InstanceType": o.instance_type, "AvailabilityZone": o.zone, "SubnetId": o.subnet_id}
                },
            }
            for o in asked.overrides
            if o.subnet_id in subnets
        ]
        said = told(asked, {"Errors": rows})
        assert errors.is_capacity(said.errors)
        absorb(Done(LaunchInstances(reason=Reason("Test"), request=asked, claims=("a",)), "ok", NOW, said), self.state)


def zones(types: Catalogue) -> dict[str, set[str]]:
    """The zones in which each capacity type can be had, of any type."""
    found: dict[str, set[str]] = {"on-demand": set(), "spot": set()}
    for kind in types:
        for offering in kind.offerings:
            if offering.available:
                found[offering.capacity_type].add(offering.zone)
    return found


def subnets(found: FleetRequest) -> set[str]:
    return {override.subnet_id for override in found.overrides}


def test_042_a_zone_whose_only_subnet_is_full_is_closed_for_everything() -> None:
    known = Known(("a1", A, 9), ("b1", B, 9))
    known.answer(known.ask(typed("m5.large")), "a1")
    assert zones(known.types()) == {"on-demand": {B}, "spot": {B}}
    assert subnets(known.ask(typed("c5.large"))) == {"b1"}
    assert subnets(known.ask(typed("c5.large"), BOTH)) == {"b1"}
    assert dict(known.snapshot().out_of_stock) == {}, "no offering of any other class is closed by it"


def test_043_one_of_several_leaves_the_zone_open() -> None:
    known = Known(("a1", A, 9), ("a2", A, 8), ("a3", A, 7), ("b1", B, 9))
    known.answer(known.ask(typed("m5.large")), "a1")
    assert zones(known.types()) == {"on-demand": {A, B}, "spot": {A, B}}


def test_044_all_of_them_close_it() -> None:
    known = Known(("a1", A, 9), ("a2", A, 8), ("a3", A, 7), ("b1", B, 9))
    for id_ in ("a1", "a2", "a3"):
        known.answer(known.ask(typed("m5.large")), id_)
    assert zones(known.types()) == {"on-demand": {B}, "spot": {B}}


def test_045_its_sibling_is_named_though_it_has_fewer_addresses() -> None:
    known = Known(("a1", A, 90), ("a2", A, 8))
    first = known.ask(typed("m5.large"))
    assert subnets(first) == {"a1"}
    known.answer(first, "a1")
    assert subnets(known.ask(typed("m5.large"))) == {"a2"}


def test_045_after_a_while_it_is_tried_again_whatever_is_read_meanwhile() -> None:
    known = Known(("a1", A, 90), ("a2", A, 8))
    known.answer(known.ask(typed("m5.large")), "a1")
    known.resolve([Subnet("a1", A, "", 90), Subnet("a2", A, "", 7)], NOW + OUT_OF_STOCK / 2)
    assert subnets(known.ask(typed("m5.large"), at=NOW + OUT_OF_STOCK / 2)) == {"a2"}
    assert subnets(known.ask(typed("m5.large"), at=NOW + OUT_OF_STOCK)) == {"a1"}


# --- while addresses become few ---------------------------------------------------------------------------------
def few(*claims: Any) -> World:
    """Two subnets with 10 and 11 addresses, machines that take two each, and claims that want a call of their own."""
    world = prepared()
    rows = (Subnet("ten", "us-west-2a", "", 10), Subnet("eleven", "us-west-2a", "", 11))
    world.class_facts["default"] = changed(FACTS, subnets=rows)
    kind = large()
    world.facts["catalogues"] = {"default": (changed(kind, capacity=Resources({**kind.capacity, "pods": 2})),)}
    world.facts["resolved_at"] = {"default": world.now}
    world.settle()
    for one in claims:
        world.put(one)
    return world


def alone(name: str) -> Any:
    """A claim that shares its call with no other."""
    return node_claim(name, meta={"labels": {"karpenter.sh/nodepool": "default", "own": name}})


def named(world: World) -> dict[str, set[str]]:
    """The subnets of each call that was made, by the claim it was made for."""
    made = world.done(LaunchInstances)
    return {deed.claims[0]: {o.subnet_id for o in deed.request.overrides} for deed in made}


def test_018_each_launch_counts_for_the_next_before_ec2_has_been_asked_again() -> None:
    world = few(*(alone(name) for name in "abc"))
    world.settle()
    assert named(world) == {"a": {"eleven"}, "b": {"ten"}, "c": {"eleven"}}


def test_018_a_launch_of_several_counts_for_each_of_them() -> None:
    both = {"labels": {"karpenter.sh/nodepool": "default", "own": "both"}}
    world = few(node_claim("a", meta=both), node_claim("b", meta=both), alone("c"), alone("d"))
    world.settle()
    assert named(world) == {"a": {"eleven"}, "c": {"ten"}, "d": {"ten"}}


def test_018_so_does_what_has_been_launched_since() -> None:
    world = few(alone("a"))
    world.settle()
    (first,) = world.instances.values()
    world.instances[first.id] = changed(first, subnet_id="eleven")
    world.put(alone("b"))
    world.settle()
    assert named(world)["b"] == {"ten"}
    old = few(alone("a"))
    old.settle()
    (first,) = old.instances.values()
    old.instances[first.id] = changed(first, subnet_id="eleven", launched=old.now - timedelta(minutes=1))
    old.put(alone("b"))
    old.settle()
    assert named(old)["b"] == {"eleven"}, "what EC2 knew of when it was asked is in its numbers"


def test_019_what_a_call_that_failed_would_have_taken_is_free_again() -> None:
    world = few(alone("a"))
    world.given, world.errors = 0, (FleetError("UnauthorizedOperation", "no"),)
    world.settle()
    assert named(world) == {"a": {"eleven"}}
    world.put(alone("b"))
    world.settle()
    assert named(world)["b"] == {"eleven"}
