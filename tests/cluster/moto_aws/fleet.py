"""CreateFleet of type `instant` as EC2 does it, where moto only ever launches the first override.

Source of each rule: EC2 API reference, CreateFleet, FleetLaunchTemplateOverrides, CreateFleetError; EC2 user guide,
"Allocation strategies" and "Instant fleets".
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import time
from dataclasses import dataclass
from typing import Any, Final

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.instance_types import INSTANCE_TYPES

from . import placement
from .market import Market, price, spot_price
from .reservations import left, target
from .world import World, backend

_serial = itertools.count(1)


@dataclass(frozen=True)
class Pool:
    """One override of one launch template: a type in a subnet."""

    config: dict[str, Any]
    override: dict[str, Any]
    template: Any
    data: dict[str, Any]
    instance_type: str
    zone: str
    price: int


@dataclass(frozen=True)
class Order:
    """A fleet request, read. `capacity_type` is `spot` or `on-demand`."""

    token: str
    digest: str
    capacity_type: str
    strategy: str
    count: int
    tags: dict[str, dict[str, str]]
    pools: list[Pool]


def create_fleet(world: World, market: Market, response: Any) -> dict[str, Any]:
    """The answer to one CreateFleet. Equal requests with one token get one answer; another request is refused."""
    response.error_on_dryrun()
    with world.settled():
        order = _read(response)
        named = [(pool.instance_type, pool.zone) for pool in order.pools]
        if len(set(named)) < len(named):
            text = "The fleet configuration contains duplicate instance pools."
            raise EC2ClientError("InvalidFleetConfig", text)
        if order.token in world.tokens:
            digest, answer = world.tokens[order.token]
            if digest != order.digest:
                # EC2 API reference, "Ensuring idempotency": same token, other parameters.
                raise EC2ClientError("IdempotentParameterMismatch", "The client token was used with other parameters.")
            return copy.deepcopy(answer)
        answer = _launch(world, market, response, order)
        if order.token:
            world.tokens[order.token] = (order.digest, copy.deepcopy(answer))
        return answer


def _read(response: Any) -> Order:
    parameters = {key: value for key, value in dict(response.params).items() if key not in ("DryRun",)}
    digest = hashlib.sha256(json.dumps(parameters, sort_keys=True, default=str).encode()).hexdigest()
    target = parameters["TargetCapacitySpecification"]
    spot = target.get("DefaultTargetCapacityType") == "spot"
    options = parameters.get("SpotOptions" if spot else "OnDemandOptions") or {}
    return Order(
        token=parameters.get("ClientToken", ""),
        digest=digest,
        capacity_type="spot" if spot else "on-demand",
        strategy=options.get("AllocationStrategy", "lowest-price"),
        count=int(target["TotalTargetCapacity"]),
        tags=_tags(parameters),
        pools=[pool for config in parameters["LaunchTemplateConfigs"] for pool in _pools(response, config, spot)],
    )


def _tags(parameters: dict[str, Any]) -> dict[str, dict[str, str]]:
    rows = parameters.get("TagSpecifications") or []
    return {row["ResourceType"]: {tag["Key"]: tag["Value"] for tag in row["Tags"]} for row in rows}


def _pools(response: Any, config: dict[str, Any], spot: bool) -> list[Pool]:
    """Raises InvalidLaunchTemplateName.NotFoundException or InvalidSubnetID.NotFound for the call as a whole."""
    ec2 = response.ec2_backend
    named = config["LaunchTemplateSpecification"]
    if "LaunchTemplateName" in named:
        template = ec2.get_launch_template_by_name(named["LaunchTemplateName"])
    else:
        template = ec2.get_launch_template(named["LaunchTemplateId"])
    pools = []
    for override in config.get("Overrides") or [{}]:
        zone = ec2.get_subnet(override["SubnetId"]).availability_zone
        kind = override["InstanceType"]
        cost = spot_price(kind, zone) if spot else price(kind)
        pools.append(Pool(config, override, template, template.latest_version().data, kind, zone, cost))
    return pools


def _launch(world: World, market: Market, response: Any, order: Order) -> dict[str, Any]:
    """Fill the order from the pools in turn; a pool that gives nothing is an error of its own.

    EC2 reports errors only of pools it tried, and falls back to the next one until the target is met.
    """
    fleet_id = f"fleet-{next(_serial):08d}-kerf"
    instances: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    left = order.count
    offered = market.offered(response.region)
    for pool in _ranked(order):
        if left == 0:
            break
        refusal = _refusal(response, pool, offered) or _unreserved(world, pool)
        room = _room(world, response, order, pool, left) if refusal is None else 0
        if room:
            ids = [_start(world, response, order, pool, fleet_id) for _ in range(room)]
            instances.append({**_about(order, pool), "InstanceIds": ids, "InstanceType": pool.instance_type})
            left -= room
        if refusal or room < min(left + room, order.count):
            code, message = refusal or _shortage(world, response, order, pool)
            errors.append({**_about(order, pool), "ErrorCode": code, "ErrorMessage": message})
    return {"FleetId": fleet_id, "Instances": instances, "Errors": errors}


def _ranked(order: Order) -> list[Pool]:
    """`lowest-price` by price, `prioritized` strategies by Priority (the lowest first), spot by its price.

    What spot capacity there is nobody outside EC2 knows: `price-capacity-optimized` here takes all pools as deep.
    """
    by_priority = "prioritized" in order.strategy
    return sorted(
        order.pools,
        key=lambda pool: (
            float(pool.override.get("Priority") or 0) if by_priority else pool.price,
            pool.instance_type,
            pool.zone,
            pool.override["SubnetId"],
        ),
    )


def _refusal(response: Any, pool: Pool, offered: frozenset[tuple[str, str]]) -> tuple[str, str] | None:
    """Why EC2 would never launch this pool. Source: EC2 API reference, error codes."""
    if (pool.instance_type, pool.zone) not in offered:
        text = f"Your requested instance type ({pool.instance_type}) is not supported in {pool.zone}."
        return "Unsupported", text
    image_id = pool.override.get("ImageId") or pool.data.get("ImageId")
    image = response.ec2_backend.amis.get(image_id)
    if image is None:
        return "InvalidAMIID.NotFound", f"The image id '[{image_id}]' does not exist"
    if image.architecture not in INSTANCE_TYPES[pool.instance_type]["ProcessorInfo"]["SupportedArchitectures"]:
        text = f"The architecture of {pool.instance_type} does not match the architecture '{image.architecture}'"
        return "InvalidParameterValue", f"{text} of the specified AMI."
    return no_profile(pool.data)


def _unreserved(world: World, pool: Pool) -> tuple[str, str] | None:
    """Why a reservation that the template names is not for this pool. Source: EC2 API reference, error codes."""
    id_ = target(pool.data)
    one = world.reservations.get(id_)
    if not id_ or (one is not None and (one.instance_type, one.zone) == (pool.instance_type, pool.zone)):
        return None
    return "InvalidCapacityReservationId.NotFound", f"The capacity reservation '{id_}' does not exist here"


def _profile(name: str) -> Any | None:
    profiles = backend("iam", "aws").instance_profiles.values()
    return next((one for one in profiles if one.name == name), None)


def no_profile(data: dict[str, Any]) -> tuple[str, str] | None:
    """Why the instance profile of a launch template will not do: there is none of this name."""
    name = data.get("IamInstanceProfile", {}).get("Name")
    if name is None or _profile(name) is not None:
        return None
    text = f"Value ({name}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
    return "InvalidParameterValue", text


def _room(world: World, response: Any, order: Order, pool: Pool, wanted: int) -> int:
    """How many instances this pool gives now: as stock and the subnet's free addresses allow."""
    addresses = response.ec2_backend.get_subnet(pool.override["SubnetId"]).available_ip_address_count
    wanted = min(wanted, _placeable(world, response, pool))
    held = world.reservations.get(target(pool.data))
    if held is not None:  # who has a machine reserved is never out of stock
        reserved: int = min(wanted, addresses, left(held, response.ec2_backend.all_instances()))
        return max(reserved, 0)
    out = world.stock(pool.instance_type, pool.zone, order.capacity_type)
    room: int = min(wanted, addresses, out.left if out else wanted)
    if out:
        out.left -= room
    return room


