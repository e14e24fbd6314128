"""Fleet requests: which types, zones and prices a launch may choose from, and when there is none."""

from __future__ import annotations

import itertools
from dataclasses import replace as copy
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from api import labels
from api.resources import Resources
from api.v1 import conditions, meta
from api.v1.nodeclaim import NodeClaim
from reconciler.ec2 import fleet
from reconciler.ec2.fleet import FleetProblem, equal_launch
from reconciler.model.cloud import CapacityReservation, FleetRequest, Subnet
from reconciler.model.instance_type import Catalogue
from tests.unit.ec2 import ec2_facts
from tests.unit.ec2.ec2_facts import (
    CLUSTER,
    NOW,
    SETTINGS,
    ZONES,
    all_names,
    catalogue,
    claim,
    facts,
    node_class,
    ready,
)

TYPE, CAPACITY_TYPE, ZONE = labels.INSTANCE_TYPE, labels.CAPACITY_TYPE, labels.ZONE
CLASS = ready(node_class())
GENERIC = ("c5.large", "m5.large", "m5.xlarge", "m7g.large", "r5.large", "t3.large")


def planned(*claims: NodeClaim, types: Catalogue | None = None, **changes: Any) -> FleetRequest | FleetProblem:
    given: dict[str, Any] = {
        "pool": None,
        "node_class": CLASS,
        "catalogue": catalogue(*GENERIC) if types is None else types,
        "cluster": CLUSTER,
        "settings": SETTINGS,
        "out_of_stock": {},
        "now": NOW,
        **changes,
    }
    return fleet.plan(claims or (claim(),), **given)


def request(*claims: NodeClaim, **changes: Any) -> FleetRequest:
    found = planned(*claims, **changes)
    assert isinstance(found, FleetRequest), found
    return found


def problem(*claims: NodeClaim, **changes: Any) -> FleetProblem:
    found = planned(*claims, **changes)
    assert isinstance(found, FleetProblem), found
    return found


def names(found: FleetRequest) -> list[str]:
    return list(dict.fromkeys(override.instance_type for override in found.overrides))


BOTH = (CAPACITY_TYPE, "In", ["spot", "on-demand"])


def typed(*wanted: str) -> tuple[str, str, list[str]]:
    return (TYPE, "In", list(wanted))


def repriced(name: str, *rows: tuple[str, str, list[str]]) -> NodeClaim:
    """A claim that was planned with the prices of NodeOverlays."""
    made = claim(name, *rows)
    notes = {**made.metadata.annotations, labels.PRICE_OVERLAY: "true"}
    return replace(made, metadata=replace(made.metadata, annotations=notes))


# --- the request ------------------------------------------------------------------------------------------------
def test_one_override_for_each_zone_ordered_by_price() -> None:
    found = request(claim("a", typed("m5.large", "c5.large")))
    assert [(o.instance_type, o.zone, o.price, o.subnet_id) for o in found.overrides] == [
        (name, zone, price, f"subnet-{zone[-1]}")
        for name, price in (("c5.large", 85000), ("m5.large", 96000))
        for zone in ZONES
    ]
    assert found.capacity_type == "on-demand"
    assert {o.image_id for o in found.overrides} == {"ami-1"}


def test_the_content_of_a_launch() -> None:
    spec = {
        "tags": {"team": "platform", "Name": "mine"},
        "detailedMonitoring": True,
        "associatePublicIPAddress": False,
        "ipPrefixCount": 2,
        "connectionTracking": {"udpTimeout": 45},
        "cpuOptions": {"nestedVirtualization": "disabled"},
        "context": "ctx",
    }
    found = request(claim("a", typed("m5.large"), labels={"team": "x"}), node_class=ready(node_class(**spec)))
    (template,) = found.templates
    assert template.instance_profile == "demo_1"
    assert template.security_group_ids == ("sg-1", "sg-2")
    assert template.detailed_monitoring is True
    assert template.associate_public_ip_address is False
    assert template.ip_prefix_count == 2
    assert template.connection_tracking is not None
    assert template.nested_virtualization == "disabled"
    assert template.ipv6 is False
    assert template.network_interfaces == ()
    assert template.capacity_reservations == "none"
    assert [m.device_name for m in template.block_device_mappings] == ["/dev/xvda"]
    assert "karpenter.sh/capacity-type=on-demand,karpenter.sh/do-not-sync-taints=true" in template.user_data
    assert "maxPods: 29" in template.user_data
    tags = {
        "Name": "mine",
        "eks:eks-cluster-name": "demo",
        "karpenter.k8s.aws/ec2nodeclass": "default",
        "karpenter.sh/nodepool": "default",
        "kubernetes.io/cluster/demo": "owned",
        "team": "platform",
    }
    assert template.tags == tags
    assert found.tags == {**tags, "kerf.sh/launch-group": found.group}
    assert found.context == "ctx"


