"""Tags of EC2 resources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from .rule import API, Call, rule

TAGGING: Final = ("ec2:CreateFleet", "ec2:CreateLaunchTemplate", "ec2:RunInstances", "ec2:CreateTags")
_TAG: Final = f"{API}Tag.html"
MOST_TAGS: Final = 50
LONGEST_KEY: Final = 127
LONGEST_VALUE: Final = 256
#: Source: RequestLaunchTemplateData, TagSpecifications.
_OF_LAUNCHES: Final = frozenset({"instance", "volume", "network-interface", "spot-instances-request"})
#: Source: CreateFleet, TagSpecifications, fleets of type instant.
_OF_FLEETS: Final = frozenset({"fleet", "instance", "volume", "network-interface"})


@rule(*TAGGING, address=f"{API}CreateTags.html", code="TagLimitExceeded")
def tags_per_resource(call: Call) -> Iterator[str]:
    """Each resource can have a maximum of 50 tags."""
    for kind, rows in call.tags:
        if len(rows) > MOST_TAGS:
            yield f"{len(rows)} tags of {kind or 'the resources'}"


@rule(*TAGGING, address=_TAG)
def tag_key_prefix(call: Call) -> Iterator[str]:
    """Tag keys may not begin with aws:."""
    for _, rows in call.tags:
        for row in rows:
            if str(row.get("Key", "")).startswith("aws:"):
                yield f"tag key {row['Key']!r} has the reserved prefix"


@rule(*TAGGING, address=_TAG)
def tag_key_length(call: Call) -> Iterator[str]:
    """Tag keys accept a maximum of 127 Unicode characters."""
    for _, rows in call.tags:
        for row in rows:
            if not 1 <= len(row.get("Key", "")) <= LONGEST_KEY:
                yield f"tag key {row.get('Key', '')[:40]!r} has {len(row.get('Key', ''))} characters"


@rule(*TAGGING, address=_TAG)
def tag_value_length(call: Call) -> Iterator[str]:
    """Tag values accept a maximum of 256 Unicode characters."""
    for _, rows in call.tags:
        for row in rows:
            if len(row.get("Value", "")) > LONGEST_VALUE:
                yield f"the value of tag {row['Key']!r} has {len(row['Value'])} characters"


@rule(*TAGGING, address=f"{API}CreateTags.html")
def tag_keys_unique(call: Call) -> Iterator[str]:
    """Tag keys must be unique per resource."""
    for _, rows in call.tags:
        for key, count in Counter(row.get("Key") for row in rows).items():
            if count > 1:
                yield f"tag key {key!r} is there {count} times"


@rule("ec2:CreateTags", address=f"{API}CreateTags.html")
def tagged_resources(call: Call) -> Iterator[str]:
    """CreateTags takes up to 1000 resource IDs."""
    if len(call.parameters.get("Resources", ())) > 1000:
        yield f"{len(call.parameters['Resources'])} resources"


@rule("ec2:CreateLaunchTemplate", address=f"{API}CreateLaunchTemplate.html")
def template_tag_type(call: Call) -> Iterator[str]:
    """To tag the launch template, the resource type must be launch-template."""
    for row in call.parameters.get("TagSpecifications") or ():
        if row.get("ResourceType") != "launch-template":
            yield f"resource type {row.get('ResourceType')}"


@rule("ec2:CreateLaunchTemplate", address=f"{API}LaunchTemplateTagSpecificationRequest.html")
def launch_tag_types(call: Call) -> Iterator[str]:
    """A launch template tags instances, volumes, network interfaces and Spot Instance requests only."""
    for row in call.launch.get("TagSpecifications") or ():
        if row.get("ResourceType") not in _OF_LAUNCHES:
            yield f"resource type {row.get('ResourceType')}"


@rule("ec2:CreateFleet", address=f"{API}CreateFleet.html")
def fleet_tag_types(call: Call) -> Iterator[str]:
    """An instant fleet tags the fleet, instances, volumes and network interfaces; other fleets tag themselves only."""
    instant = call.parameters.get("Type") == "instant"
    for row in call.parameters.get("TagSpecifications") or ():
        if row.get("ResourceType") not in (_OF_FLEETS if instant else {"fleet"}):
            yield f"resource type {row.get('ResourceType')}"
