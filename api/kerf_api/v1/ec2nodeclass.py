"""EC2NodeClass, karpenter.k8s.aws/v1: where and how instances are launched, and what AWS made of the selectors."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import field

from kerf_api.v1.meta import Condition, Entry, ObjectMeta, Value


class SelectorTerm(Value, frozen=True, kw_only=True):
    """A term of any of the selector lists; which fields are legal depends on the list."""

    tags: Mapping[str, str] = field(default_factory=dict)
    id: str = ""
    name: str = ""
    alias: str = ""
    owner: str = ""
    ssm_parameter: str = ""
    owner_id: str = field(default="", name="ownerID")
    instance_match_criteria: str = ""


class PlacementGroupSelector(Value, frozen=True, kw_only=True):
    name: str | None = None
    id: str | None = None


class BlockDevice(Value, frozen=True, kw_only=True):
    delete_on_termination: bool | None = None
    encrypted: bool | None = None
    iops: int | None = None
    kms_key_id: str | None = field(default=None, name="kmsKeyID")
    snapshot_id: str | None = field(default=None, name="snapshotID")
    throughput: int | None = None
    volume_initialization_rate: int | None = None
    volume_size: str | None = None
    volume_type: str | None = None


class BlockDeviceMapping(Value, frozen=True, kw_only=True):
    device_name: str | None = None
    ebs: BlockDevice | None = None
    root_volume: bool = False


class NetworkInterface(Value, frozen=True, kw_only=True):
    network_card_index: int
    device_index: int
    interface_type: str


class MetadataOptions(Value, frozen=True, kw_only=True):
    http_endpoint: str = "enabled"
    http_protocol_ipv6: str = field(default="disabled", name="httpProtocolIPv6")
    http_put_response_hop_limit: int = 1
    http_tokens: str = "required"


class ConnectionTracking(Value, frozen=True, kw_only=True):
    tcp_established_timeout: int | None = None
    udp_stream_timeout: int | None = None
    udp_timeout: int | None = None


class CPUOptions(Value, frozen=True, kw_only=True):
    nested_virtualization: str | None = None


class EC2NodeClassSpec(Value, frozen=True, kw_only=True):
    subnet_selector_terms: tuple[SelectorTerm, ...] = ()
    security_group_selector_terms: tuple[SelectorTerm, ...] = ()
    capacity_reservation_selector_terms: tuple[SelectorTerm, ...] = ()
    ami_selector_terms: tuple[SelectorTerm, ...] = ()
    placement_group_selector: PlacementGroupSelector | None = None
    associate_public_ip_address: bool | None = field(default=None, name="associatePublicIPAddress")
    ip_prefix_count: int | None = None
    ami_family: str | None = None
    user_data: str | None = None
    role: str | None = None
    instance_profile: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    kubelet: Mapping[str, Any] | None = None
    block_device_mappings: tuple[BlockDeviceMapping, ...] = ()
    instance_store_policy: str | None = None
    network_interfaces: tuple[NetworkInterface, ...] | None = None
    detailed_monitoring: bool | None = None
    metadata_options: MetadataOptions = MetadataOptions()
    connection_tracking: ConnectionTracking | None = None
    context: str | None = None
    cpu_options: CPUOptions | None = None


class ResolvedSubnet(Value, frozen=True, kw_only=True):
    id: str
    zone: str
    zone_id: str = field(default="", name="zoneID")


class ResolvedSecurityGroup(Value, frozen=True, kw_only=True):
    id: str
    name: str = ""


class ResolvedImage(Value, frozen=True, kw_only=True):
    id: str
    requirements: tuple[Entry, ...] = ()
    name: str = ""
    deprecated: bool = False


class ResolvedReservation(Value, frozen=True, kw_only=True):
    """A capacity reservation; of a capacity block that is about to end the state is `expiring`."""

    availability_zone: str
    id: str
    instance_match_criteria: str
    instance_type: str
    owner_id: str = field(name="ownerID")
    end_time: datetime | None = None
    interruptible: bool = False
    reservation_type: str = "default"
    state: str = "active"


class EC2NodeClassStatus(Value, frozen=True, kw_only=True):
    subnets: tuple[ResolvedSubnet, ...] = ()
    security_groups: tuple[ResolvedSecurityGroup, ...] = ()
    amis: tuple[ResolvedImage, ...] = ()
    capacity_reservations: tuple[ResolvedReservation, ...] = ()
    instance_profile: str = ""
    conditions: tuple[Condition, ...] = ()


class EC2NodeClass(Value, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: EC2NodeClassSpec = EC2NodeClassSpec()
    status: EC2NodeClassStatus = EC2NodeClassStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def family(self) -> str:
        """The effective AMI family: `spec.amiFamily`, else the alias's family, else Custom."""
        if self.spec.ami_family:
            return self.spec.ami_family
        alias = next((term.alias for term in self.spec.ami_selector_terms if term.alias), "")
        return ALIAS_FAMILIES.get(alias.split("@", 1)[0], "Custom")


#: The device that has the files of pods, by AMI family. Source: AWS provider reference §5.1.
EPHEMERAL_DEVICES = {
    "AL2": "/dev/xvda",
    "AL2023": "/dev/xvda",
    "Bottlerocket": "/dev/xvdb",
    "Windows2019": "/dev/sda1",
    "Windows2022": "/dev/sda1",
    "Windows2025": "/dev/sda1",
}
#: The device that an instance boots from, by AMI family.
ROOT_DEVICES = EPHEMERAL_DEVICES | {"Bottlerocket": "/dev/xvda"}
#: The AMI family that an alias (the text before its `@`) stands for.
ALIAS_FAMILIES = {
    "al2": "AL2",
    "al2023": "AL2023",
    "bottlerocket": "Bottlerocket",
    "windows2019": "Windows2019",
    "windows2022": "Windows2022",
    "windows2025": "Windows2025",
}