def test_an_ipv6_cluster_gives_ipv6_interfaces() -> None:
    found = request(claim("a", typed("m5.large")), cluster=copy(CLUSTER, dns_ip="fd00::a"))
    assert found.templates[0].ipv6 is True


def test_interfaces_of_the_class_reach_the_template() -> None:
    rows = [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}]
    found = request(claim("a", typed("m5.large")), node_class=ready(node_class(networkInterfaces=rows)))
    assert [i.interface_type for i in found.templates[0].network_interfaces] == ["interface"]


def test_without_the_gate_nothing_is_said_of_reservations_and_the_template_is_another() -> None:
    one = claim("a", typed("m5.large"))
    shut = copy(SETTINGS, gates=copy(SETTINGS.gates, reserved_capacity=False))
    with_gate, without = request(one).templates[0], request(one, settings=shut).templates[0]
    assert without.capacity_reservations == ""
    assert with_gate.name != without.name


def test_templates_differ_by_image_and_pod_count_and_are_named_by_content() -> None:
    found = request(claim("a", typed("m5.large", "c5.large", "m5.xlarge", "m7g.large")))
    shapes = {(t.image_id, "maxPods: 58" in t.user_data) for t in found.templates}
    assert shapes == {("ami-1", False), ("ami-1", True), ("ami-4", False)}
    assert len(found.templates) == 3
    assert all(t.name.startswith("karpenter.k8s.aws/") and t.name[18:].isdigit() for t in found.templates)
    by_name = {t.name: t for t in found.templates}
    for override in found.overrides:
        expected = "maxPods: 58" if override.instance_type == "m5.xlarge" else "maxPods: 29"
        assert expected in by_name[override.template].user_data
        assert override.image_id == by_name[override.template].image_id


def test_template_names_follow_the_content() -> None:
    def name(one: NodeClaim | None = None, **spec: Any) -> str:
        of = ready(node_class(**spec))
        return request(one or claim("a", typed("m5.large")), node_class=of).templates[0].name

    base = name()
    assert name() == base
    assert name(claim("another", typed("m5.large"))) == base, "a claim's identity is no content"
    assert name(claim("a", typed("m5.large", "c5.large"))) == base, "nor is the list of types"
    others = [
        name(detailedMonitoring=True),
        name(tags={"a": "b"}),
        name(userData="#!/bin/bash"),
        name(kubelet={"cpuManagerPolicy": "static"}),
        name(metadataOptions={"httpTokens": "optional"}),
        name(ipPrefixCount=1),
        name(claim("a", typed("m5.large"), labels={"x": "y"})),
        name(claim("a", typed("m5.large"), taints=[{"key": "a", "effect": "NoSchedule"}])),
        name(claim("a", typed("m5.large"), BOTH)),
    ]
    renamed = replace(CLASS, metadata=replace(CLASS.metadata, name="other"))
    others.append(request(claim("a", typed("m5.large")), node_class=renamed).templates[0].name)
    assert len({base, *others}) == len(others) + 1


def test_members_and_group() -> None:
    a, b = claim("default-a"), claim("default-b")
    found = request(b, a)
    assert found.members == ("default-a", "default-b")
    assert found == request(a, b)
    groups = {
        found.group,
        request(a).group,
        request(a, b, attempt=1).group,
        request(a, claim("default-b", uid="reborn")).group,
    }
    assert len(groups) == 4
    assert all(len(group) == 32 for group in groups), "a client token holds 64 characters"


