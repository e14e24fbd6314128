"""Identifiers of EC2 resources: a prefix, and 8 or 17 hexadecimal digits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .rule import GUIDE, LAUNCHES, Call, rule

_IDS: Final = f"{GUIDE}resource-ids.html"


def _malformed(prefix: str, *values: object) -> Iterator[str]:
    for value in values:
        if value is not None and not re.fullmatch(rf"{prefix}-([0-9a-f]{{8}}|[0-9a-f]{{17}})", str(value)):
            yield f'Invalid id: "{value}"'


@rule(
    *("ec2:DescribeInstances", "ec2:DescribeInstanceStatus", "ec2:TerminateInstances"),
    address=_IDS,
    code="InvalidInstanceID.Malformed",
)
def instance_id_form(call: Call) -> Iterator[str]:
    """An instance ID is i- and 8 or 17 hexadecimal digits."""
    yield from _malformed("i", *(call.parameters.get("InstanceIds") or ()))


@rule("ec2:CreateTags", address=_IDS, code="InvalidID")
def tagged_id_form(call: Call) -> Iterator[str]:
    """The ID of a resource is its prefix and 8 or 17 hexadecimal digits."""
    yield from _malformed("[a-z]+(-[a-z]+)*", *call.parameters.get("Resources", ()))


@rule(*LAUNCHES, address=_IDS, code="InvalidGroupId.Malformed")
def group_id_form(call: Call) -> Iterator[str]:
    """A security group ID is sg- and 8 or 17 hexadecimal digits."""
    yield from _malformed("sg", *(call.launch.get("SecurityGroupIds") or ()))
    yield from _malformed("sg", *(group for one in call.interfaces for group in one.get("Groups") or ()))


@rule(*LAUNCHES, "ec2:CreateFleet", address=_IDS, code="InvalidAMIID.Malformed")
def image_id_form(call: Call) -> Iterator[str]:
    """An image ID is ami- and 8 or 17 hexadecimal digits, or resolve:ssm: and a parameter."""
    images = [call.launch.get("ImageId"), *(one.get("ImageId") for one in call.overrides)]
    yield from _malformed("ami", *(one for one in images if one and not one.startswith("resolve:ssm:")))


@rule(*LAUNCHES, "ec2:CreateFleet", address=_IDS, code="InvalidSubnetID.Malformed")
def subnet_id_form(call: Call) -> Iterator[str]:
    """A subnet ID is subnet- and 8 or 17 hexadecimal digits."""
    yield from _malformed("subnet", call.launch.get("SubnetId"), *(one.get("SubnetId") for one in call.interfaces))
    yield from _malformed(
        "subnet", *(id_ for one in call.overrides for id_ in str(one.get("SubnetId", "")).split(",") if id_)
    )


@rule(*LAUNCHES, address=_IDS, code="InvalidSnapshotID.Malformed")
def snapshot_id_form(call: Call) -> Iterator[str]:
    """A snapshot ID is snap- and 8 or 17 hexadecimal digits."""
    yield from _malformed("snap", *(one.get("SnapshotId") for one in call.volumes))


@rule(*LAUNCHES, address=_IDS)
def placement_group_id_form(call: Call) -> Iterator[str]:
    """A placement group ID is pg- and 8 or 17 hexadecimal digits."""
    yield from _malformed("pg", (call.launch.get("Placement") or {}).get("GroupId"))


@rule("ec2:DescribePlacementGroups", address=_IDS)
def described_group_id_form(call: Call) -> Iterator[str]:
    """A placement group ID is pg- and 8 or 17 hexadecimal digits."""
    yield from _malformed("pg", *(call.parameters.get("GroupIds") or ()))


@rule(*LAUNCHES, address=_IDS, code="InvalidCapacityReservationId.Malformed")
def reservation_id_form(call: Call) -> Iterator[str]:
    """A capacity reservation ID is cr- and 8 or 17 hexadecimal digits."""
    target = (call.launch.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget") or {}
    yield from _malformed("cr", target.get("CapacityReservationId"))


@rule("ec2:DeleteLaunchTemplate", address=_IDS, code="InvalidLaunchTemplateId.Malformed")
def template_id_form(call: Call) -> Iterator[str]:
    """A launch template ID is lt- and 8 or 17 hexadecimal digits."""
    yield from _malformed("lt", call.parameters.get("LaunchTemplateId"))
