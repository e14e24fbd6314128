"""Launch templates: made when a fleet needs one, found again by name, deleted with their node class.

A template's name is a hash of its content, so a template of that name is the right one, whichever process made it:
making one that is there already is a success. Names known to exist are remembered for a while.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from kerf.aws.requests.clients import Clients, pages, tag_list
from kerf.aws.requests.errors import translated
from kerf.aws.requests.parallel import each
from kerf.ec2.launch.templates import PREFIX
from kerf.model.aws.cloud import EFA_ONLY, INTERRUPTIBLE, ONLY_RESERVED, HeldReservation, LaunchTemplate
from kerf.model.aws.inventory import TEMPLATE, Resource
from kerf.ports import AlreadyExists, AlreadyGone, TemplateMissing
from kerf_api import bounds, labels, quantity
from kerf_api.v1.ec2nodeclass import BlockDevice, BlockDeviceMapping, ConnectionTracking, NetworkInterface

KNOWN_SECONDS: Final = 600.0
#: Partitions whose EC2 does not know the field HttpProtocolIpv6.
NO_METADATA_IPV6: Final = ("us-iso-", "us-isob-", "us-isof-")


class LaunchTemplates:
    """Ensures and deletes launch templates. `elapsed` counts seconds from anywhere."""

    def __init__(self, clients: Clients, cluster_name: str, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._clients = clients
        self._cluster_name = cluster_name
        self._elapsed = elapsed
        self._lock = threading.Lock()
        self._known: dict[str, float] = {}
        #: One per name that is being made: of several fleets that need it at once one makes it, and the others wait.
        self._making: dict[str, threading.Lock] = {}

    def ensure(self, templates: Iterable[LaunchTemplate]) -> None:
        """Make those that are not known to exist."""
        each(self._make, [one for one in templates if not self._is_known(one)])

    def forget(self, templates: Iterable[LaunchTemplate]) -> None:
        """EC2 says that one of these is gone: look at all of them again."""
        with self._lock:
            for template in templates:
                self._known.pop(template.name, None)

    def withdraw(self, template: LaunchTemplate) -> None:
        """Delete one that was made for a moment, if it is there."""
        self._delete(template.name, LaunchTemplateName=template.name)

    def delete_of_class(self, class_name: str) -> None:
        """Delete the templates that carry our cluster's and this class's tags."""
        rows = self._described({"Name": f"tag:{labels.TAG_NODECLASS}", "Values": [class_name]})
        each(lambda row: self._delete(row["LaunchTemplateName"], LaunchTemplateId=row["LaunchTemplateId"]), rows)

    def all(self) -> tuple[Resource, ...]:
        """Those that were made for a node pool of our cluster, by this process or another, by name."""
        owned = {"Name": f"tag:{labels.cluster_tag(self._cluster_name)}", "Values": ["owned"]}
        rows = self._described(owned, {"Name": "tag-key", "Values": [labels.TAG_NODEPOOL]})
        found = (_resource(row) for row in rows if row["LaunchTemplateName"].startswith(PREFIX))
        return tuple(sorted(found, key=lambda one: one.name))

    def delete(self, resource: Resource) -> None:
        self._delete(resource.name, LaunchTemplateId=resource.id)

    def _described(self, *filters: Mapping[str, Any]) -> list[Any]:
        """Those with our cluster's tag that pass these filters too."""
        ours = {"Name": f"tag:{labels.TAG_EKS_CLUSTER}", "Values": [self._cluster_name]}
        with translated("ec2:DescribeLaunchTemplates"):
            return pages(
                self._clients.get("ec2"),
                "describe_launch_templates",
                "LaunchTemplates",
                Filters=[ours, *filters],
                PaginationConfig={"PageSize": 200},
            )

    def _is_known(self, template: LaunchTemplate) -> bool:
        with self._lock:
            return self._known.get(template.name, 0.0) > self._elapsed()

    def _make(self, template: LaunchTemplate) -> None:
        with self._lock:
            own = self._making.setdefault(template.name, threading.Lock())
        try:
            with own:
                if not self._is_known(template):
                    self._create(template)
        finally:
            with self._lock:
                self._making.pop(template.name, None)

    def _create(self, template: LaunchTemplate) -> None:
        try:
            with translated("ec2:CreateLaunchTemplate"):
                self._clients.get("ec2").create_launch_template(
                    LaunchTemplateName=template.name,
                    LaunchTemplateData=template_data(template, self._clients.region),
                    TagSpecifications=[{"ResourceType": "launch-template", "Tags": tag_list(template.tags)}],
                )
        except AlreadyExists:
            pass
        with self._lock:
            self._known[template.name] = self._elapsed() + KNOWN_SECONDS

    def _delete(self, name: str, **which: str) -> None:
        with self._lock:  # before it goes: who launches meanwhile makes it again
            self._known.pop(name, None)
        with suppress(AlreadyGone, TemplateMissing), translated("ec2:DeleteLaunchTemplate"):
            self._clients.get("ec2").delete_launch_template(**which)


def _resource(row: Mapping[str, Any]) -> Resource:
    created: datetime = row["CreateTime"]
    return Resource(TEMPLATE, row["LaunchTemplateId"], row["LaunchTemplateName"], bounds.instant(created))


