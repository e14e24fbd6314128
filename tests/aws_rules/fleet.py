"""CreateFleet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .rule import API, Call, Parameters, both, given, outside, rule

FLEET: Final = "ec2:CreateFleet"
_FLEET: Final = f"{API}CreateFleet.html"
_OVERRIDES: Final = f"{API}FleetLaunchTemplateOverridesRequest.html"
_ON_DEMAND: Final = f"{API}OnDemandOptionsRequest.html"
_SPOT: Final = f"{API}SpotOptionsRequest.html"
_RESERVED: Final = f"{API}ReservedCapacityOptionsRequest.html"
#: Source: Placement, "This parameter is not supported for CreateFleet".
_NOT_HERE: Final = (
    *("Affinity", "AvailabilityZone", "AvailabilityZoneId", "HostId", "HostResourceGroupArn"),
    *("PartitionNumber", "Tenancy"),
)


def _type(call: Call) -> str:
    return str(call.parameters.get("Type", "maintain"))


def _options(call: Call) -> list[Parameters]:
    return [call.parameters[name] for name in ("SpotOptions", "OnDemandOptions") if call.parameters.get(name)]


def _target(call: Call) -> Parameters:
    found: Parameters = call.parameters.get("TargetCapacitySpecification") or {}
    return found


@rule(FLEET, address=f"{API}FleetLaunchTemplateConfigRequest.html")
def fleet_overrides(call: Call) -> Iterator[str]:
    """For fleets of type request and maintain, a maximum of 300 overrides is allowed across all launch templates."""
    if _type(call) != "instant" and len(call.overrides) > 300:
        yield f"{len(call.overrides)} overrides"


@rule(FLEET, address=f"{API}FleetLaunchTemplateSpecificationRequest.html", code="InvalidParameterCombination")
def fleet_template_name(call: Call) -> Iterator[str]:
    """A fleet names each launch template by its ID or by its name, not by both."""
    for config in call.parameters.get("LaunchTemplateConfigs") or ():
        if len(given(config.get("LaunchTemplateSpecification") or {}, "LaunchTemplateId", "LaunchTemplateName")) != 1:
            yield "one of LaunchTemplateId and LaunchTemplateName is needed"


@rule(FLEET, address=f"{API}FleetLaunchTemplateSpecificationRequest.html", code="MissingParameter")
def fleet_template_version(call: Call) -> Iterator[str]:
    """A fleet must name the version of each launch template: a number, $Latest or $Default."""
    for config in call.parameters.get("LaunchTemplateConfigs") or ():
        version = str((config.get("LaunchTemplateSpecification") or {}).get("Version", ""))
        if version not in ("$Latest", "$Default") and not version.isdigit():
            yield f"the version is {version!r}"


@rule(FLEET, address=_OVERRIDES, code="InvalidParameterCombination")
def override_zone(call: Call) -> Iterator[str]:
    """An override names a zone by AvailabilityZone or by AvailabilityZoneId, not by both."""
    for one in call.overrides:
        yield from both(one, "AvailabilityZone", "AvailabilityZoneId")


@rule(FLEET, address=_OVERRIDES, code="InvalidParameterCombination")
def override_type(call: Call) -> Iterator[str]:
    """An override has an instance type or instance requirements, not both."""
    for one in call.overrides:
        yield from both(one, "InstanceType", "InstanceRequirements")


@rule(FLEET, address=_OVERRIDES)
def override_subnet(call: Call) -> Iterator[str]:
    """An override of a fleet of type instant can have only one subnet ID."""
    for one in call.overrides:
        if _type(call) == "instant" and "," in str(one.get("SubnetId", "")):
            yield f"subnets {one['SubnetId']}"


@rule(FLEET, address=_OVERRIDES)
def override_priority(call: Call) -> Iterator[str]:
    """The priority of an override starts at 0."""
    for one in call.overrides:
        if one.get("Priority", 0) < 0:
            yield f"priority {one['Priority']}"


@rule(FLEET, address=_OVERRIDES)
def override_max_price(call: Call) -> Iterator[str]:
    """A maximum price must be more than USD 0.001."""
    for one in call.overrides:
        if "MaxPrice" in one and float(one["MaxPrice"]) <= 0.001:
            yield f"MaxPrice {one['MaxPrice']}"


@rule(FLEET, address=f"{API}Placement.html", code="InvalidParameterCombination")
def override_placement(call: Call) -> Iterator[str]:
    """CreateFleet supports no zone, affinity, host, partition number and tenancy in the placement of an override."""
    for one in call.overrides:
        for name in given(one.get("Placement") or {}, *_NOT_HERE):
            yield f"Placement.{name} is not supported here"


@rule(FLEET, address=_ON_DEMAND, code="InvalidParameterCombination")
def instant_only_options(call: Call) -> Iterator[str]:
    """A single type, a single zone, a minimum target and capacity reservation options need a fleet of type instant."""
    names = ("SingleInstanceType", "SingleAvailabilityZone", "MinTargetCapacity", "CapacityReservationOptions")
    for options in _options(call):
        if _type(call) != "instant":
            yield from (f"{name} with type {_type(call)}" for name in given(options, *names))


@rule(FLEET, address=_ON_DEMAND)
def minimum_target(call: Call) -> Iterator[str]:
    """A minimum target capacity is 1000 at most, and needs a single instance type or a single zone."""
    for options in _options(call):
        yield from outside(options, "MinTargetCapacity", 0, 1000)
        if "MinTargetCapacity" in options and not (
            options.get("SingleInstanceType") or options.get("SingleAvailabilityZone")
        ):
            yield "MinTargetCapacity without SingleInstanceType or SingleAvailabilityZone"


@rule(FLEET, address=_SPOT, code="InvalidParameterCombination")
def spot_pools(call: Call) -> Iterator[str]:
    """The number of Spot pools is supported only with the allocation strategy lowest-price."""
    options = call.parameters.get("SpotOptions") or {}
    if "InstancePoolsToUseCount" in options and options.get("AllocationStrategy", "lowest-price") != "lowest-price":
        yield f"InstancePoolsToUseCount with {options['AllocationStrategy']}"


@rule(FLEET, address=f"{API}FleetSpotCapacityRebalanceRequest.html", code="InvalidParameterCombination")
def spot_rebalancing(call: Call) -> Iterator[str]:
    """Capacity rebalancing is for fleets of type maintain; a termination delay is 120 to 7200 seconds."""
    options = call.parameters.get("SpotOptions") or {}
    rebalance = (options.get("MaintenanceStrategies") or {}).get("CapacityRebalance")
    if rebalance:
        if _type(call) != "maintain":
            yield f"CapacityRebalance with type {_type(call)}"
        yield from outside(rebalance, "TerminationDelay", 120, 7200)
        if (rebalance.get("ReplacementStrategy") == "launch-before-terminate") != ("TerminationDelay" in rebalance):
            yield "TerminationDelay goes with launch-before-terminate"


@rule(FLEET, address=_RESERVED, code="InvalidParameterCombination")
def reserved_capacity(call: Call) -> Iterator[str]:
    """Reserved capacity options need the target type reserved-capacity and a fleet of type instant."""
    if call.parameters.get("ReservedCapacityOptions"):
        if _target(call).get("DefaultTargetCapacityType") != "reserved-capacity":
            yield f"ReservedCapacityOptions with target type {_target(call).get('DefaultTargetCapacityType')}"
        if _type(call) != "instant":
            yield f"ReservedCapacityOptions with type {_type(call)}"


@rule(FLEET, address=f"{API}FleetCapacityReservationTargetRequest.html", code="InvalidParameterCombination")
def reserved_capacity_target(call: Call) -> Iterator[str]:
    """The target of reserved capacity is capacity reservation IDs or a resource group ARN, not both."""
    options = call.parameters.get("ReservedCapacityOptions") or {}
    yield from both(
        options.get("CapacityReservationTarget") or {}, "CapacityReservationIds", "CapacityReservationResourceGroupArns"
    )


@rule(FLEET, address=_FLEET, code="InvalidParameterCombination")
def maintain_only(call: Call) -> Iterator[str]:
    """Excess capacity termination and the replacement of unhealthy instances are for fleets of type maintain."""
    if _type(call) != "maintain":
        names = given(call.parameters, "ExcessCapacityTerminationPolicy", "ReplaceUnhealthyInstances")
        yield from (f"{name} with type {_type(call)}" for name in names)


@rule(FLEET, address=f"{API}TargetCapacitySpecificationRequest.html", code="InvalidParameterCombination")
def target_unit(call: Call) -> Iterator[str]:
    """A unit of the target capacity needs instance requirements in the overrides."""
    if _target(call).get("TargetCapacityUnitType") and not any("InstanceRequirements" in one for one in call.overrides):
        yield "TargetCapacityUnitType without InstanceRequirements"


@rule(FLEET, address=f"{API}FleetData.html")
def fleet_token(call: Call) -> Iterator[str]:
    """The client token of a fleet has a maximum of 64 ASCII characters."""
    token = str(call.parameters.get("ClientToken", ""))
    if len(token) > 64 or not token.isascii():
        yield f"the client token has {len(token)} characters"
