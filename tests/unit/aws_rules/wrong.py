"""For each rule of the documentation a call that breaks it: a valid one with one value changed."""

from __future__ import annotations

import base64
from typing import Any, Final

from .valid import GROUP, IMAGE, INSTANCE, INTERFACE, SUBNET

FLEET, TEMPLATE, RUN = "CreateFleet", "CreateLaunchTemplate", "RunInstances"
_OVERRIDE: Final = "LaunchTemplateConfigs.0.Overrides.0"
_SPEC: Final = "LaunchTemplateConfigs.0.LaunchTemplateSpecification"
_DATA: Final = "LaunchTemplateData"
_CARD: Final = f"{_DATA}.NetworkInterfaces"
_DISK: Final = f"{_DATA}.BlockDeviceMappings.0.Ebs"
_KEYS: Final = [{"Key": f"k{n}", "Value": ""} for n in range(51)]


def _disk(type_: str, **more: Any) -> dict[str, Any]:
    return {"VolumeSize": 200, "VolumeType": type_, **more}


#: By rule: the valid call, the path of the change, and the wrong value there.
WRONG: Final[dict[str, tuple[str, str, Any]]] = {
    "addresses_of_efa_only": (TEMPLATE, f"{_CARD}.0.InterfaceType", "efa-only"),
    "batch_id_form": ("DeleteMessageBatch", "Entries.0.Id", "a b"),
    "batch_ids_unique": ("DeleteMessageBatch", "Entries.0.Id", "1"),
    "batch_size": ("DeleteMessageBatch", "Entries", [{"Id": str(n), "ReceiptHandle": "r"} for n in range(11)]),
    "cluster_name": ("DescribeCluster", "name", "-c"),
    "connection_tracking": (TEMPLATE, f"{_CARD}.0.ConnectionTrackingSpecification", {"UdpTimeout": 61}),
    "cpu_credits": (TEMPLATE, f"{_DATA}.CreditSpecification", {"CpuCredits": "many"}),
    "deleted_template": ("DeleteLaunchTemplate", "LaunchTemplateName", "abc"),
    "described_group_id_form": ("DescribePlacementGroups", "GroupIds.0", "pg-1"),
    "device_index": (TEMPLATE, _CARD, [INTERFACE, {"Groups": [GROUP], "NetworkCardIndex": 1}]),
    "ena_express_udp": (
        TEMPLATE,
        f"{_CARD}.0.EnaSrdSpecification",
        {"EnaSrdUdpSpecification": {"EnaSrdUdpEnabled": True}},
    ),
    "device_names": (TEMPLATE, f"{_DATA}.BlockDeviceMappings.0.DeviceName", ""),
    "enclaves_and_hibernation": (RUN, "HibernationOptions", {"Configured": True}),
    "filter_name": ("DescribeInstances", "Filters.0.Name", "instance-state"),
    "filter_values": ("DescribeInstances", "Filters.0.Values", []),
    "fleet_overrides": (FLEET, f"{_OVERRIDE[:-2]}", [{"InstanceType": "m5.large", "SubnetId": SUBNET}] * 301),
    "fleet_tag_types": (FLEET, "TagSpecifications.0.ResourceType", "image"),
    "fleet_template_name": (FLEET, f"{_SPEC}.LaunchTemplateId", "lt-0123456789abcdef0"),
    "fleet_template_version": (FLEET, f"{_SPEC}.Version", ""),
    "fleet_token": (FLEET, "ClientToken", "t" * 65),
    "group_id_form": (TEMPLATE, f"{_CARD}.0.Groups.0", "default"),
    "groups_of_interfaces": (TEMPLATE, f"{_DATA}.SecurityGroupIds", [GROUP]),
    "hop_limit": (TEMPLATE, f"{_DATA}.MetadataOptions.HttpPutResponseHopLimit", 65),
    "image_id_form": (FLEET, f"{_OVERRIDE}.ImageId", "ami-123"),
    "image_owners": ("DescribeImages", "Owners.0", "1234"),
    "instance_counts": (RUN, "MinCount", 2),
    "instance_id_form": ("TerminateInstances", "InstanceIds.0", "i-1"),
    "instant_only_options": (FLEET, "OnDemandOptions", {"SingleInstanceType": True}),
    "interface_type": (TEMPLATE, f"{_CARD}.0.InterfaceType", "trunk"),
    "ipv4_of_interface": (TEMPLATE, f"{_CARD}.0.SecondaryPrivateIpAddressCount", 1),
    "ipv6_of_interface": (TEMPLATE, f"{_CARD}.0", {"DeviceIndex": 0, "Ipv6AddressCount": 1, "Ipv6PrefixCount": 1}),
    "launch_tag_types": (TEMPLATE, f"{_DATA}.TagSpecifications.0.ResourceType", "launch-template"),
    "maintain_only": (FLEET, "ReplaceUnhealthyInstances", True),
    "managed_resource": ("GetManagedResource", "resourceIdentifier", "cluster-c"),
    "minimum_target": (FLEET, "OnDemandOptions", {"MinTargetCapacity": 1}),
    "monitored_metrics": (TEMPLATE, f"{_DATA}.Monitoring", {"Enabled": False, "MetricCategoryIds": ["a"]}),
    "one_primary_address": (
        TEMPLATE,
        f"{_CARD}.0",
        {
            "DeviceIndex": 0,
            "PrivateIpAddresses": [{"Primary": True, "PrivateIpAddress": f"10.0.0.{n}"} for n in (4, 5)],
        },
    ),
    "override_max_price": (FLEET, f"{_OVERRIDE}.MaxPrice", "0.001"),
    "override_placement": (FLEET, f"{_OVERRIDE}.Placement", {"Tenancy": "dedicated"}),
    "override_priority": (FLEET, f"{_OVERRIDE}.Priority", -1.0),
    "override_subnet": (FLEET, f"{_OVERRIDE}.SubnetId", f"{SUBNET},{SUBNET}"),
    "override_type": (
        FLEET,
        f"{_OVERRIDE}.InstanceRequirements",
        {"VCpuCount": {"Min": 1}, "MemoryMiB": {"Min": 1}},
    ),
    "override_zone": (
        FLEET,
        _OVERRIDE,
        {"InstanceType": "m5.large", "AvailabilityZone": "us-west-2a", "AvailabilityZoneId": "usw2-az1"},
    ),
    "page_size_of_ids": ("DescribeInstances", "InstanceIds", [INSTANCE]),
    "parameter_depth": ("GetParameter", "Name", "/a" * 16),
    "parameter_name": ("GetParameter", "Name", "/a b"),
    "placement_group": (TEMPLATE, f"{_DATA}.Placement.GroupName", "a"),
    "placement_group_id_form": (TEMPLATE, f"{_DATA}.Placement.GroupId", "group"),
    "placement_host_group": (TEMPLATE, f"{_DATA}.Placement.HostResourceGroupArn", "arn:aws:resource-groups:x"),
    "placement_partition": (TEMPLATE, f"{_DATA}.Placement", {"PartitionNumber": 1}),
    "placement_partitions": (TEMPLATE, f"{_DATA}.Placement.PartitionNumber", 8),
    "placement_zone": (
        TEMPLATE,
        f"{_DATA}.Placement",
        {"AvailabilityZone": "us-west-2a", "AvailabilityZoneId": "usw2-az1"},
    ),
    "price_format": ("GetProducts", "FormatVersion", "aws_v2"),
    "primary_interface": (TEMPLATE, f"{_CARD}.0.NetworkCardIndex", 1),
    "primary_ipv6_of_prefixes": (
        TEMPLATE,
        f"{_CARD}.0",
        {"DeviceIndex": 0, "PrimaryIpv6": True, "Ipv6PrefixCount": 1},
    ),
    "private_addresses_of_many": (RUN, "MaxCount", 2),
    "profile_path_prefix": ("ListInstanceProfiles", "PathPrefix", "/karpenter"),
    "profile_tag_keys": (
        "CreateInstanceProfile",
        "Tags",
        [{"Key": "Team", "Value": "a"}, {"Key": "team", "Value": "b"}],
    ),
    "profile_tag_prefix": ("CreateInstanceProfile", "Tags.0.Key", "AWS:a"),
    "public_ip_of_primary": (TEMPLATE, f"{_CARD}.0.NetworkInterfaceId", "eni-0123456789abcdef0"),
    "public_ip_of_several": (TEMPLATE, _CARD, [INTERFACE, {"DeviceIndex": 1, "Groups": [GROUP]}]),
    "queue_name": ("GetQueueUrl", "QueueName", "q" * 81),
    "receive_wait": ("ReceiveMessage", "WaitTimeSeconds", 21),
    "received_messages": ("ReceiveMessage", "MaxNumberOfMessages", 11),
    "reservation_id_form": (
        TEMPLATE,
        f"{_DATA}.CapacityReservationSpecification",
        {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}},
    ),
    "reserved_capacity": (FLEET, "ReservedCapacityOptions", {"ReservationTypes": ["capacity-block"]}),
    "reserved_capacity_target": (
        FLEET,
        "ReservedCapacityOptions",
        {
            "CapacityReservationTarget": {
                "CapacityReservationIds": ["cr-0123456789abcdef0"],
                "CapacityReservationResourceGroupArns": ["arn:aws:resource-groups:x"],
            }
        },
    ),
    "run_template": (RUN, "LaunchTemplate.LaunchTemplateId", "lt-0123456789abcdef0"),
    "run_token": (RUN, "ClientToken", "t" * 65),
    "snapshot_id_form": (TEMPLATE, f"{_DISK}.SnapshotId", "snap-xyz"),
    "spot_pools": (
        FLEET,
        "SpotOptions",
        {"AllocationStrategy": "price-capacity-optimized", "InstancePoolsToUseCount": 2},
    ),
    "spot_price": (
        TEMPLATE,
        f"{_DATA}.InstanceMarketOptions",
        {"MarketType": "spot", "SpotOptions": {"MaxPrice": "0.0001"}},
    ),
    "spot_rebalancing": (
        FLEET,
        "SpotOptions",
        {"MaintenanceStrategies": {"CapacityRebalance": {"ReplacementStrategy": "launch"}}},
    ),
    "spot_validity": (
        TEMPLATE,
        f"{_DATA}.InstanceMarketOptions",
        {"MarketType": "spot", "SpotOptions": {"ValidUntil": "2026-11-26T00:00:00Z"}},
    ),
    "status_ids": ("DescribeInstanceStatus", "InstanceIds", [INSTANCE] * 101),
    "subnet_id_form": (FLEET, f"{_OVERRIDE}.SubnetId", "subnet-a"),
    "subnet_of_interfaces": (RUN, "SubnetId", SUBNET),
    "tag_key_length": (FLEET, "TagSpecifications.0.Tags.0.Key", "k" * 128),
    "tag_key_prefix": (FLEET, "TagSpecifications.0.Tags.0.Key", "aws:a"),
    "tag_keys_unique": ("CreateTags", "Tags", [{"Key": "a", "Value": "b"}, {"Key": "a", "Value": "c"}]),
    "tag_value_length": ("CreateTags", "Tags.0.Value", "v" * 257),
    "tagged_id_form": ("CreateTags", "Resources.0", "i-1"),
    "tagged_resources": ("CreateTags", "Resources", [INSTANCE] * 1001),
    "tags_per_resource": (TEMPLATE, f"{_DATA}.TagSpecifications.0.Tags", _KEYS),
    "target_unit": (FLEET, "TargetCapacitySpecification.TargetCapacityUnitType", "vcpu"),
    "template_id_form": ("DeleteLaunchTemplate", "LaunchTemplateId", "lt-name"),
    "template_name": (TEMPLATE, "LaunchTemplateName", "a name"),
    "template_tag_type": (TEMPLATE, "TagSpecifications.0.ResourceType", "instance"),
    "template_token": (TEMPLATE, "ClientToken", "t" * 129),
    "template_type": (
        TEMPLATE,
        _DATA,
        {
            "ImageId": IMAGE,
            "InstanceType": "m5.large",
            "InstanceRequirements": {"VCpuCount": {"Min": 1}, "MemoryMiB": {"Min": 1}},
        },
    ),
    "terminated_instances": ("TerminateInstances", "InstanceIds", [INSTANCE] * 1001),
    "threads_per_core": (TEMPLATE, f"{_DATA}.CpuOptions", {"ThreadsPerCore": 4}),
    "user_data": (TEMPLATE, f"{_DATA}.UserData", base64.b64encode(b"x" * 16385).decode()),
    "virtual_device": (TEMPLATE, f"{_DATA}.BlockDeviceMappings.0.VirtualName", "ephemeral"),
    "visibility": ("ReceiveMessage", "VisibilityTimeout", 43201),
    "volume_initialization": (TEMPLATE, f"{_DISK}.VolumeInitializationRate", 200),
    "volume_iops": (TEMPLATE, _DISK, _disk("gp3", Iops=100)),
    "volume_iops_ratio": (TEMPLATE, _DISK, _disk("io1", Iops=10001)),
    "volume_iops_required": (TEMPLATE, _DISK, _disk("io2")),
    "volume_iops_types": (TEMPLATE, _DISK, _disk("st1", Iops=3000)),
    "volume_key": (TEMPLATE, _DISK, _disk("gp3", KmsKeyId="alias/a")),
    "volume_size": (TEMPLATE, _DISK, {"VolumeSize": 100, "VolumeType": "sc1"}),
    "volume_size_or_snapshot": (TEMPLATE, _DISK, {"VolumeType": "gp3"}),
    "volume_throughput": (TEMPLATE, _DISK, _disk("gp3", Iops=16000, Throughput=2001)),
    "volume_throughput_ratio": (TEMPLATE, _DISK, _disk("gp3", Throughput=751)),
    "volume_throughput_types": (TEMPLATE, _DISK, _disk("gp2", Throughput=125)),
}
#: A second change, for rules that need two.
AND: Final[dict[str, tuple[str, Any]]] = {
    "enclaves_and_hibernation": ("EnclaveOptions", {"Enabled": True}),
    "fleet_overrides": ("Type", "request"),
    "instant_only_options": ("Type", "request"),
    "private_addresses_of_many": ("NetworkInterfaces.0.PrivateIpAddress", "10.0.0.4"),
}
#: Calls that break the service model, by a name; the second half passes botocore's own validation.
OUT_OF_MODEL: Final[dict[str, tuple[str, str, Any]]] = {
    "attribute of no message": ("ReceiveMessage", "AttributeNames.0", "Sender"),
    "missing member": ("CreateTags", "Tags", None),
    "unknown member": (FLEET, "Overrides", []),
    "wrong type": (FLEET, "TargetCapacitySpecification.TotalTargetCapacity", "1"),
    "page too large": ("DescribeInstanceTypes", "MaxResults", 101),
    "unknown market": (FLEET, "TargetCapacitySpecification.DefaultTargetCapacityType", "reserved"),
    "too many configs": (FLEET, "LaunchTemplateConfigs", [{}] * 51),
    "name that is too long": (FLEET, f"{_SPEC}.LaunchTemplateName", "n" * 129),
    "characters of a name": ("CreateInstanceProfile", "InstanceProfileName", "a/b"),
    "path without its end": ("CreateInstanceProfile", "Path", "/karpenter"),
    "too many tags of a profile": ("CreateInstanceProfile", "Tags", _KEYS),
    "characters of a tag": ("CreateInstanceProfile", "Tags.0.Value", "a\nb"),
    "page of prices": ("GetProducts", "MaxResults", 101),
}
