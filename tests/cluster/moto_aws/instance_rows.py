"""One of moto's instances as DescribeInstances filters and writes it: moto itself takes ten milliseconds for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moto.ec2.utils import passes_filter_dict

_PLAIN = {
    "InstanceId": "id",
    "ImageId": "image_id",
    "InstanceType": "instance_type",
    "Architecture": "architecture",
    "SubnetId": "subnet_id",
    "Hypervisor": "hypervisor",
    "InstanceLifecycle": "lifecycle",
    "SpotInstanceRequestId": "spot_instance_request_id",
    "CapacityReservationId": "capacity_reservation_id",
    "IamInstanceProfile": "iam_instance_profile",
}
_PLACED = {
    "AvailabilityZone": "availability_zone",
    "AvailabilityZoneId": "availability_zone_id",
    "Tenancy": "tenancy",
    "GroupId": "group_id",
    "PartitionNumber": "partition_number",
}


def instance_row(instance: Any) -> dict[str, Any]:
    """Source: EC2 API reference, Instance."""
    row = {name: value for name, key in _PLAIN.items() if (value := getattr(instance, key, None))}
    placed = {name: value for name, key in _PLACED.items() if (value := getattr(instance.placement, key, None))}
    address = instance.private_ip if instance.nics else None
    if address:
        row |= {"PrivateIpAddress": address, "PrivateDnsName": instance.private_dns_name, "VpcId": instance.vpc_id}
    preference = getattr(instance, "capacity_reservation_preference", None)
    if preference:
        row["CapacityReservationSpecification"] = {"CapacityReservationPreference": preference}
    return {
        **row,
        "State": {"Code": instance.state_code, "Name": instance.state},
        "LaunchTime": instance.launch_time.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "Placement": placed,
        "SecurityGroups": [{"GroupId": group.id, "GroupName": group.name} for group in instance.security_groups],
        "Tags": [{"Key": key, "Value": value} for key, value in tags_of(instance).items()],
        "Monitoring": {"State": instance.monitoring_state},
        "MetadataOptions": _metadata(instance.metadata_options),
        "NetworkInterfaces": [{"InterfaceType": kind} for kind in getattr(instance, "interface_types", ["interface"])],
    }


def tags_of(instance: Any) -> dict[str, str]:
    """Its tags, straight from where moto keeps them: asking moto means a search through the tags of everything."""
    return dict(instance.ec2_backend.tags.get(instance.id, {}))


def filters_of(response: Any) -> list[tuple[str, list[str]]]:
    """All filters of a request. There may be two of one name, which moto takes for one."""
    return [(one["Name"], one.get("Values", [])) for one in response._get_param("Filters", [])]


def passes(instance: Any, filters: Sequence[tuple[str, Sequence[str]]]) -> bool:
    """Whether an instance passes all filters; those on tags and state are answered here."""
    tags = tags_of(instance)
    rest = {}
    for name, values in filters:
        if name == "tag-key":
            if not tags.keys() & set(values):
                return False
        elif name.startswith("tag:"):
            if tags.get(name[4:]) not in values:
                return False
        elif name == "instance-state-name":
            if instance.state not in values:
                return False
        else:
            rest[name] = values
    return not rest or bool(passes_filter_dict(instance, rest))


def _metadata(options: Any) -> dict[str, Any]:
    return {
        "State": options.state,
        "HttpTokens": options.http_tokens,
        "HttpEndpoint": options.http_endpoint,
        "HttpProtocolIpv6": options.http_protocol_ipv6,
        "HttpPutResponseHopLimit": options.http_put_response_hop_limit,
    }