def test_the_same_whatever_the_order_of_the_catalogue() -> None:
    types = catalogue(*GENERIC)
    one = claim("a", BOTH)
    requests = {meta.msgspec.json.encode(request(one, types=rows)) for rows in itertools.permutations(types[:4])}
    assert len(requests) == 1


def test_the_subnet_with_most_free_addresses_of_each_zone() -> None:
    rows = (
        Subnet("subnet-1", ZONES[0], free_addresses=10),
        Subnet("subnet-2", ZONES[0], free_addresses=100),
        Subnet("subnet-3", ZONES[1], free_addresses=5),
    )
    found = request(claim("a", typed("m5.large")), node_class=ready(node_class(), facts(subnets=rows)))
    assert [o.subnet_id for o in found.overrides] == ["subnet-2", "subnet-3"]


def test_no_context_when_min_values_were_relaxed() -> None:
    of = ready(node_class(context="ctx"))
    assert request(claim(annotations={labels.MIN_VALUES_RELAXED: "true"}), node_class=of).context == ""
    assert request(claim(annotations={labels.MIN_VALUES_RELAXED: "false"}), node_class=of).context == "ctx"


@pytest.mark.parametrize(
    ("family", "devices"),
    [
        ("AL2", ["/dev/xvda"]),
        ("Bottlerocket", ["/dev/xvda", "/dev/xvdb"]),
        ("Windows2022", ["/dev/sda1"]),
        ("Custom", []),
    ],
)
def test_default_volumes(family: str, devices: list[str]) -> None:
    of = ready(node_class(family))
    found = request(claim("a", typed("m5.large")), node_class=of)
    assert [m.device_name for m in found.templates[0].block_device_mappings] == devices
    assert all(m.ebs is not None and m.ebs.encrypted for m in found.templates[0].block_device_mappings)


# --- filters ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (claim("a", (labels.ARCH, "In", ["arm64"])), ["m7g.large"]),
        (claim("a", requests={"memory": "14Gi"}), ["r5.large"]),
        (claim("a", requests={"cpu": "3"}), ["m5.xlarge"]),
        (claim("a", ("karpenter.k8s.aws/instance-cpu", "Gt", ["2"])), ["m5.xlarge"]),
        (claim("a", ("example.com/mine", "In", ["x"]), typed("m5.large")), ["m5.large"]),
    ],
)
def test_types_must_meet_requirements_and_hold_the_requests(one: NodeClaim, expected: list[str]) -> None:
    assert names(request(one)) == expected


@pytest.mark.parametrize(
    "one",
    [
        claim("a", typed("x1.huge")),
        claim("a", requests={"cpu": "64"}),
        claim("a", requests={"nvidia.com/gpu": "1"}),
        claim("a", (ZONE, "In", ["us-west-2z"])),
        claim("a", (labels.OS, "In", ["windows"])),
        claim("a", ("karpenter.k8s.aws/instance-gpu-count", "Exists", [])),
    ],
)
def test_nothing_that_fits_is_a_lack_of_capacity(one: NodeClaim) -> None:
    found = problem(one)
    assert (found.kind, found.reason) == (fleet.CAPACITY, "InsufficientCapacity")
    assert found.message == "all requested instance types were unavailable during launch"


def test_zone_and_zone_id_restrict_the_offerings() -> None:
    assert {o.zone for o in request(claim("a", (ZONE, "In", [ZONES[1]]))).overrides} == {ZONES[1]}
    assert {o.zone for o in request(claim("a", (labels.ZONE_ID, "In", ["usw2-az3"]))).overrides} == {ZONES[2]}