def _placeable(world: World, response: Any, pool: Pool) -> int:
    """How many more its placement group takes there."""
    placed = pool.data.get("Placement", {})
    return placement.room(world.placement_groups, placed, pool.zone, response.ec2_backend.all_instances())


#: Source: EC2 API reference, error codes.
_NO_CAPACITY: Final = "We currently do not have sufficient {type} capacity in the zone you requested ({zone})."
_TEXTS: Final = {
    "InsufficientFreeAddressesInSubnet": "There are not enough free addresses in subnet '{subnet}'.",
    "VcpuLimitExceeded": "The requested vCPU capacity exceeds the vCPU limit of this account.",
}


def _shortage(world: World, response: Any, order: Order, pool: Pool) -> tuple[str, str]:
    if _placeable(world, response, pool) <= 0:
        return "InstanceLimitExceeded", "You have reached the limit of instances in this spread placement group."
    if target(pool.data):
        return "ReservationCapacityExceeded", f"There is no capacity left in {target(pool.data)}."
    out = world.stock(pool.instance_type, pool.zone, order.capacity_type)
    if out is None:
        return "InsufficientFreeAddressesInSubnet", f"Not enough free addresses in {pool.override['SubnetId']}"
    return out.code, _TEXTS.get(out.code, _NO_CAPACITY).format(
        type=pool.instance_type, zone=pool.zone, subnet=pool.override.get("SubnetId", "")
    )


