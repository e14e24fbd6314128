"""Interfaces for high-performance computing, interfaces that a class lists, tenancy, enclaves (22 to 25, 99 to 155)."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest

from kerf.aws.launch.fleets import result
from kerf.aws.launch.launch_templates import template_data
from kerf.ec2.instances import claim_labels, claim_status
from kerf.model.aws.cloud import FleetRequest, Instance
from kerf.model.aws.instance_type import InstanceType
from tests.unit.aws.catalogue.pods import BOUGHT, TYPE, asked, pod, row
from tests.unit.aws.catalogue.test_types import built, kept
from tests.unit.ec2.ec2_facts import NOW, catalogue, claim, info, node_class, one, ready
from tests.unit.ec2.fleet_requests import CLASS, names, request, typed

EFA, TENANCY = "vpc.amazonaws.com/efa", "karpenter.k8s.aws/instance-tenancy"
#: One that may have one such interface, one with four network cards of such interfaces, and one that may have none.
ONE, FOUR, NONE = "m5dn.24xlarge", "p4d.24xlarge", "m5.large"


def interface(card: int, device: int, kind: str = "interface") -> dict[str, Any]:
    return {"networkCardIndex": card, "deviceIndex": device, "interfaceType": kind}


def listing(*rows: dict[str, Any], **spec: Any) -> Any:
    """A class that lists these interfaces after its main one."""
    return node_class(networkInterfaces=[interface(0, 0), *rows], **spec)


ONLY = listing(interface(0, 1, "efa-only"))


def launch(name: str, of: Any = None, **requests: str) -> FleetRequest:
    base = of or node_class()
    wants = {"cpu": "1", **requests}
    return request(claim("a", typed(name), requests=wants), types=catalogue(name, of=base), node_class=ready(base))


def launched(found: FleetRequest) -> Instance:
    """The instance, as EC2's answer tells it."""
    override = found.overrides[0]
    of = {"Overrides": {"InstanceType": override.instance_type, "SubnetId": override.subnet_id}}
    return result(found, {"Instances": [{"InstanceIds": ["i-1"], "LaunchTemplateAndOverrides": of}]}, NOW).instances[0]


def promised(name: str, of: Any = None, **requests: str) -> tuple[str | None, str | None]:
    """What the claim says of such interfaces in its capacity and as allocatable."""
    status = claim_status(claim(), launched(launch(name, of, **requests)), one(name, of))
    return status["capacity"].get(EFA), status["allocatable"].get(EFA)


def interfaces(found: FleetRequest) -> list[dict[str, Any]]:
    return list(template_data(found.templates[0], "us-west-2")["NetworkInterfaces"])


# --- what is promised -------------------------------------------------------------------------------------------
def test_022_interfaces_that_were_asked_for_are_promised() -> None:
    assert promised(ONE, **{EFA: "1"}) == ("1", "1")
    assert promised(FOUR, **{EFA: "1"}) == ("4", "4")


def test_023_unrequested_interfaces_are_neither_made_nor_promised() -> None:
    assert promised(ONE) == (None, None)
    assert [row.get("InterfaceType") for row in interfaces(launch(ONE))] == [None]


def test_024_those_that_the_class_lists_are_promised_without_being_asked_for() -> None:
    assert promised(ONE, ONLY) == ("1", "1")


def test_025_where_the_class_lists_none_of_that_kind_none_is_promised() -> None:
    plain = listing(interface(0, 1))
    assert promised(ONE, plain) == (None, None)
    assert one(ONE, plain).capacity[EFA] == 0


def test_082_they_are_had_on_the_types_that_have_them() -> None:
    found = asked(pod(needs={EFA: "1"}))
    assert set(found.types) <= {"m6idn.32xlarge", "c6gn.16xlarge", ONE, FOUR}
    assert asked(pod(needs={EFA: "4"})).types == [FOUR]
    assert asked(pod(needs={EFA: "1"}), rows=[BOUGHT, row(TYPE, "In", NONE)]).pending == ("a",)


# --- pods, and what a type must have ----------------------------------------------------------------------------
def room(found: InstanceType) -> tuple[int, int]:
    return found.capacity["pods"], kept(found)["memory"] // 2**20 - 100


def test_099_one_on_the_first_card_takes_the_place_of_one_for_pods() -> None:
    plain, taken = one(FOUR), one(FOUR, ONLY)
    elsewhere = one(FOUR, listing(interface(1, 1, "efa-only")))
    addresses = info(FOUR).ipv4_per_interface
    assert plain.capacity["pods"] - taken.capacity["pods"] == addresses - 1
    assert room(taken) == (plain.capacity["pods"] - 49, room(plain)[1] - 11 * 49)
    assert room(elsewhere) == room(plain)