def test_what_is_out_of_stock_is_not_asked_for() -> None:
    later, earlier = NOW + timedelta(minutes=1), NOW - timedelta(minutes=1)
    stock = {
        ("m5.large", ZONES[0], "on-demand"): later,
        ("m5.large", ZONES[1], "on-demand"): earlier,
        ("m5.large", ZONES[2], "spot"): later,
    }
    found = request(claim("a", typed("m5.large")), out_of_stock=stock)
    assert [o.zone for o in found.overrides] == [ZONES[1], ZONES[2]]
    gone = {("m5.large", zone, "on-demand"): later for zone in ZONES}
    assert problem(claim("a", typed("m5.large")), out_of_stock=gone).kind == fleet.CAPACITY


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((), "on-demand"),
        ((BOTH,), "spot"),
        (((CAPACITY_TYPE, "In", ["on-demand"]),), "on-demand"),
        (((CAPACITY_TYPE, "In", ["reserved", "on-demand"]),), "on-demand"),
        (((CAPACITY_TYPE, "Exists", []),), "spot"),
    ],
)
def test_the_capacity_type(rows: tuple[Any, ...], expected: str) -> None:
    found = request(claim("a", *rows))
    assert found.capacity_type == expected
    assert {t.capacity_type for t in found.templates} == {expected}


def test_a_claim_that_says_nothing_of_the_capacity_type_gets_on_demand_or_nothing() -> None:
    gone = {(name, zone, "on-demand"): NOW + timedelta(minutes=1) for name in GENERIC for zone in ZONES}
    assert problem(claim("a"), out_of_stock=gone).kind == fleet.CAPACITY
    assert request(claim("a", BOTH), out_of_stock=gone).capacity_type == "spot"


def test_on_demand_when_spot_is_out_of_stock() -> None:
    later = NOW + timedelta(minutes=1)
    stock = {(name, zone, "spot"): later for name in GENERIC for zone in ZONES}
    assert request(claim("a", BOTH), out_of_stock=stock).capacity_type == "on-demand"


EXOTIC = ("g5.xlarge", "inf2.xlarge", "m5.metal", "m5.large")


def test_exotic_types_only_where_nothing_else_will_do() -> None:
    types = catalogue(*EXOTIC)
    assert names(request(claim(), types=types)) == ["m5.large"]
    assert names(request(claim("a", typed("m5.metal")), types=types)) == ["m5.metal"]
    assert names(request(claim("a", requests={"nvidia.com/gpu": "1"}), types=types)) == ["g5.xlarge"]
    least = claim("a", (TYPE, "In", list(EXOTIC)), min_values={TYPE: 2})
    assert set(names(request(least, types=types))) == set(EXOTIC)


def test_an_offering_with_a_capacity_of_its_own_is_named_for_what_only_it_holds() -> None:
    extra = Resources({"example.com/extra": 2})
    types = tuple(
        copy(t, offerings=tuple(copy(o, capacity=extra) if o.zone == ZONES[1] else o for o in t.offerings))
        for t in catalogue("m5.large", "c5.large")
    )
    found = request(claim("a", requests={"example.com/extra": "1"}), types=types)
    assert {(o.instance_type, o.zone) for o in found.overrides} == {("c5.large", ZONES[1]), ("m5.large", ZONES[1])}
    assert {o.zone for o in request(claim(), types=types).overrides} == set(ZONES)
    assert problem(claim("a", requests={"example.com/extra": "3"}), types=types).kind == fleet.CAPACITY


def test_a_claim_with_the_prices_of_overlays_is_launched_by_their_order_and_with_its_like() -> None:
    assert request(repriced("a")).prioritized
    assert not request(claim()).prioritized
    assert equal_launch(repriced("a")) == equal_launch(repriced("b")) != equal_launch(claim("c"))


def dear_spot(*dear: str) -> Catalogue:
    """Spot of these types at twice the on-demand price of an m5.large."""
    rows = catalogue("m5.large", "c5.large")
    return tuple(
        copy(
            t,
            offerings=tuple(
                copy(o, price=192_000) if t.name in dear and o.capacity_type == "spot" else o for o in t.offerings
            ),
        )
        for t in rows
    )


