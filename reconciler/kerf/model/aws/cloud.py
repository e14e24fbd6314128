"""EC2's facts and requests as frozen values: what the Cloud port returns and what it is asked for.

Units are in the names. Zones are names (`us-west-2a`), prices are integers in millionths of a US dollar per hour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kerf_api.v1.ec2nodeclass import BlockDeviceMapping, ConnectionTracking, MetadataOptions, NetworkInterface
from kerf_api.v1.meta import Value

#: A machine's preference, as EC2 gets it, when it is to run on reserved capacity or not at all.
ONLY_RESERVED = "capacity-reservations-only"
#: Interfaces for high-performance computing, with addresses for pods and without.
EFA, EFA_ONLY = "efa", "efa-only"
#: How EC2 calls a reservation whose owner may take machines back.
INTERRUPTIBLE = "interruptible-capacity-reservation"
#: The strategy of a placement group whose partitions share no hardware.
PARTITIONED = "partition"
#: EC2 lists an instance within this time of its launch, or the instance does not exist.
SHOWN_AFTER = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Gpu:
    name: str
    manufacturer: str
    count: int
    memory_mib: int


@dataclass(frozen=True, slots=True)
class InstanceTypeInfo:
    """One type as DescribeInstanceTypes returns it. Source: EC2 API, InstanceTypeInfo.

    `max_interfaces` is of the default network card, `all_interfaces` of all cards (0 when that is the same), `cards` of
    each card in turn; `ena` says that its network can be had as the interfaces of a class are described;
    `accelerators` are the Neuron devices, else the inference accelerators; `neuron_cores` counts those of all devices.
    """

    name: str
    architectures: tuple[str, ...]
    vcpus: int
    memory_mib: int
    usage_classes: tuple[str, ...] = ("on-demand", "spot")
    max_interfaces: int = 2
    ipv4_per_interface: int = 10
    hypervisor: str = "nitro"
    bare_metal: bool = False
    manufacturer: str = ""
    clock_speed_ghz: float = 0.0
    instance_storage_gb: int = 0
    nvme: bool = False
    ebs_bandwidth_mbps: int | None = None
    network_bandwidth_mbps: int | None = None
    encryption_in_transit: bool = False
    nitro_enclaves: bool = False
    gpus: tuple[Gpu, ...] = ()
    accelerators: tuple[Gpu, ...] = ()
    neuron_cores: int = 0
    efa_interfaces: int = 0
    trunking: bool = False
    placement_strategies: tuple[str, ...] = ()
    processor_features: tuple[str, ...] = ()
    all_interfaces: int = 0
    cards: tuple[int, ...] = ()
    ena: bool = True


@dataclass(frozen=True, slots=True)
class Region:
    """What is the same for every NodeClass: types, where each is offered, and prices.

    `on_demand` maps type to price; `spot` maps (type, zone) to price; both in millionths of a dollar (in China: of a
    yuan) per hour.
    """

    name: str
    types: Mapping[str, InstanceTypeInfo]
    zones_by_type: Mapping[str, frozenset[str]]
    on_demand: Mapping[str, int]
    spot: Mapping[tuple[str, str], int]
    zones: tuple[str, ...] = ()

    def price(self, instance_type: str, zone: str, *, spot: bool) -> int | None:
        """What an instance costs on demand or on spot; None when that is not known."""
        return self.spot.get((instance_type, zone)) if spot else self.on_demand.get(instance_type)


@dataclass(frozen=True, slots=True)
class Subnet:
    id: str
    zone: str
    zone_id: str = ""
    free_addresses: int = 0


@dataclass(frozen=True, slots=True)
class SecurityGroup:
    id: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """A machine image. `variant` is standard, nvidia or neuron for alias images, empty otherwise."""

    id: str
    name: str = ""
    architecture: str = "amd64"
    created: str = ""
    deprecated: bool = False
    variant: str = ""
    windows_build: str = ""


@dataclass(frozen=True, slots=True)
class CapacityReservation:
    """So many machines may still be launched into it (`left`). Source: EC2 API, CapacityReservation.

    `type` is `default` or `capacity-block`, `criteria` (which instances it takes) `open` or `targeted`. One that is
    `expiring` is a block about to end, into which nothing more is launched.
    """

    id: str
    instance_type: str
    zone: str
    left: int
    owner: str = ""
    criteria: str = "targeted"
    type: str = "default"
    interruptible: bool = False
    ends: datetime | None = None
    expiring: bool = False


@dataclass(frozen=True, slots=True)
class PlacementGroup:
    """Where EC2 puts machines in relation to each other. Source: EC2 API, PlacementGroup.

    `strategy` is cluster, partition or spread; only one of partitions has a number of these.
    """

    id: str
    name: str = ""
    strategy: str = "cluster"
    partitions: int = 0


@dataclass(frozen=True, slots=True)
class ProfileAttempt:
    """Why the latest attempt to create the instance profile of this name failed, as reason and message."""

    profile: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ClassFacts:
    """What AWS made of one EC2NodeClass's selectors, at one generation of it.

    `problems` maps a condition (`AMIsReady`, `SubnetsReady`, …) to (reason, message) where resolving failed.
    `instance_profile` is empty until it exists; `reservations` are by ID. `full_subnets` are the IDs of those that had
    no address left when something was lately launched there. `placement_group` is the one that the class selects.
    `shifted` are the IDs of zones that traffic is shifted away from. `memory_bytes` is what nodes have shown of their
    memory, by instance type and image. `images_complete` is False if a term, an ID or a parameter of amiSelectorTerms
    selected no image. `profile_attempt` is set while the profile of `spec.role` cannot be created.
    """

    generation: int
    subnets: tuple[Subnet, ...] = ()
    security_groups: tuple[SecurityGroup, ...] = ()
    images: tuple[Image, ...] = ()
    instance_profile: str = ""
    problems: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    reservations: tuple[CapacityReservation, ...] = ()
    full_subnets: frozenset[str] = frozenset()
    placement_group: PlacementGroup | None = None
    shifted: frozenset[str] = frozenset()
    memory_bytes: Mapping[tuple[str, str], int] = field(default_factory=dict)
    images_complete: bool = True
    profile_attempt: ProfileAttempt | None = None


@dataclass(frozen=True, slots=True)
class DryRun:
    """What AWS had against a launch that was tried dry: reason and message, None for nothing. `identity` names what was
    tried, `at` is when the answer came, `since` when the first of equal answers did (None: this one)."""

    identity: str
    at: datetime
    problem: tuple[str, str] | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What user data needs to know of the cluster."""

    name: str
    endpoint: str
    ca_bundle: str = ""
    dns_ip: str = ""
    service_cidr: str = ""
    kubernetes_version: str = ""
    region: str = ""
    account: str = ""
    arn: str = ""