def _about(order: Order, pool: Pool) -> dict[str, Any]:
    """What every instance and error says of its pool."""
    template = {"LaunchTemplateId": pool.template.id, "Version": str(pool.template.latest_version_number)}
    return {
        "LaunchTemplateAndOverrides": {"LaunchTemplateSpecification": template, "Overrides": pool.override},
        "Lifecycle": order.capacity_type,
    }


def _start(world: World, response: Any, order: Order, pool: Pool, fleet_id: str) -> str:
    """One instance, with everything that its template says. Source: EC2 API reference, RequestLaunchTemplateData."""
    ec2, data = response.ec2_backend, pool.data
    interface = (data.get("NetworkInterfaces") or [{}])[0]
    tags = {**order.tags.get("instance", {}), "aws:ec2:fleet-id": fleet_id}
    reservation = ec2.run_instances(
        pool.override.get("ImageId") or data["ImageId"],
        1,
        data.get("UserData"),
        [],
        instance_type=pool.instance_type,
        is_instance_type_default=False,
        region_name=response.region,
        subnet_id=pool.override["SubnetId"],
        security_group_ids=list(interface.get("Groups") or data.get("SecurityGroupIds") or []),
        associate_public_ip=interface.get("AssociatePublicIpAddress"),
        launch_template={"LaunchTemplateId": pool.template.id, "Version": str(pool.template.latest_version_number)},
        metadata_options=data.get("MetadataOptions", {}),
        monitoring_state="enabled" if data.get("Monitoring", {}).get("Enabled") else "disabled",
        block_device_mappings=data.get("BlockDeviceMappings", []),
        tags={"instance": tags, "volume": order.tags.get("volume", {})},
    )
    instance = reservation.instances[0]
    _finish(world, ec2, order, pool, instance)
    return str(instance.id)


def _finish(world: World, ec2: Any, order: Order, pool: Pool, instance: Any) -> None:
    """What moto leaves out: zone ID, spot request, profile, and a state that starts as pending."""
    instance.placement.availability_zone_id = ec2.get_subnet(pool.override["SubnetId"]).availability_zone_id
    placed = pool.data.get("Placement", {})
    instance.placement.tenancy = placed.get("Tenancy", "default")
    placement.put(world.placement_groups, placed, instance, ec2.all_instances())
    kinds = [interface.get("InterfaceType", "interface") for interface in pool.data.get("NetworkInterfaces", [])]
    instance.interface_types = kinds or ["interface"]
    volumes = [mapping.get("Ebs", {}).get("VolumeSize", 0) for mapping in pool.data.get("BlockDeviceMappings", [])]
    instance.largest_volume_gib = max(volumes, default=0)
    instance.hypervisor = "xen"  # EC2 says so of Nitro instances too
    for interface in instance.nics.values():
        interface.delete_on_termination = True
    if order.capacity_type == "spot":
        instance.lifecycle = "spot"
        instance.spot_instance_request_id = f"sir-{next(_serial):08d}"
    if target(pool.data):
        instance.capacity_reservation_id = target(pool.data)
        instance.capacity_reservation_preference = "capacity-reservations-only"
    profile = _profile(pool.data.get("IamInstanceProfile", {}).get("Name", ""))
    if profile is not None:
        instance.iam_instance_profile = {"Arn": profile.arn, "Id": profile.id}
    if world.settings.pending:
        instance._state.name, instance._state.code = "pending", 0
        world.later(instance, world.settings.pending, "running", 16)
    if world.describe_delay:
        world.visible_at[instance.id] = time.monotonic() + world.describe_delay