def test_spot_dearer_than_the_cheapest_on_demand_is_left_out() -> None:
    assert names(request(claim("a", BOTH), types=dear_spot("m5.large"))) == ["c5.large"]
    assert request(claim("a", BOTH), types=dear_spot("m5.large", "c5.large")).capacity_type == "on-demand"
    level = tuple(
        copy(t, offerings=tuple(copy(o, price=85_000) if o.capacity_type == "spot" else o for o in t.offerings))
        for t in catalogue("m5.large", "c5.large")
    )
    assert request(claim("a", BOTH), types=level).capacity_type == "spot", "an equal price is not dearer"
    only_spot = claim("a", (CAPACITY_TYPE, "In", ["spot"]))
    assert names(request(only_spot, types=dear_spot("m5.large"))) == ["c5.large", "m5.large"]
    least = claim("a", BOTH, typed("m5.large", "c5.large"), min_values={TYPE: 2})
    assert names(request(least, types=dear_spot("m5.large"))) == ["c5.large", "m5.large"]


def test_the_cheapest_sixty_types() -> None:
    types = catalogue(*all_names())
    found = request(claim("a", (labels.ARCH, "In", ["amd64"])), types=types)
    assert len(names(found)) == 60
    cheapest = sorted(
        (min(o.price for o in t.offerings if o.available and o.capacity_type == "on-demand"), t.name)
        for t in types
        if "metal" not in t.name
        and t.requirements[labels.ARCH].values == {"amd64"}
        and any(o.available and o.capacity_type == "on-demand" for o in t.offerings)
        and t.allocatable["memory"] >= 0
    )
    assert sorted(names(found)) == sorted(name for _, name in cheapest[:60])


def test_never_more_overrides_than_ec2_takes() -> None:
    zones = tuple(f"us-west-2{letter}" for letter in "abcdef")
    rows = tuple(Subnet(f"subnet-{zone}", zone) for zone in zones)
    infos = ec2_facts.region(*all_names()[:200], zones=zones)
    types = ec2_facts.build(node_class(), facts(subnets=rows), infos, SETTINGS)
    found = request(types=types, node_class=ready(node_class(), facts(subnets=rows)))
    assert len(found.overrides) == 300
    assert [o.price for o in found.overrides] == sorted(o.price for o in found.overrides)


SHAPES = (
    *(
        "t3.nano",
        "t3.small",
        "t3.medium",
        "t3.large",
        "m5.large",
        "m5.xlarge",
        "m5.4xlarge",
        "m5.24xlarge",
        "m7a.medium",
    ),
    *("t4g.nano", "t4g.small", "t4g.medium", "t4g.large", "m7g.large", "m7g.xlarge", "m7g.4xlarge", "m7g.16xlarge"),
)


def test_a_request_fits_into_an_annotation() -> None:
    of = ready(node_class(userData="#!/bin/bash\n" + "x" * 16000))
    one = claim("a", typed(*SHAPES))
    found = request(one, types=catalogue(*SHAPES), node_class=of)
    assert len(meta.msgspec.json.encode(found)) < 256 * 1024
    assert {o.template for o in found.overrides} == {t.name for t in found.templates}
    roomy = request(one, types=catalogue(*SHAPES))
    assert len(roomy.templates) > len(found.templates) > 5
    assert found.overrides[0].price == roomy.overrides[0].price, "the cheapest are kept"


# --- minValues --------------------------------------------------------------------------------------------------
FAMILY = "karpenter.k8s.aws/instance-family"


def test_min_values() -> None:
    enough = claim("a", (FAMILY, "Exists", []), typed(*GENERIC), min_values={FAMILY: 3, TYPE: 4})
    assert len(names(request(enough))) == 6
    few = copy(SETTINGS, max_instance_types=2)
    found = problem(enough, settings=few)
    assert found.kind == fleet.CAPACITY
    assert "truncating instance types" in found.message
    assert len(names(request(enough, settings=copy(few, min_values_policy="BestEffort")))) == 2


# --- refusals ---------------------------------------------------------------------------------------------------
def with_ready(status: str, *, generation: int = 1, message: str = "") -> Any:
    rows = conditions.put((), "Ready", status, "Because", generation=generation, now=NOW, message=message)
    return replace(CLASS, status=replace(CLASS.status, conditions=rows))