def available(name: str, *rows: dict[str, Any]) -> bool:
    found = one(name, listing(*rows))
    assert found.offerings, "it is listed in any case"
    return any(offering.available for offering in found.offerings)


@pytest.mark.parametrize(
    ("name", "rows", "fits"),
    [
        (NONE, [], True),
        (NONE, [interface(0, 2)], True),
        (NONE, [interface(0, 3)], False),
        (NONE, [interface(1, 0)], False),
        (NONE, [interface(0, 1, "efa-only")], False),
        (ONE, [interface(0, 1, "efa-only")], True),
        (ONE, [interface(0, 1, "efa-only"), interface(0, 2, "efa-only")], False),
        (FOUR, [interface(card, 1, "efa-only") for card in range(4)], True),
        (FOUR, [interface(4, 1, "efa-only")], False),
        ("t2.small", [], False),
    ],
)
def test_112_interfaces_that_a_type_cannot_have_close_it(name: str, rows: list[Any], fits: bool) -> None:
    assert available(name, *rows) is fits


def test_112_a_type_of_whose_cards_nothing_is_known_cannot_be_had() -> None:
    (found,) = built(changed(info(NONE), cards=()), of=listing())
    assert not [offering for offering in found.offerings if offering.available]


# --- what the template says -------------------------------------------------------------------------------------
@pytest.mark.parametrize("public", [True, False, None])
def test_148_each_interface_may_have_a_public_address(public: bool | None) -> None:
    spec: dict[str, Any] = {} if public is None else {"associatePublicIPAddress": public}
    of = node_class(**spec)
    found = interfaces(launch(FOUR, of, **{EFA: "1"}))
    assert [(row["NetworkCardIndex"], row["DeviceIndex"]) for row in found] == [(0, 0), (1, 1), (2, 1), (3, 1)]
    assert {row["InterfaceType"] for row in found} == {"efa"}
    assert {row.get("AssociatePublicIpAddress") for row in found} == {public}


def test_149_interfaces_for_computing_alone_have_no_addresses() -> None:
    main, only = interfaces(launch(ONE, listing(interface(0, 1, "efa-only"), ipPrefixCount=4)))
    assert (main["Ipv4PrefixCount"], "Ipv4PrefixCount" in only) == (4, False)
    assert {row["Ipv4PrefixCount"] for row in interfaces(launch(FOUR, node_class(ipPrefixCount=4), **{EFA: "1"}))} == {
        4
    }


@pytest.mark.parametrize("requests", [{}, {EFA: "1"}])
def test_155_what_the_class_lists_is_what_the_template_has(requests: dict[str, str]) -> None:
    found = interfaces(launch(ONE, ONLY, **requests))
    told = [(row["NetworkCardIndex"], row["DeviceIndex"], row["InterfaceType"]) for row in found]
    assert told == [(0, 0, "interface"), (0, 1, "efa-only")]


def test_126_another_number_of_them_is_another_template() -> None:
    assert launch(ONE).templates[0].name != launch(ONE, **{EFA: "1"}).templates[0].name


# --- enclaves, tenancy ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("resource", "enabled"),
    [("eks.amazonaws.com/nitro-sandbox", True), ("eks.amazonaws.com/nip-slots", True), ("example.com/other", False)],
)
def test_151_who_asks_for_enclaves_gets_a_machine_that_can_have_them(resource: str, enabled: bool) -> None:
    asking = claim("a", typed(NONE), requests={resource: "1"})
    types = tuple(changed(t, allocatable=type(t.allocatable)({**t.allocatable, resource: 4})) for t in catalogue(NONE))
    (made,) = request(asking, types=types).templates
    assert template_data(made, "us-west-2")["EnclaveOptions"] == {"Enabled": enabled}


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        (None, "default"),
        (["default"], "default"),
        (["dedicated", "default"], "default"),
        (["dedicated"], "dedicated"),
    ],
)
def test_108_hardware_is_shared_unless_only_ones_own_will_do(allowed: list[str] | None, expected: str) -> None:
    rows = [] if allowed is None else [(TENANCY, "In", allowed)]
    found = request(claim("a", typed(NONE), *rows))
    assert template_data(found.templates[0], "us-west-2")["Placement"] == {"Tenancy": expected}
    assert claim_labels(launched(found), one(NONE), CLASS)[TENANCY] == expected


def test_108_a_pool_may_say_so() -> None:
    found = asked(pod(), rows=[BOUGHT, row(TENANCY, "In", "dedicated"), row(TYPE, "In", NONE)])
    assert {made.tenancy for made in found.call.templates} == {"dedicated"}
    assert names(found.call) == [NONE]
