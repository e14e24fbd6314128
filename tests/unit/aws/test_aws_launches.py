"""Launch templates and fleet calls as EC2 wants them, and its answers as facts."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.aws.launch.fleets import TOO_FEW, parameters, result
from kerf.aws.launch.launch_templates import gibibytes, template_data
from kerf.aws.observe.instances import capacity_type, instance
from kerf.model.aws.cloud import FleetRequest, HeldReservation, LaunchTemplate, Override
from kerf_api.v1.ec2nodeclass import (
    BlockDevice,
    BlockDeviceMapping,
    ConnectionTracking,
    MetadataOptions,
    NetworkInterface,
)

NOW = datetime(2026, 11, 20, tzinfo=UTC)
TEMPLATE = LaunchTemplate(
    name="karpenter.k8s.aws/1",
    image_id="ami-1",
    user_data="héllo",
    instance_profile="profile",
    security_group_ids=("sg-2", "sg-1"),
    metadata_options=MetadataOptions(),
    tags={"b": "2", "a": "1"},
)
OVERRIDE = Override(
    instance_type="m5.large",
    zone="us-west-2a",
    subnet_id="subnet-1",
    image_id="ami-1",
    template=TEMPLATE.name,
    price=96_000,
)
REQUEST = FleetRequest(
    group="group-1",
    capacity_type="on-demand",
    members=("claim-a", "claim-b"),
    templates=(TEMPLATE,),
    overrides=(OVERRIDE, replace(OVERRIDE, instance_type="c5.large", price=85_000)),
    tags={"team": "platform"},
)


def data(region: str = "us-west-2", **changes: Any) -> dict[str, Any]:
    return template_data(replace(TEMPLATE, **changes), region)


# --- launch templates -----------------------------------------------------------------------------------------------
def test_a_plain_template() -> None:
    assert data() == {
        "ImageId": "ami-1",
        "IamInstanceProfile": {"Name": "profile"},
        "UserData": base64.b64encode("héllo".encode()).decode(),
        "Monitoring": {"Enabled": False},
        "MetadataOptions": {
            "HttpEndpoint": "enabled",
            "HttpProtocolIpv6": "disabled",
            "HttpPutResponseHopLimit": 1,
            "HttpTokens": "required",
            "InstanceMetadataTags": "disabled",
        },
        "NetworkInterfaces": [{"DeviceIndex": 0, "Groups": ["sg-2", "sg-1"]}],
        "Placement": {"Tenancy": "default"},
        "EnclaveOptions": {"Enabled": False},
        "TagSpecifications": [
            {"ResourceType": "network-interface", "Tags": [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]}
        ],
    }


def test_spot_requests_are_tagged_by_the_template() -> None:
    kinds = [one["ResourceType"] for one in data(capacity_type="spot")["TagSpecifications"]]
    assert kinds == ["network-interface", "spot-instances-request"]


@pytest.mark.parametrize("public", [True, False])
def test_a_public_address_is_asked_for_only_when_set(public: bool) -> None:
    assert data(associate_public_ip_address=public)["NetworkInterfaces"][0]["AssociatePublicIpAddress"] is public


@pytest.mark.parametrize("region", ["us-iso-east-1", "us-isob-east-1", "us-isof-south-1"])
def test_some_partitions_do_not_know_ipv6_metadata(region: str) -> None:
    assert "HttpProtocolIpv6" not in data(region)["MetadataOptions"]


def test_volumes() -> None:
    ebs = BlockDevice(volume_size="20Gi", volume_type="gp3", encrypted=True, iops=0, throughput=125, kms_key_id="key")
    mappings = (
        BlockDeviceMapping(device_name="/dev/xvda", ebs=ebs),
        BlockDeviceMapping(device_name="/dev/xvdb", ebs=BlockDevice(snapshot_id="snap-1", delete_on_termination=False)),
    )
    assert data(block_device_mappings=mappings)["BlockDeviceMappings"] == [
        {
            "DeviceName": "/dev/xvda",
            "Ebs": {
                "VolumeSize": 20,
                "VolumeType": "gp3",
                "Encrypted": True,
                "Throughput": 125,
                "KmsKeyId": "key",
            },
        },
        {"DeviceName": "/dev/xvdb", "Ebs": {"SnapshotId": "snap-1", "DeleteOnTermination": False}},
    ]


@pytest.mark.parametrize(("size", "whole"), [("20Gi", 20), ("4G", 4), ("2G", 2), ("1Mi", 1), ("1Ti", 1024)])
def test_volumes_are_counted_in_whole_gibibytes(size: str, whole: int) -> None:
    assert gibibytes(size) == whole


@pytest.mark.parametrize("count", [0, 1, 10, 100])
def test_address_prefixes_are_of_the_clusters_family(count: int) -> None:
    assert data(ip_prefix_count=count)["NetworkInterfaces"] == [
        {"DeviceIndex": 0, "Groups": ["sg-2", "sg-1"], "Ipv4PrefixCount": count}
    ]
    address = {"PrimaryIpv6": True, "Ipv6AddressCount": 1}
    assert data(ip_prefix_count=count, ipv6=True)["NetworkInterfaces"] == [
        {"DeviceIndex": 0, "Groups": ["sg-2", "sg-1"], **({"Ipv6PrefixCount": count} if count else address)}
    ]


def test_only_timeouts_that_are_set_are_passed_on() -> None:
    tracking = ConnectionTracking(tcp_established_timeout=432, udp_timeout=45)
    (interface,) = data(connection_tracking=tracking)["NetworkInterfaces"]
    assert interface["ConnectionTrackingSpecification"] == {"TcpEstablishedTimeout": 432, "UdpTimeout": 45}
    (bare,) = data(connection_tracking=ConnectionTracking())["NetworkInterfaces"]
    assert "ConnectionTrackingSpecification" not in bare


def test_listed_interfaces_get_addresses_unless_they_are_for_efa_alone() -> None:
    rows = (
        NetworkInterface(network_card_index=0, device_index=0, interface_type="interface"),
        NetworkInterface(network_card_index=1, device_index=1, interface_type="efa-only"),
    )
    tracking = ConnectionTracking(udp_stream_timeout=60)
    found = data(
        network_interfaces=rows,
        ip_prefix_count=2,
        ipv6=True,
        connection_tracking=tracking,
        associate_public_ip_address=False,
    )
    assert found["NetworkInterfaces"] == [
        {
            "NetworkCardIndex": 0,
            "DeviceIndex": 0,
            "InterfaceType": "interface",
            "Groups": ["sg-2", "sg-1"],
            "AssociatePublicIpAddress": False,
            "Ipv6PrefixCount": 2,
            "ConnectionTrackingSpecification": {"UdpStreamTimeout": 60},
        },
        {"NetworkCardIndex": 1, "DeviceIndex": 1, "InterfaceType": "efa-only", "Groups": ["sg-2", "sg-1"]},
    ]


@pytest.mark.parametrize("nested", ["enabled", "disabled"])
def test_nested_virtualization(nested: str) -> None:
    assert data(nested_virtualization=nested)["CpuOptions"] == {"NestedVirtualization": nested}


def test_open_reservations_are_left_alone_when_the_template_says_so() -> None:
    found = data(capacity_reservations="none")["CapacityReservationSpecification"]
    assert found == {"CapacityReservationPreference": "none"}


KINDS = [
    (HeldReservation(id="cr-1"), None, "on-demand"),
    (HeldReservation(id="cr-1", type="capacity-block"), "capacity-block", "capacity-block"),
    (
        HeldReservation(id="cr-1", interruptible=True),
        "interruptible-capacity-reservation",
        "reserved-capacity",
    ),
]


@pytest.mark.parametrize(("held", "market", "target"), KINDS)
def test_a_launch_into_a_reservation(held: HeldReservation, market: str | None, target: str) -> None:
    """The template names the reservation, and the market where EC2 asks for it; the fleet has a target type for it."""
    found = data(capacity_reservations="capacity-reservations-only", reservation=held)
    assert found["CapacityReservationSpecification"] == {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationId": "cr-1"},
    }
    assert found.get("InstanceMarketOptions") == ({"MarketType": market} if market else None)
    request = replace(REQUEST, capacity_type="reserved", templates=(replace(TEMPLATE, reservation=held),))
    call = parameters(request)
    assert call["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == target
    assert call.get("OnDemandOptions") == ({"AllocationStrategy": "lowest-price"} if target == "on-demand" else None)
    options = {"ReservationTypes": ["interruptible-capacity-reservation"]} if target == "reserved-capacity" else None
    assert (call.get("ReservedCapacityOptions"), call.get("SpotOptions")) == (options, None)
    answer = {
        "Instances": [
            {
                "InstanceIds": ["i-1", "i-2"],
                "InstanceType": "m5.large",
                "LaunchTemplateAndOverrides": {"Overrides": {"SubnetId": "subnet-1"}},
            }
        ]
    }
    one, _ = result(request, answer, NOW).instances
    assert (one.capacity_type, one.reservation) == ("reserved", held)
    assert one.offering == ("m5.large", "us-west-2a", "cr-1")


# --- fleets ---------------------------------------------------------------------------------------------------------
def test_the_call_of_an_on_demand_fleet() -> None:
    call = parameters(REQUEST)
    assert (call["Type"], call["ClientToken"]) == ("instant", "group-1")
    assert call["OnDemandOptions"] == {"AllocationStrategy": "lowest-price"}
    assert call["TargetCapacitySpecification"] == {
        "TotalTargetCapacity": 2,
        "DefaultTargetCapacityType": "on-demand",
    }
    assert "SpotOptions" not in call
    assert "Context" not in call
    tags = [{"Key": "kerf.sh/launch-group", "Value": "group-1"}, {"Key": "team", "Value": "platform"}]
    assert call["TagSpecifications"] == [{"ResourceType": k, "Tags": tags} for k in ("instance", "volume", "fleet")]
    (config,) = call["LaunchTemplateConfigs"]
    assert config["LaunchTemplateSpecification"] == {"LaunchTemplateName": TEMPLATE.name, "Version": "$Latest"}
    assert config["Overrides"][0] == {
        "InstanceType": "m5.large",
        "SubnetId": "subnet-1",
        "ImageId": "ami-1",
        "AvailabilityZone": "us-west-2a",
        "Priority": 0.096,
    }


def test_the_call_of_a_spot_fleet() -> None:
    call = parameters(replace(REQUEST, capacity_type="spot", context="ctx"))
    assert call["SpotOptions"] == {"AllocationStrategy": "price-capacity-optimized"}
    assert call["Context"] == "ctx"
    assert "OnDemandOptions" not in call


def test_a_fleet_whose_prices_ec2_does_not_know_goes_by_their_order() -> None:
    call = parameters(replace(REQUEST, prioritized=True))
    assert call["OnDemandOptions"] == {"AllocationStrategy": "prioritized"}
    call = parameters(replace(REQUEST, capacity_type="spot", prioritized=True))
    assert call["SpotOptions"] == {"AllocationStrategy": "capacity-optimized-prioritized"}


def test_overrides_go_with_their_template() -> None:
    second = replace(TEMPLATE, name="karpenter.k8s.aws/2")
    moved = replace(REQUEST.overrides[1], template=second.name)
    call = parameters(replace(REQUEST, templates=(TEMPLATE, second), overrides=(OVERRIDE, moved)))
    found = [[one["InstanceType"] for one in config["Overrides"]] for config in call["LaunchTemplateConfigs"]]
    assert found == [["m5.large"], ["c5.large"]]


def test_instances_come_with_their_overrides_facts() -> None:
    chosen = {"Overrides": {"InstanceType": "m5.large", "SubnetId": "subnet-1"}}
    row = {"InstanceIds": ["i-2", "i-1"], "InstanceType": "m5.large", "LaunchTemplateAndOverrides": chosen}
    found = result(REQUEST, {"Instances": [row]}, NOW)
    assert [one.id for one in found.instances] == ["i-1", "i-2"]
    first = found.instances[0]
    assert (first.zone, first.subnet_id, first.image_id) == ("us-west-2a", "subnet-1", "ami-1")
    assert (first.state, first.capacity_type, first.launched) == ("pending", "on-demand", NOW)
    assert first.security_group_ids == ("sg-1", "sg-2")
    assert first.tags == {"team": "platform", "kerf.sh/launch-group": "group-1"}
    assert found.errors == ()


@pytest.mark.parametrize(
    ("code", "capacity"),
    [
        ("InsufficientInstanceCapacity", True),
        ("UnfulfillableCapacity", True),
        ("VcpuLimitExceeded", True),
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", True),
        ("InvalidParameterValue", False),
        ("UnauthorizedOperation", False),
    ],
)
def test_errors_of_overrides(code: str, capacity: bool) -> None:
    override = {"InstanceType": "m5.large", "AvailabilityZone": "us-west-2a"}
    row = {"ErrorCode": code, "ErrorMessage": "no", "LaunchTemplateAndOverrides": {"Overrides": override}}
    (error,) = result(REQUEST, {"Errors": [row]}, NOW).errors
    assert (error.code, error.message, error.capacity) == (code, "no", capacity)
    assert (error.instance_type, error.zone) == ("m5.large", "us-west-2a")


def test_an_error_may_name_no_override() -> None:
    (error,) = result(REQUEST, {"Errors": [{"ErrorCode": "X", "ErrorMessage": "y"}]}, NOW).errors
    assert (error.instance_type, error.zone) == ("", "")


def test_fewer_instances_without_a_reason_are_an_error() -> None:
    (error,) = result(REQUEST, {}, NOW).errors
    assert (error.code, error.capacity) == (TOO_FEW, False)
    assert "0 of 2" in error.message


# --- instances ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({}, "on-demand"),
        ({"SpotInstanceRequestId": "sir-1"}, "spot"),
        ({"InstanceLifecycle": "spot"}, "spot"),
        ({"InstanceLifecycle": "scheduled"}, "on-demand"),
        (
            {
                "CapacityReservationId": "cr-1",
                "CapacityReservationSpecification": {"CapacityReservationPreference": "capacity-reservations-only"},
            },
            "reserved",
        ),
        (
            {
                "CapacityReservationId": "cr-1",
                "CapacityReservationSpecification": {"CapacityReservationPreference": "open"},
            },
            "on-demand",
        ),
    ],
)
def test_how_an_instance_is_paid_for(row: dict[str, Any], expected: str) -> None:
    assert capacity_type(row) == expected


@pytest.mark.parametrize(
    ("lifecycle", "held"),
    [
        ("", HeldReservation(id="cr-1")),
        ("capacity-block", HeldReservation(id="cr-1", type="capacity-block")),
        ("interruptible-capacity-reservation", HeldReservation(id="cr-1", interruptible=True)),
    ],
)
def test_in_which_reservation_an_instance_runs(lifecycle: str, held: HeldReservation) -> None:
    row = {
        "InstanceId": "i-1",
        "InstanceType": "m5.large",
        "State": {"Code": 16, "Name": "running"},
        "LaunchTime": NOW,
        "InstanceLifecycle": lifecycle,
        "CapacityReservationId": "cr-1",
    }
    told = {"CapacityReservationPreference": "capacity-reservations-only"}
    assert instance({**row, "CapacityReservationSpecification": told}).reservation == held
    assert instance(row).reservation is None, "it may leave the reservation at any time"


def test_an_instance_that_is_ending_may_lack_its_network() -> None:
    found = instance(
        {
            "InstanceId": "i-1",
            "InstanceType": "m5.large",
            "State": {"Code": 32, "Name": "shutting-down"},
            "LaunchTime": NOW,
            "Placement": {"AvailabilityZone": "us-west-2a"},
        }
    )
    assert not found.live
    assert (found.zone, found.subnet_id, found.security_group_ids) == ("us-west-2a", "", ())