def without(**changes: Any) -> Any:
    return replace(CLASS, status=replace(CLASS.status, **changes))


@pytest.mark.parametrize(
    ("of", "kind", "reason", "message"),
    [
        (with_ready("False", message="SubnetsReady=False"), "not_ready", "NodeClassNotReady", "SubnetsReady=False"),
        (with_ready("Unknown"), "create", "NodeClassReadinessUnknown", "NodeClass is in Ready=Unknown"),
        (node_class(), "create", "NodeClassReadinessUnknown", "NodeClass is in Ready=Unknown"),
        (with_ready("True", generation=0), "not_ready", "NodeClassNotReady", "changed"),
        (
            replace(CLASS, spec=replace(CLASS.spec, tags={"kubernetes.io/cluster/x": "owned"})),
            "not_ready",
            "NodeClassNotReady",
            "kubernetes.io/cluster/x",
        ),
        (without(instance_profile=""), "not_ready", "NodeClassNotReady", "instance profile"),
        (without(subnets=()), "create", "SubnetResolutionFailed", "no subnets found"),
        (without(security_groups=()), "create", "LaunchFailed", "no security groups found"),
        (without(amis=()), "create", "LaunchFailed", "no capacity offerings"),
        (
            replace(CLASS, metadata=replace(CLASS.metadata, deletion_timestamp=NOW)),
            "capacity",
            "NodeClassTerminating",
            "deleted",
        ),
        (
            replace(CLASS, spec=replace(CLASS.spec, user_data="MIME-Version: 1.0\nContent-Type: multipart/mixed\n\nx")),
            "create",
            "LaunchFailed",
            "MIME",
        ),
    ],
)
def test_a_class_that_cannot_be_launched_from(of: Any, kind: str, reason: str, message: str) -> None:
    found = problem(node_class=of)
    assert (found.kind, found.reason) == (kind, reason)
    assert message in found.message


def test_no_types_at_all() -> None:
    assert problem(types=()).reason == "InstanceTypeResolutionFailed"


def test_a_malformed_requirement_is_a_problem_and_no_crash() -> None:
    found = problem(claim("a", ("karpenter.k8s.aws/instance-cpu", "Gt", ["many"])))
    assert (found.kind, found.reason) == (fleet.CREATE, "LaunchFailed")


# --- equal launches ---------------------------------------------------------------------------------------------
def test_equal_launches() -> None:
    base = claim("a", BOTH, typed("m5.large"))
    assert equal_launch(base) == equal_launch(claim("b", typed("m5.large"), BOTH))
    others = [
        claim("a", BOTH),
        claim("a", BOTH, typed("m5.large"), requests={"cpu": "2"}),
        claim("a", BOTH, typed("m5.large"), labels={"x": "y"}),
        claim("a", BOTH, typed("m5.large"), taints=[{"key": "a", "effect": "NoSchedule"}]),
        claim("a", BOTH, typed("m5.large"), startupTaints=[{"key": "a", "effect": "NoSchedule"}]),
        claim("a", BOTH, typed("m5.large"), min_values={TYPE: 2}),
        claim("a", BOTH, typed("m5.large"), annotations={labels.MIN_VALUES_RELAXED: "true"}),
    ]
    assert len({equal_launch(base), *map(equal_launch, others)}) == len(others) + 1


# --- capacity reservations ----------------------------------------------------------------------------------------
BLOCK: dict[str, Any] = {"type": "capacity-block"}
TAKEN_BACK: dict[str, Any] = {"interruptible": True}


def held(id_: str, name: str = "m5.large", zone: str = ZONES[0], left: int = 1, **kind: Any) -> CapacityReservation:
    return CapacityReservation(id_, name, zone, left, **kind)


def reserved(*rows: CapacityReservation, wanted: Any = (), **changes: Any) -> FleetRequest:
    """The request of a claim that allows everything, in a region with these reservations."""
    types = catalogue(*GENERIC, reservations=rows)
    return request(claim("a", (CAPACITY_TYPE, "Exists", []), *wanted), types=types, **changes)


