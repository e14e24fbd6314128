"""Drift: what a class would launch today, held against what runs (200 to 204)."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.drift.drift import drift_reason
from kerf.disruption.view import view
from kerf.ec2 import images
from kerf.ec2.nodeclass import drift, nodeclass
from kerf.model.aws.cloud import CapacityReservation, HeldReservation, Instance
from kerf.model.plan import Source
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from tests.unit.disruption import worlds as w
from tests.unit.ec2.ec2_facts import facts, node_class
from tests.unit.ec2.ec2_facts import images as published
from tests.unit.ec2.test_drift import CA, CLASS, HASH, TYPES, instance, launched, stamped, without


def verdict(one: Any = None, of: EC2NodeClass = CLASS, machine: Instance | None = None) -> str | None:
    return drift.reason(one or launched(), of, machine or instance(), TYPES, CA)


OLD = launched(image="ami-0")
STRANGE = instance(groups=("sg-9",), subnet="subnet-z")


@pytest.mark.parametrize(
    ("one", "machine", "expected"),
    [
        (None, None, ""),
        (OLD, None, "AMIDrift"),
        (None, instance(subnet="subnet-z"), "SubnetDrift"),
        (None, instance(groups=("sg-1",)), "SecurityGroupDrift"),
        (None, instance(groups=("sg-1", "sg-2", "sg-3")), "SecurityGroupDrift"),
        (launched("1", image="ami-0"), STRANGE, "NodeClassDrift"),
        (OLD, STRANGE, "AMIDrift"),
        (None, STRANGE, "SecurityGroupDrift"),
    ],
)
def test_200_what_differs_is_the_reason_and_of_several_the_first(one: Any, machine: Any, expected: str) -> None:
    assert verdict(one, machine=machine) == expected


def unnamed(key: str) -> Any:
    one = launched()
    return replace(
        one, metadata=replace(one.metadata, labels={k: v for k, v in one.metadata.labels.items() if k != key})
    )


@pytest.mark.parametrize(
    ("one", "of"),
    [
        (None, without(subnets=())),
        (None, without(security_groups=())),
        (None, without(amis=())),
        (unnamed(labels.INSTANCE_TYPE), CLASS),
        (launched(image=""), CLASS),
    ],
)
def test_201_where_one_side_is_not_known_there_is_no_verdict(one: Any, of: EC2NodeClass) -> None:
    assert verdict(one, of) is None


def test_201_nor_when_the_instance_is_gone() -> None:
    assert drift.reason(launched(), CLASS, None, TYPES, CA) is None
    lost = launched()
    nowhere = replace(lost, status=replace(lost.status, provider_id=""))
    assert drift.reason(nowhere, CLASS, None, TYPES, CA) is None


def test_201_what_is_known_to_differ_does_all_the_same() -> None:
    assert verdict(OLD, without(subnets=())) == "AMIDrift"
    assert verdict(None, without(amis=()), instance(subnet="subnet-z")) == "SubnetDrift"


def test_202_only_the_image_that_would_be_taken_now_counts() -> None:
    newer = published("20261201")
    both = (*published(), *(changed(one, id=f"{one.id}9", created="2026-12-01") for one in newer))
    of = without(amis=images.listed(both))
    assert verdict(launched(image="ami-19"), of) == ""
    assert verdict(launched(image="ami-1"), of) == "AMIDrift"
    kept = without(amis=(*of.status.amis, *CLASS.status.amis))
    assert verdict(launched(image="ami-1"), kept) == "AMIDrift"


@pytest.mark.parametrize(
    "spec",
    [
        {"userData": "#!/bin/bash"},
        {"tags": {"a": "b"}},
        {"kubelet": {"maxPods": 9}},
        {"metadataOptions": {"httpTokens": "optional"}},
        {"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "9Gi"}}]},
        {"instanceStorePolicy": "RAID0"},
        {"detailedMonitoring": True},
        {"associatePublicIPAddress": True},
        {"context": "x"},
        {"role": "Other"},
    ],
)
def test_203_another_static_field_is_another_class(spec: dict[str, Any]) -> None:
    edited = stamped(replace(node_class(**spec), status=CLASS.status))
    assert verdict(None, edited) == "NodeClassDrift"


def test_203_hashes_are_compared_when_all_are_there_and_of_one_version() -> None:
    for one, of in (
        (launched("1", version="v5"), CLASS),
        (launched("", version="v6"), CLASS),
        (launched("1", version=""), CLASS),
        (launched("1"), replace(CLASS, metadata=replace(CLASS.metadata, annotations={}))),
        (launched(HASH), CLASS),
    ):
        assert verdict(one, of) == ""


# --- reservations -----------------------------------------------------------------------------------------------
def selecting(*ids: str) -> EC2NodeClass:
    rows = tuple(CapacityReservation(id_, "m5.large", "us-west-2a", 1) for id_ in ids)
    return without(capacity_reservations=nodeclass.reservations(rows))


HELD = changed(instance(), reservation=HeldReservation(id="cr-1"), capacity_type="reserved")


def test_204_a_reservation_that_is_selected_no_more_is_drift_unless_the_machine_has_left_it() -> None:
    assert verdict(None, selecting("cr-2"), HELD) == "CapacityReservationDrift"
    assert verdict(None, selecting("cr-1"), HELD) == ""
    assert verdict(None, selecting("cr-2"), changed(HELD, reservation=None)) == ""


@pytest.mark.parametrize(("later", "expected"), [(1, "CapacityReservationDrift"), (-1, None)])
def test_204_instances_are_listed_again_before_that_is_reported(later: int, expected: str | None) -> None:
    own = w.claim("1")
    own = replace(own, spec=replace(own.spec, node_class_ref=launched().spec.node_class_ref))
    notes = {**own.metadata.annotations, **launched().metadata.annotations}
    own = replace(own, metadata=replace(own.metadata, annotations=notes), status=replace(own.status, image_id="ami-1"))
    world = w.snapshot(
        [w.pool(), own, selecting("cr-2")],
        instances={"i-1": HELD},
        catalogues={"default": TYPES},
        resolved_at={"default": w.NOW},
        fresh_at=dict.fromkeys(Source, w.NOW) | {Source.INSTANCES: w.NOW + later * w.MINUTE},
    )
    assert drift_reason(view(world), own, w.pool()) == expected
    assert facts().generation == 1
