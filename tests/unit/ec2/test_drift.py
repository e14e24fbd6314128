"""Drift verdicts, their order, and when there is none."""

from __future__ import annotations

from dataclasses import replace as copy
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.ec2.images import listed
from kerf.ec2.nodeclass import drift, nodeclass
from kerf.model.aws.cloud import CapacityReservation, HeldReservation, Image, Instance
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.hashes import NODECLASS_HASH_VERSION, nodeclass_hash
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.ec2.ec2_facts import NOW, catalogue, claim, facts, node_class, ready

TYPES = catalogue("c5.large", "m5.large", "m7g.large")
CA = "Y2E="


def stamped(of: EC2NodeClass, hash_: str | None = None, version: str = NODECLASS_HASH_VERSION) -> EC2NodeClass:
    text = nodeclass_hash(of, CA) if hash_ is None else hash_
    notes = {labels.NODECLASS_HASH: text, labels.NODECLASS_HASH_VERSION: version}
    return replace(of, metadata=replace(of.metadata, annotations=notes))


CLASS = stamped(ready(node_class()))
HASH = nodeclass_hash(CLASS, CA)


def launched(
    hash_: str = HASH, version: str = NODECLASS_HASH_VERSION, image: str = "ami-1", **changes: Any
) -> NodeClaim:
    notes = {labels.NODECLASS_HASH: hash_, labels.NODECLASS_HASH_VERSION: version}
    found = claim(labels={labels.INSTANCE_TYPE: "m5.large"}, annotations=notes, **changes)
    return replace(found, status=replace(found.status, image_id=image, provider_id="aws:///us-west-2a/i-1"))


def instance(groups: tuple[str, ...] = ("sg-2", "sg-1"), subnet: str = "subnet-a") -> Instance:
    return Instance(
        "i-1",
        "m5.large",
        "us-west-2a",
        "running",
        "on-demand",
        NOW,
        subnet_id=subnet,
        security_group_ids=groups,
    )


def reason(one: NodeClaim, of: EC2NodeClass = CLASS, machine: Instance | None = None) -> str | None:
    return drift.reason(one, of, machine or instance(), TYPES, CA)


def test_nothing_has_drifted() -> None:
    assert reason(launched()) == ""


@pytest.mark.parametrize(
    ("one", "of", "expected"),
    [
        (launched("1"), CLASS, "NodeClassDrift"),
        (launched("1", version="v5"), CLASS, ""),
        (launched("1", version="v5"), stamped(CLASS, "2", "v5"), "NodeClassDrift"),
        (launched("", version=""), CLASS, ""),
        (launched("1"), replace(CLASS, metadata=replace(CLASS.metadata, annotations={})), ""),
        (launched(HASH), stamped(CLASS, "stale"), ""),
    ],
)
def test_the_hashes(one: NodeClaim, of: EC2NodeClass, expected: str | None) -> None:
    assert reason(one, of) == expected


def without(**changes: Any) -> EC2NodeClass:
    return replace(CLASS, status=replace(CLASS.status, **changes))


@pytest.mark.parametrize(
    ("one", "of", "expected"),
    [
        (launched(image="ami-0"), CLASS, "AMIDrift"),
        (launched(image="ami-4"), CLASS, "AMIDrift"),
        (launched(image=""), CLASS, None),
        (launched(image="ami-0"), without(amis=()), None),
    ],
)
def test_the_image(one: NodeClaim, of: EC2NodeClass, expected: str | None) -> None:
    assert reason(one, of) == expected


AMD_ONLY = (Image("ami-1", "amd", "amd64", "2026-01-01"),)