class HeldReservation(Value, frozen=True, kw_only=True):
    """The capacity reservation that a machine is launched into."""

    id: str
    type: str = "default"
    interruptible: bool = False


class LaunchTemplate(Value, frozen=True, kw_only=True):
    """One launch template's content; equal content has one name. `user_data` is plain text (base64 at the port).

    `ip_prefix_count` and `connection_tracking` go to its network interfaces; with `ipv6` (an IPv6 cluster) these take
    IPv6 prefixes, or a primary IPv6 address without prefixes. Without `network_interfaces` there is one.
    `nested_virtualization` is the CPU option, "" for unset; with `enclaves` a machine can have some of its own.
    `capacity_reservations` is the preference that EC2 gets ("none": open reservations are not used up); "" says
    nothing. With a `reservation` machines are launched into that one only. `placement_group` is an ID, "" for
    none, and of its partitions EC2 is to take number `partition`, or (0) which it likes.
    """

    name: str
    image_id: str
    user_data: str
    instance_profile: str
    security_group_ids: tuple[str, ...]
    metadata_options: MetadataOptions
    block_device_mappings: tuple[BlockDeviceMapping, ...] = ()
    detailed_monitoring: bool = False
    associate_public_ip_address: bool | None = None
    tags: Mapping[str, str] = {}
    capacity_type: str = "on-demand"
    ip_prefix_count: int | None = None
    connection_tracking: ConnectionTracking | None = None
    nested_virtualization: str = ""
    ipv6: bool = False
    network_interfaces: tuple[NetworkInterface, ...] = ()
    capacity_reservations: str = ""
    reservation: HeldReservation | None = None
    enclaves: bool = False
    tenancy: str = "default"
    placement_group: str = ""
    partition: int = 0