def into(found: FleetRequest) -> list[tuple[str, str, str]]:
    """Type, zone and reservation of each override, sorted."""
    return sorted((o.instance_type, o.zone, one.id if (one := found.reservation(o)) else "") for o in found.overrides)


def test_what_is_reserved_is_launched_before_anything_is_bought() -> None:
    """Each reservation has a template of its own, and its machines run there or not at all."""
    found = reserved(held("cr-1"), held("cr-2", "c5.large", ZONES[1], **BLOCK), held("cr-3", "c5.large", ZONES[2]))
    assert found.capacity_type == "reserved"
    assert into(found) == [("c5.large", ZONES[2], "cr-3"), ("m5.large", ZONES[0], "cr-1")]
    assert {template.capacity_reservations for template in found.templates} == {"capacity-reservations-only"}
    assert {template.reservation.id for template in found.templates if template.reservation} == {"cr-1", "cr-3"}
    assert all("karpenter.sh/capacity-type=reserved" in template.user_data for template in found.templates)


def test_a_claim_that_was_planned_on_a_reservation_goes_there() -> None:
    rows = [held("cr-1", left=5), held("cr-2"), held("cr-3", "c5.large")]
    wanted = ((labels.RESERVATION_ID, "In", ["cr-2"]),)
    found = reserved(*rows, wanted=wanted)
    assert into(found) == [("m5.large", ZONES[0], "cr-2")]
    gone = {("m5.large", ZONES[0], "cr-2"): NOW + timedelta(minutes=1)}
    types = catalogue(*GENERIC, reservations=tuple(rows))
    assert problem(claim("a", RESERVED, *wanted), types=types, out_of_stock=gone).kind == fleet.CAPACITY


RESERVED = (CAPACITY_TYPE, "In", ["reserved"])


def test_of_reservations_of_a_type_in_a_zone_the_roomiest() -> None:
    found = reserved(held("cr-1", left=2), held("cr-2", left=3), held("cr-3", left=3), held("cr-4", zone=ZONES[1]))
    assert into(found) == [("m5.large", ZONES[0], "cr-2"), ("m5.large", ZONES[1], "cr-4")]


@pytest.mark.parametrize(
    ("rows", "chosen"),
    [
        ([held("cr-1", **TAKEN_BACK), held("cr-2", **BLOCK), held("cr-3")], ["cr-3"]),
        ([held("cr-1", **TAKEN_BACK), held("cr-2", **BLOCK)], ["cr-2"]),
        ([held("cr-1", **BLOCK), held("cr-2", "c5.large", **BLOCK), held("cr-3", zone=ZONES[1], **BLOCK)], ["cr-2"]),
        ([held("cr-1", **TAKEN_BACK), held("cr-2", "c5.large", **TAKEN_BACK)], ["cr-1", "cr-2"]),
    ],
)
def test_one_call_is_about_one_kind_of_reservation(rows: list[CapacityReservation], chosen: list[str]) -> None:
    """At one price the ordinary kind first; a capacity block is one machine's type and zone."""
    assert sorted(id_ for _, _, id_ in into(reserved(*rows))) == chosen


@pytest.mark.parametrize("left", [0, 1])
def test_without_reserved_capacity_the_launch_is_one_like_others(left: int) -> None:
    """Nothing is left, or the claim does not allow it."""
    plain = claim("a", BOTH if left else (CAPACITY_TYPE, "Exists", []))
    found = request(plain, types=catalogue(*GENERIC, reservations=(held("cr-1", left=left),)))
    assert found == request(plain)


def test_claims_of_one_reservation_share_a_call() -> None:
    rows = (RESERVED, (labels.RESERVATION_ID, "In", ["cr-1"]))
    types = catalogue(*GENERIC, reservations=(held("cr-1", left=2),))
    found = request(claim("a", *rows), claim("b", *rows), types=types)
    assert (found.members, found.sold("m5.large", ZONES[0])) == (("a", "b"), ("m5.large", ZONES[0], "cr-1"))
    assert request(claim("a")).sold("m5.large", ZONES[0]) == ("m5.large", ZONES[0], "on-demand")
