"""The catalogue of an EC2NodeClass: every instance type of the region, what its nodes offer, and where at what price.

A type stays listed although nothing of it can be bought: then no offering is available, and a refusal can say why.
Source: AWS provider reference §4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kerf.ec2 import families, images, placement
from kerf.ec2.instance_types import capacity, formulas, type_labels
from kerf.ec2.instance_types.capacity import Sizing
from kerf.model.aws.cloud import EFA_ONLY, CapacityReservation, ClassFacts, InstanceTypeInfo, PlacementGroup, Region
from kerf.model.aws.instance_type import Catalogue, InstanceType, Offering, Reservation
from kerf.model.settings import Settings
from kerf_api import labels
from kerf_api.requirements import IN, Requirements, requirement
from kerf_api.v1.ec2nodeclass import EC2NodeClass, NetworkInterface

#: A reserved machine costs such a part of what it would cost on demand: of prices as they are nothing.
_AS_GOOD_AS_FREE = 10_000_000
ImageTable = tuple[tuple[str, Requirements], ...]


def build(node_class: EC2NodeClass, facts: ClassFacts, region: Region, settings: Settings) -> Catalogue:
    """The types that a node class can launch, sorted by name.

    An offering is available when its price is known, its zone offers the type and has a subnet that is not full, and
    the type can boot one of the class's images and do what the class asks of it. What is reserved costs next to nothing
    more, and is available as long as the reservation has a machine left. A type's memory is what nodes with its image
    have shown, the estimate while there was none. Raises Unresolvable when the class's kubelet configuration cannot be
    decoded, or one of its expressions has no value on a type: then no type is known.
    """
    formulas.decodable(node_class.spec.kubelet)
    group = facts.placement_group if node_class.spec.placement_group_selector is not None else None
    reserved: dict[str, list[CapacityReservation]] = {}
    for one in facts.reservations if settings.gates.reserved_capacity else ():
        reserved.setdefault(one.instance_type, []).append(one)
    common = _Common(
        node_class=node_class,
        facts=facts,
        region=region,
        sizing=Sizing.of(node_class, settings),
        zone_ids=_zone_ids(facts),
        shut=_shut(facts),
        images=images.table(images.listed(facts.images)),
        group=group,
        reserved=reserved,
    )
    infos = (region.types[name] for name in sorted(region.types))
    types = (_instance_type(info, common) for info in infos if type_labels.architecture(info))
    return tuple(_noted(type_, group, _shifted(facts)) for type_ in types)


@dataclass(frozen=True, slots=True)
class _Common:
    """What all types of a class have in common: zones by name with their IDs, those in which nothing can be had, the
    images that they may boot, the placement group; and what is reserved, by type."""

    node_class: EC2NodeClass
    facts: ClassFacts
    region: Region
    sizing: Sizing
    zone_ids: Mapping[str, str]
    shut: frozenset[str]
    images: ImageTable
    group: PlacementGroup | None
    reserved: Mapping[str, Sequence[CapacityReservation]]


def _instance_type(info: InstanceTypeInfo, common: _Common) -> InstanceType:
    region, zone_ids, group = common.region, common.zone_ids, common.group
    sizing, kept = formulas.resolved(info, common.sizing)
    offered = region.zones_by_type.get(info.name, frozenset())
    reachable = {zone: zone_id for zone, zone_id in zone_ids.items() if zone in offered}
    wanted = type_labels.requirements(info, sizing.family, region.name, reachable)
    if group is not None:
        wanted = wanted.without(*placement.LABELS) & placement.rows(group)
    image = images.pick(wanted, common.images)
    usable = _compatible(info, common.node_class, sizing, group) and image is not None
    price, there = region.on_demand.get(info.name, 0), reachable.keys() - common.shut
    held = tuple(
        _reserved(one, price, zone_ids, usable and one.zone in there) for one in common.reserved.get(info.name, ())
    )
    full = capacity.capacity(info, sizing, common.facts.memory_bytes.get((info.name, image or "")))
    return InstanceType(
        info.name,
        _with_reservations(wanted) if held else wanted,
        full,
        capacity.allocatable(full, capacity.overhead(info, sizing, full)),
        (*_offerings(info, region, zone_ids, common.shut, usable), *held),
        reserved=kept,
    )


def _noted(type_: InstanceType, group: PlacementGroup | None, shifted: frozenset[str]) -> InstanceType:
    """The type whose offerings know their placement group, and that their zone is shifted away from."""
    if group is None and not shifted:
        return type_
    id_ = group.id if group is not None else ""
    offerings = (replace(o, placement_group=id_, shifted=o.zone in shifted) for o in type_.offerings)
    return replace(type_, offerings=tuple(offerings))


def _reserved(one: CapacityReservation, price: int, zone_ids: Mapping[str, str], possible: bool) -> Offering:
    return Offering(
        one.instance_type,
        one.zone,
        labels.RESERVED,
        price // _AS_GOOD_AS_FREE,
        available=possible and one.left > 0 and not one.expiring,
        zone_id=zone_ids.get(one.zone, ""),
        reservation=Reservation(one.id, one.left, one.type, one.interruptible),
        on_demand=price,
    )


def _with_reservations(wanted: Requirements) -> Requirements:
    """The type's requirements when it can be had reserved too: its offerings say what reservation a machine is in."""
    kinds = wanted[labels.CAPACITY_TYPE].values | {labels.RESERVED}
    rest = wanted.without(labels.CAPACITY_TYPE, *labels.RESERVATION_LABELS)
    return rest & [requirement(labels.CAPACITY_TYPE, IN, kinds)]


