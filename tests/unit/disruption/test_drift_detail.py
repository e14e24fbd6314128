"""What a drifted claim says of the field that it drifted by."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.drift import drift_detail as detail
from kerf.disruption.drift.conditions import conditions
from kerf.disruption.view import view
from kerf.model.aws.cloud import HeldReservation, Instance
from kerf.model.plan import PatchObject
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool, Template
from tests.unit.disruption.worlds import HOUR, LOST, NOW, claim, node, pool, snapshot

HASHES = {labels.NODEPOOL_HASH: "new", labels.NODEPOOL_HASH_VERSION: "v3"}


def templated(meta: dict[str, Any] | None = None, **spec: Any) -> NodePool:
    own = pool(annotations=HASHES)
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}
    template = decode(Template, {"metadata": meta or {}, "spec": {"nodeClassRef": ref, **spec}})
    return replace(own, spec=replace(own.spec, template=template))


TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
OTHER_CLASS = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "other"}


@pytest.mark.parametrize(
    ("made", "now", "text"),
    [
        ({}, templated({"labels": {"version": "2"}}), "label version was not there, now '2'"),
        ({}, templated({"labels": {labels.NODEPOOL: "else"}}), f"label {labels.NODEPOOL} was 'default', now 'else'"),
        ({}, templated({"annotations": {"note": "x"}}), "annotation note was not there, now 'x'"),
        ({}, templated(taints=[TAINT]), "taints has got team=a:NoSchedule"),
        ({"taints": [TAINT]}, templated(), "taints has lost team=a:NoSchedule"),
        ({"taints": [TAINT]}, templated(taints=[{**TAINT, "value": "b"}]), "taints has lost team=a:NoSchedule and"),
        ({"startupTaints": [TAINT]}, templated(), "startupTaints has lost team=a:NoSchedule"),
        ({}, templated(nodeClassRef=OTHER_CLASS), "nodeClassRef was EC2NodeClass default, now EC2NodeClass other"),
        ({}, templated(expireAfter="24h"), "expireAfter was 720h, now 24h"),
        ({"terminationGracePeriod": "1h"}, templated(), "terminationGracePeriod was 1h, now not there"),
        ({"terminationGracePeriod": "1h"}, templated(terminationGracePeriod="60m"), LOST),
        ({"expireAfter": "?"}, templated(), "expireAfter was ?, now 720h"),
    ],
)  # fmt: skip
def test_the_field_of_the_template_is_named_with_both_sides(made: dict[str, Any], now: NodePool, text: str) -> None:
    assert text in detail.of_template(claim(**made), now)


def test_several_fields_are_all_named() -> None:
    text = detail.of_template(claim(), templated({"labels": {"a": "1"}}, expireAfter="24h"))
    assert text == "label a was not there, now '1'; expireAfter was 720h, now 24h"


@pytest.mark.parametrize(
    ("requirement", "text"),
    [
        ({"key": labels.ZONE, "operator": "In", "values": ["us-west-2b"]},
         "label topology.kubernetes.io/zone is 'us-west-2a', the NodePool requires topology.kubernetes.io/zone In"),
        ({"key": "team", "operator": "Exists"}, "label team is not there, the NodePool requires team Exists"),
    ],
)  # fmt: skip
def test_the_label_outside_the_requirements_is_named(requirement: dict[str, Any], text: str) -> None:
    wanted = view(snapshot([pool(requirements=[requirement])])).requirements_of(pool(requirements=[requirement]))
    assert wanted is not None
    assert text in detail.of_requirements(wanted, claim().metadata.labels)


def test_the_type_that_is_gone_is_named_with_its_zone_and_capacity_type() -> None:
    assert detail.of_type(claim()) == "m5.large in us-west-2a as on-demand is not offered any more"
    bare = replace(claim(), metadata=replace(claim().metadata, labels={}))
    assert detail.of_type(bare) == "without a label in any zone as anything is not offered any more"


def test_both_sides_of_what_ec2_has_are_named() -> None:
    status = {"amis": [{"id": "ami-2"}], "securityGroups": [{"id": "sg-2"}, {"id": "sg-1"}]}
    own = decode(EC2NodeClass, {"metadata": {"name": "default"}, "spec": {}, "status": status})
    made = claim()
    made = replace(made, status=replace(made.status, image_id="ami-1"))
    held = Instance(
        id="i-a",
        state="running",
        instance_type="m5.large",
        zone="us-west-2a",
        capacity_type="on-demand",
        image_id="ami-1",
        launched=NOW,
        security_group_ids=("sg-9",),
        subnet_id="subnet-9",
        reservation=HeldReservation(id="cr-9"),
    )
    assert detail.of_provider(made, own, held, "pg-0near") == {
        "NodeClassDrift": "the spec of EC2NodeClass default has changed",
        "AMIDrift": "the image is ami-1, EC2NodeClass default has ami-2",
        "SecurityGroupDrift": "security groups are sg-9, now sg-1, sg-2",
        "SubnetDrift": "subnet subnet-9 is not selected any more",
        "CapacityReservationDrift": "reservation cr-9 is not selected any more",
        "PlacementGroupDrift": "the placement group is none, now pg-0near",
    }
    assert set(detail.of_provider(made, own, None, "")) == {"NodeClassDrift", "AMIDrift", "PlacementGroupDrift"}


def test_the_condition_says_it_and_follows_when_the_pool_changes_again() -> None:
    made = claim(drifted=NOW - HOUR)

    def message(now: NodePool) -> list[str]:
        plan = conditions(view(snapshot([now, made, node(made)])))
        rows = [row for a in plan.actions if isinstance(a, PatchObject) for row in a.patch["status"]["conditions"]]
        return [row["message"] for row in rows if row["type"] == "Drifted"]

    assert message(templated()) == []
    assert message(templated({"labels": {"version": "2"}})) == ["label version was not there, now '2'"]
    plan = conditions(view(snapshot([templated(expireAfter="24h"), made, node(made)]), None))
    (patch,) = (a for a in plan.actions if isinstance(a, PatchObject))
    (row,) = (row for row in patch.patch["status"]["conditions"] if row["type"] == "Drifted")
    assert row["lastTransitionTime"] == (NOW - timedelta(hours=1)).isoformat().replace("+00:00", "Z")
