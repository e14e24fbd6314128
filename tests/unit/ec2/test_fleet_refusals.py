"""When there is no fleet request: a node class that is not usable, no types, requirements that nobody can read."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.ec2.launch import fleet
from kerf_api.v1 import conditions
from tests.unit.ec2.ec2_facts import NOW, claim, node_class
from tests.unit.ec2.fleet_requests import CLASS, problem


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