def arm(image: str = "ami-4") -> NodeClaim:
    one = launched(image=image)
    named = {**one.metadata.labels, labels.INSTANCE_TYPE: "m7g.large"}
    return replace(one, metadata=replace(one.metadata, labels=named))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "AMIDrift"),
        ({"images_complete": False}, None),
        ({"generation": 7}, None),
        ({"images": ()}, None),
        ({"problems": {"AMIsReady": ("AMIResolutionFailed", "no")}}, None),
        ({"images": (*AMD_ONLY, Image("ami-4", "arm", "arm64", "2026-01-01"))}, None),
    ],
)
def test_a_node_for_whose_architecture_the_class_has_no_image(changes: dict[str, Any], expected: str | None) -> None:
    """Its class selects images of amd64 alone, and AWS has answered in full."""
    found = copy(facts(images=AMD_ONLY), **changes)
    of = without(amis=listed(AMD_ONLY))
    assert drift.reason(arm(), of, instance(), TYPES, CA, found) == expected
    assert drift.reason(arm(), of, instance(), TYPES, CA) is None
    assert drift.reason(launched(), of, instance(), TYPES, CA, found) == ""


def test_a_type_that_is_no_longer_known_has_no_verdict() -> None:
    gone = launched(image="ami-0")
    named = {**gone.metadata.labels, labels.INSTANCE_TYPE: "m5.gone"}
    assert reason(replace(gone, metadata=replace(gone.metadata, labels=named))) is None
    unnamed = {k: v for k, v in gone.metadata.labels.items() if k != labels.INSTANCE_TYPE}
    assert reason(replace(gone, metadata=replace(gone.metadata, labels=unnamed))) is None


@pytest.mark.parametrize(
    ("machine", "of", "expected"),
    [
        (instance(groups=("sg-1",)), CLASS, "SecurityGroupDrift"),
        (instance(groups=("sg-1", "sg-2", "sg-3")), CLASS, "SecurityGroupDrift"),
        (instance(groups=()), CLASS, None),
        (instance(groups=("sg-9",)), without(security_groups=()), None),
        (instance(subnet="subnet-z"), CLASS, "SubnetDrift"),
        (instance(subnet=""), CLASS, None),
        (instance(subnet="subnet-z"), without(subnets=()), None),
        (instance(groups=("sg-9",), subnet="subnet-z"), CLASS, "SecurityGroupDrift"),
    ],
)
def test_groups_and_subnet(machine: Instance, of: EC2NodeClass, expected: str | None) -> None:
    assert reason(launched(), of, machine) == expected


@pytest.mark.parametrize(("listed", "expected"), [((), "CapacityReservationDrift"), (("cr-1", "cr-2"), "")])
def test_the_reservation(listed: tuple[str, ...], expected: str | None) -> None:
    """Of an instance that is in none nobody asks."""
    rows = tuple(CapacityReservation(id_, "m5.large", "us-west-2a", 1) for id_ in listed)
    of = without(capacity_reservations=nodeclass.reservations(rows))
    held = copy(instance(), reservation=HeldReservation(id="cr-1"))
    assert (reason(launched(), of, held), reason(launched(), of)) == (expected, "")
    assert reason(launched(), of, copy(held, subnet_id="subnet-z")) == "SubnetDrift"


def test_the_first_reason_counts() -> None:
    machine = instance(groups=("sg-9",), subnet="subnet-z")
    assert reason(launched("1", image="ami-0"), CLASS, machine) == "NodeClassDrift"
    assert reason(launched(image="ami-0"), CLASS, machine) == "AMIDrift"


def test_what_has_no_pool_or_a_class_that_goes_has_not_drifted_and_without_an_instance_nobody_knows() -> None:
    drifted = launched("1")
    orphan = replace(drifted, metadata=replace(drifted.metadata, labels={}))
    assert reason(orphan) == ""
    going = replace(CLASS, metadata=replace(CLASS.metadata, deletion_timestamp=NOW))
    assert reason(drifted, going) == ""
    assert drift.reason(launched(), CLASS, None, TYPES, CA) is None
    assert drift.reason(launched(image="ami-0"), CLASS, None, TYPES, CA) == "AMIDrift"