class Override(Value, frozen=True, kw_only=True):
    """One (type, zone) that a fleet may launch. `price` is in millionths of a dollar per hour, EC2's priority."""

    instance_type: str
    zone: str
    subnet_id: str
    image_id: str
    template: str
    price: int = 0
    zone_id: str = ""


class FleetRequest(Value, frozen=True, kw_only=True):
    """One CreateFleet call of type `instant`. `group` is its client token and the tag of its instances.

    It is written to its claims before the call, so that a repeat after a crash is the same call, to the byte.
    `members` names the claims; one instance is asked for each. `prioritized`: the overrides' prices are their order,
    whatever EC2 asks for them.
    """

    group: str
    capacity_type: str
    members: tuple[str, ...]
    templates: tuple[LaunchTemplate, ...]
    overrides: tuple[Override, ...]
    tags: Mapping[str, str] = {}
    context: str = ""
    prioritized: bool = False

    def reservation(self, override: Override) -> HeldReservation | None:
        """What a machine from an override is launched into, if into any."""
        return next((t.reservation for t in self.templates if t.name == override.template), None)

    @property
    def placement_group(self) -> str:
        """The ID of the group that all its machines are launched into; empty for none."""
        return self.templates[0].placement_group if self.templates else ""

    def sold(self, instance_type: str, zone: str) -> tuple[str, str, str]:
        """The key of the offering of a type and zone that the call may take."""
        asked = (o for o in self.overrides if (o.instance_type, o.zone) == (instance_type, zone))
        held = next((held for o in asked if (held := self.reservation(o)) is not None), None)
        return (instance_type, zone, self.capacity_type if held is None else held.id)


@dataclass(frozen=True, slots=True)
class FleetError:
    """Why one override gave nothing. `capacity` means: nothing to have there now, try another."""

    code: str
    message: str
    instance_type: str = ""
    zone: str = ""
    capacity: bool = False
    subnet_id: str = ""


@dataclass(frozen=True, slots=True)
class Instance:
    """One EC2 instance of this cluster (terminated ones are not shown). A reserved one is in a `reservation`.

    `efa` counts its interfaces for high-performance computing; `profile` is its instance profile's name. It is in
    partition number `partition` (0: none, or not known yet) of its `placement_group` (an ID).
    """

    id: str
    instance_type: str
    zone: str
    state: str
    capacity_type: str
    launched: datetime
    image_id: str = ""
    subnet_id: str = ""
    security_group_ids: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    zone_id: str = ""
    reservation: HeldReservation | None = None
    tenancy: str = "default"
    efa: int = 0
    placement_group: str = ""
    partition: int = 0
    profile: str = ""

    @property
    def provider_id(self) -> str:
        return f"aws:///{self.zone}/{self.id}"

    @property
    def offering(self) -> tuple[str, str, str]:
        """The key of the offering that it came from."""
        return (self.instance_type, self.zone, self.capacity_type if self.reservation is None else self.reservation.id)

    @property
    def live(self) -> bool:
        return self.state not in ("shutting-down", "terminated")


@dataclass(frozen=True, slots=True)
class FleetResult:
    instances: tuple[Instance, ...] = ()
    errors: tuple[FleetError, ...] = ()


#: The impairments of an instance: EC2's two status checks, or something that EC2 has scheduled for it.
INSTANCE_CHECK, SYSTEM_CHECK, SCHEDULED = "instance_status", "system_status", "event_status"


@dataclass(frozen=True, slots=True)
class Impairment:
    """What EC2's status checks say of an instance: a failing check since when, or a scheduled event in words."""

    instance_id: str
    category: str
    since: datetime | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class ZonalShift:
    """A zone (by its ID) that traffic is shifted away from: until then, or (None) for as long as AWS says so.

    Source: ARC zonal shift API, ManagedResource.
    """

    zone_id: str
    until: datetime | None = None
