"""Launch parameters of launch templates and of RunInstances, interfaces and volumes apart."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final

from .rule import API, GUIDE, LAUNCHES, Call, both, given, outside, rule

TEMPLATE: Final = "ec2:CreateLaunchTemplate"
_DATA: Final = f"{API}RequestLaunchTemplateData.html"
MOST_USER_DATA: Final = 16 * 1024


@rule(TEMPLATE, address=f"{API}FleetLaunchTemplateSpecificationRequest.html", code="InvalidLaunchTemplateName")
def template_name(call: Call) -> Iterator[str]:
    """A launch template name has 3 to 128 letters, digits and ( ) . - / _ characters."""
    name = str(call.parameters.get("LaunchTemplateName", ""))
    if not re.fullmatch(r"[a-zA-Z0-9().\-/_]{3,128}", name):
        yield f"the name is {name[:140]!r}"


@rule(TEMPLATE, address=f"{API}CreateLaunchTemplate.html")
def template_token(call: Call) -> Iterator[str]:
    """The client token of a launch template has a maximum of 128 ASCII characters."""
    token = str(call.parameters.get("ClientToken", ""))
    if len(token) > 128 or not token.isascii():
        yield f"the client token has {len(token)} characters"


@rule(*LAUNCHES, address=f"{GUIDE}user-data.html", code="InvalidUserData.Malformed")
def user_data(call: Call) -> Iterator[str]:
    """User data is limited to 16 KB, in raw form, before it is base64-encoded."""
    text = call.launch.get("UserData") or ""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        yield "it is not base64"
    else:
        if len(raw) > MOST_USER_DATA:
            yield f"User data is limited to {MOST_USER_DATA} bytes"


@rule(*LAUNCHES, address=f"{API}LaunchTemplateInstanceMetadataOptionsRequest.html")
def hop_limit(call: Call) -> Iterator[str]:
    """The hop limit of the metadata service is 1 to 64."""
    yield from outside(call.launch.get("MetadataOptions") or {}, "HttpPutResponseHopLimit", 1, 64)


@rule(*LAUNCHES, address=f"{API}Placement.html", code="InvalidParameterCombination")
def placement_group(call: Call) -> Iterator[str]:
    """A placement names its group by ID or by name, not by both."""
    yield from both(call.launch.get("Placement") or {}, "GroupId", "GroupName")


@rule(*LAUNCHES, address=f"{API}LaunchTemplatePlacementRequest.html", code="InvalidParameterCombination")
def placement_zone(call: Call) -> Iterator[str]:
    """A placement names its zone by AvailabilityZone or by AvailabilityZoneId, not by both."""
    yield from both(call.launch.get("Placement") or {}, "AvailabilityZone", "AvailabilityZoneId")


@rule(*LAUNCHES, address=f"{API}LaunchTemplatePlacementRequest.html", code="InvalidParameterCombination")
def placement_partition(call: Call) -> Iterator[str]:
    """A partition number is valid only in a placement group of strategy partition."""
    placed = call.launch.get("Placement") or {}
    if "PartitionNumber" in placed and not given(placed, "GroupId", "GroupName"):
        yield "PartitionNumber without a placement group"


@rule(*LAUNCHES, address=f"{GUIDE}placement-strategies.html")
def placement_partitions(call: Call) -> Iterator[str]:
    """A placement group has a maximum of seven partitions in each zone; they are numbered from 1."""
    yield from outside(call.launch.get("Placement") or {}, "PartitionNumber", 1, 7)


@rule(*LAUNCHES, address=f"{API}LaunchTemplatePlacementRequest.html", code="InvalidParameterCombination")
def placement_host_group(call: Call) -> Iterator[str]:
    """With a host resource group the tenancy is left out, or is host."""
    placed = call.launch.get("Placement") or {}
    if placed.get("HostResourceGroupArn") and placed.get("Tenancy", "host") != "host":
        yield f"HostResourceGroupArn with tenancy {placed['Tenancy']}"


@rule(*LAUNCHES, address=f"{API}LaunchTemplateEnclaveOptionsRequest.html", code="InvalidParameterCombination")
def enclaves_and_hibernation(call: Call) -> Iterator[str]:
    """Nitro Enclaves and hibernation cannot be enabled on one instance."""
    enclaves, sleep = call.launch.get("EnclaveOptions") or {}, call.launch.get("HibernationOptions") or {}
    if enclaves.get("Enabled") and sleep.get("Configured"):
        yield "EnclaveOptions.Enabled with HibernationOptions.Configured"


@rule(*LAUNCHES, address=f"{API}CreditSpecificationRequest.html")
def cpu_credits(call: Call) -> Iterator[str]:
    """CPU credits are standard or unlimited."""
    credits_ = call.launch.get("CreditSpecification") or {}
    if credits_.get("CpuCredits", "standard") not in ("standard", "unlimited"):
        yield f"CpuCredits {credits_['CpuCredits']}"


@rule(*LAUNCHES, address=f"{API}LaunchTemplateCpuOptionsRequest.html")
def threads_per_core(call: Call) -> Iterator[str]:
    """A core has one thread or two."""
    yield from outside(call.launch.get("CpuOptions") or {}, "ThreadsPerCore", 1, 2)


@rule(TEMPLATE, address=_DATA, code="InvalidParameterCombination")
def template_type(call: Call) -> Iterator[str]:
    """A launch template has an instance type or instance requirements, not both."""
    yield from both(call.launch, "InstanceType", "InstanceRequirements")


@rule(*LAUNCHES, address=f"{API}LaunchTemplateSpotMarketOptionsRequest.html")
def spot_price(call: Call) -> Iterator[str]:
    """A maximum Spot price must be more than USD 0.001."""
    options = (call.launch.get("InstanceMarketOptions") or {}).get("SpotOptions") or {}
    if "MaxPrice" in options and float(options["MaxPrice"]) <= 0.001:
        yield f"MaxPrice {options['MaxPrice']}"


@rule(*LAUNCHES, address=f"{API}LaunchTemplateSpotMarketOptionsRequest.html", code="InvalidParameterCombination")
def spot_validity(call: Call) -> Iterator[str]:
    """An end date is supported only for persistent Spot requests."""
    options = (call.launch.get("InstanceMarketOptions") or {}).get("SpotOptions") or {}
    if options.get("ValidUntil") and options.get("SpotInstanceType") != "persistent":
        yield "ValidUntil without SpotInstanceType persistent"


@rule(*LAUNCHES, address=f"{API}LaunchTemplatesMonitoringRequest.html", code="InvalidParameterCombination")
def monitored_metrics(call: Call) -> Iterator[str]:
    """Metric categories need detailed monitoring."""
    monitoring = call.launch.get("Monitoring") or {}
    if monitoring.get("MetricCategoryIds") and not monitoring.get("Enabled"):
        yield "MetricCategoryIds without Enabled"


@rule(*LAUNCHES, address=f"{API}LaunchTemplateBlockDeviceMappingRequest.html")
def virtual_device(call: Call) -> Iterator[str]:
    """The name of a virtual device is ephemeral and a number from 0."""
    for one in call.launch.get("BlockDeviceMappings") or ():
        if "VirtualName" in one and not re.fullmatch(r"ephemeral\d+", one["VirtualName"]):
            yield f"VirtualName {one['VirtualName']}"