def template_data(template: LaunchTemplate, region: str) -> dict[str, Any]:
    """A template as CreateLaunchTemplate's `LaunchTemplateData`."""
    data: dict[str, Any] = {
        "ImageId": template.image_id,
        "IamInstanceProfile": {"Name": template.instance_profile},
        "UserData": base64.b64encode(template.user_data.encode()).decode(),
        "Monitoring": {"Enabled": template.detailed_monitoring},
        "MetadataOptions": _metadata(template, region),
        "NetworkInterfaces": interfaces(template),
        "Placement": _placement(template),
        "EnclaveOptions": {"Enabled": template.enclaves},
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": tag_list(template.tags)} for kind in _tagged_kinds(template)
        ],
    }
    if template.block_device_mappings:
        data["BlockDeviceMappings"] = [_mapping(one) for one in template.block_device_mappings]
    if template.nested_virtualization:
        data["CpuOptions"] = {"NestedVirtualization": template.nested_virtualization}
    if template.capacity_reservations:
        data["CapacityReservationSpecification"] = {"CapacityReservationPreference": template.capacity_reservations}
    return data | _reserved(template.reservation) if template.reservation is not None else data


def _placement(template: LaunchTemplate) -> dict[str, Any]:
    data: dict[str, Any] = {"Tenancy": template.tenancy}
    if template.placement_group:
        data["GroupId"] = template.placement_group
    if template.partition:
        data["PartitionNumber"] = template.partition
    return data


def _reserved(held: HeldReservation) -> dict[str, Any]:
    """Machines of this template run in one reservation; of some kinds EC2 asks for the market to be named too."""
    target = {"CapacityReservationId": held.id}
    told = {"CapacityReservationPreference": ONLY_RESERVED, "CapacityReservationTarget": target}
    market = INTERRUPTIBLE if held.interruptible else held.type
    options = {"InstanceMarketOptions": {"MarketType": market}} if market != "default" else {}
    return {"CapacityReservationSpecification": told, **options}


def _tagged_kinds(template: LaunchTemplate) -> tuple[str, ...]:
    """What CreateFleet cannot tag itself."""
    if template.capacity_type == labels.SPOT:
        return ("network-interface", "spot-instances-request")
    return ("network-interface",)


def _metadata(template: LaunchTemplate, region: str) -> dict[str, Any]:
    options = template.metadata_options
    data = {
        "HttpEndpoint": options.http_endpoint,
        "HttpPutResponseHopLimit": options.http_put_response_hop_limit,
        "HttpTokens": options.http_tokens,
        "InstanceMetadataTags": "disabled",
    }
    if not region.startswith(NO_METADATA_IPV6):
        data["HttpProtocolIpv6"] = options.http_protocol_ipv6
    return data


def interfaces(template: LaunchTemplate) -> list[dict[str, Any]]:
    """A machine's, as the request names them: those that the class lists, else one.

    All carry the security groups; only EFA-only ones have no addresses.
    """
    groups, addresses = list(template.security_group_ids), _addresses(template)
    if not template.network_interfaces:
        return [{"DeviceIndex": 0, "Groups": groups, **addresses}]
    return [
        {**_place(one), "Groups": groups, **({} if one.interface_type == EFA_ONLY else addresses)}
        for one in template.network_interfaces
    ]


def _place(one: NetworkInterface) -> dict[str, Any]:
    return {
        "NetworkCardIndex": one.network_card_index,
        "DeviceIndex": one.device_index,
        "InterfaceType": one.interface_type,
    }


def _addresses(template: LaunchTemplate) -> dict[str, Any]:
    """What an interface that carries IP traffic is given."""
    data: dict[str, Any] = {}
    if template.associate_public_ip_address is not None:
        data["AssociatePublicIpAddress"] = template.associate_public_ip_address
    if template.ipv6:
        data |= _ipv6(template.ip_prefix_count or 0)
    elif template.ip_prefix_count is not None:
        data["Ipv4PrefixCount"] = template.ip_prefix_count
    tracking = _tracking(template.connection_tracking)
    if tracking:
        data["ConnectionTrackingSpecification"] = tracking
    return data


def _ipv6(prefixes: int) -> dict[str, Any]:
    """One address, or prefixes in its place. EC2 accepts no address count and no primary address beside prefixes.

    Source: EC2 API reference, CreateNetworkInterface.
    """
    return {"Ipv6PrefixCount": prefixes} if prefixes else {"PrimaryIpv6": True, "Ipv6AddressCount": 1}


def _tracking(tracking: ConnectionTracking | None) -> dict[str, int]:
    """Idle timeouts in seconds; empty when none is set."""
    if tracking is None:
        return {}
    fields = {
        "TcpEstablishedTimeout": tracking.tcp_established_timeout,
        "UdpStreamTimeout": tracking.udp_stream_timeout,
        "UdpTimeout": tracking.udp_timeout,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _mapping(mapping: BlockDeviceMapping) -> dict[str, Any]:
    data: dict[str, Any] = {"DeviceName": mapping.device_name}
    if mapping.ebs is not None:
        data["Ebs"] = _volume(mapping.ebs)
    return data


def _volume(ebs: BlockDevice) -> dict[str, Any]:
    fields = {
        "DeleteOnTermination": ebs.delete_on_termination,
        "Encrypted": ebs.encrypted,
        "Iops": ebs.iops or None,
        "KmsKeyId": ebs.kms_key_id,
        "SnapshotId": ebs.snapshot_id,
        "Throughput": ebs.throughput or None,
        "VolumeInitializationRate": ebs.volume_initialization_rate,
        "VolumeSize": gibibytes(ebs.volume_size) if ebs.volume_size else None,
        "VolumeType": ebs.volume_type,
    }
    return {name: value for name, value in fields.items() if value is not None}


def gibibytes(size: str) -> int:
    """A quantity as whole GiB, rounded up: EC2 counts volumes so."""
    return int(-(-quantity.parse(size) // 2**30))