def _offerings(
    info: InstanceTypeInfo, region: Region, zone_ids: Mapping[str, str], shut: frozenset[str], usable: bool
) -> Iterator[Offering]:
    """One per zone of the region and capacity type, sorted by both; one of unknown price costs 0 and is unavailable."""
    offered = region.zones_by_type.get(info.name, frozenset())
    for zone in sorted({*region.zones, *offered}):
        for capacity_type in sorted({labels.ON_DEMAND, labels.SPOT} & set(info.usage_classes)):
            price = region.price(info.name, zone, spot=capacity_type == labels.SPOT)
            possible = usable and zone in offered and zone in zone_ids and zone not in shut
            yield Offering(
                info.name,
                zone,
                capacity_type,
                price or 0,
                available=possible and price is not None,
                zone_id=zone_ids.get(zone, ""),
                unpriced=possible and price is None,
            )


def _zone_ids(facts: ClassFacts) -> dict[str, str]:
    """The zones with a subnet, by name, each with its ID ("" when no subnet has it)."""
    known: dict[str, str] = {}
    for subnet in sorted(facts.subnets, key=lambda s: s.id):
        known[subnet.zone] = known.get(subnet.zone) or subnet.zone_id
    return known


def _shut(facts: ClassFacts) -> frozenset[str]:
    """The zones whose subnets are all full, and those that traffic is shifted away from."""
    roomy = {subnet.zone for subnet in facts.subnets if subnet.id not in facts.full_subnets}
    return (frozenset(subnet.zone for subnet in facts.subnets) - roomy) | _shifted(facts)


def _shifted(facts: ClassFacts) -> frozenset[str]:
    return frozenset(subnet.zone for subnet in facts.subnets if subnet.zone_id in facts.shifted)


def _compatible(info: InstanceTypeInfo, node_class: EC2NodeClass, sizing: Sizing, group: PlacementGroup | None) -> bool:
    """Whether the type can do what the class asks of any machine. What is to be in a group is launched nowhere else."""
    spec = node_class.spec
    if spec.placement_group_selector is not None and (group is None or not placement.takes(group, info)):
        return False
    if sizing.family is families.AL2023 and info.name.startswith("a1."):
        return False  # AL2023 needs a newer ARM core than a1 has
    if spec.network_interfaces and not _wired(info, spec.network_interfaces):
        return False
    if spec.connection_tracking is not None and info.hypervisor != "nitro":
        return False
    nested = spec.cpu_options is not None and spec.cpu_options.nested_virtualization == "enabled"
    return not nested or "nested-virtualization" in info.processor_features


def _wired(info: InstanceTypeInfo, interfaces: Sequence[NetworkInterface]) -> bool:
    """Whether the type has the network cards, and room on each, for these interfaces."""
    if not info.ena or sum(one.interface_type == EFA_ONLY for one in interfaces) > info.efa_interfaces:
        return False
    return all(
        one.network_card_index < len(info.cards) and one.device_index < info.cards[one.network_card_index]
        for one in interfaces
    )
