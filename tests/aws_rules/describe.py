"""Describe operations of EC2: page sizes, and filters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from .model import service_model
from .rule import API, Call, rule

#: Operations that take filters by tags although their documentation does not list them. Source: Karpenter, which sends
#: such filters (pkg/providers/capacityreservation/types.go, read 2026-11-26).
_TAGGED: Final = frozenset({"DescribeCapacityReservations"})
_BY_TAGS: Final = frozenset({"tag", "tag-key"})
#: Every operation of EC2 with filters that Kerf calls.
DESCRIBES: Final = tuple(
    f"ec2:Describe{name}"
    for name in (
        *("CapacityReservations", "Images", "InstanceStatus", "InstanceTypeOfferings", "InstanceTypes", "Instances"),
        *("LaunchTemplates", "PlacementGroups", "SecurityGroups", "SpotPriceHistory", "Subnets"),
    )
)
_NAME: Final = re.compile(r"<code>([^<]+)</code>")
_ITEM: Final = re.compile(r"<li>(.*?)</li>", re.DOTALL)
_ALIAS: Final = re.compile(r"use <code>([A-Za-z.-]+)</code> as the filter name")


@cache
def filter_names(operation: str) -> frozenset[str]:
    """The names of the filters that the documentation of an operation lists; `tag` stands for `tag:<key>`."""
    shape: Any = service_model("ec2").operation_model(operation).input_shape.members["Filters"]
    text = shape.documentation
    first = (_NAME.search(item) for item in _ITEM.findall(text))
    names = {one[1].partition(":")[0] for one in first if one is not None}
    return frozenset(names).union(_ALIAS.findall(text), _BY_TAGS if operation in _TAGGED else ())


@rule(*DESCRIBES, address=f"{API}Filter.html")
def filter_name(call: Call) -> Iterator[str]:
    """The name of a filter is one that the operation supports; names are case-sensitive."""
    known = filter_names(call.operation)
    for one in call.parameters.get("Filters") or ():
        name = str(one.get("Name", ""))
        kind, _, key = name.partition(":")
        if name == "tag" or (kind if kind == "tag" and key else name) not in known:
            yield f"The filter '{name}' is invalid"


@rule(*DESCRIBES, address=f"{API}Filter.html", code="MissingParameter")
def filter_values(call: Call) -> Iterator[str]:
    """A filter has a value at least."""
    for one in call.parameters.get("Filters") or ():
        if not one.get("Values"):
            yield f"filter {one.get('Name')!r} has no values"


@rule(
    *("ec2:DescribeInstances", "ec2:DescribeInstanceStatus"),
    address=f"{API}DescribeInstances.html",
    code="InvalidParameterCombination",
)
def page_size_of_ids(call: Call) -> Iterator[str]:
    """A page size and instance IDs cannot be in one request."""
    if call.parameters.get("InstanceIds") and call.parameters.get("MaxResults") is not None:
        yield "MaxResults with InstanceIds"


@rule("ec2:DescribeInstanceStatus", address=f"{API}DescribeInstanceStatus.html")
def status_ids(call: Call) -> Iterator[str]:
    """DescribeInstanceStatus takes a maximum of 100 instance IDs."""
    if len(call.parameters.get("InstanceIds") or ()) > 100:
        yield f"{len(call.parameters['InstanceIds'])} instance IDs"


@rule("ec2:DescribeImages", address=f"{API}DescribeImages.html")
def image_owners(call: Call) -> Iterator[str]:
    """The owner of an image is an account ID, self, amazon, aws-backup-vault or aws-marketplace."""
    for owner in call.parameters.get("Owners") or ():
        if not re.fullmatch(r"\d{12}|self|amazon|aws-backup-vault|aws-marketplace", owner):
            yield f"owner {owner!r}"
