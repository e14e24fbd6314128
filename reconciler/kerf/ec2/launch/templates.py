"""Launch templates: everything about an instance that is not its type, zone or price.

One template per image, pod count and what is reserved by expressions, named by its content, so that equal launches
share one and a changed node class never meets an old one. Source: AWS provider reference §2.4.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from kerf.ec2 import families, tags
from kerf.ec2.userdata import bottlerocket, userdata
from kerf.ec2.userdata.bootstrap import Bootstrap, is_ipv6
from kerf.model.aws.cloud import EFA, ONLY_RESERVED, ClusterFacts, HeldReservation, LaunchTemplate
from kerf.model.aws.instance_type import Reservation
from kerf_api.kubelet import reading
from kerf_api.kubelet.reading import Reserved
from kerf_api.v1.ec2nodeclass import EC2NodeClass, EC2NodeClassSpec, NetworkInterface
from kerf_api.v1.nodeclaim import NodeClaim

PREFIX = "karpenter.k8s.aws/"
#: Who asks for one of these gets a machine that can have enclaves; the second name is that of Karpenter 1.14.
ENCLAVES = ("eks.amazonaws.com/nitro-sandbox", "eks.amazonaws.com/nip-slots")

_PREFIXES_ALONE = b"IPv6 prefixes without an address"


@dataclass(frozen=True, slots=True)
class Variant:
    """What sets the templates of one launch apart: the types that share a template have these in common.

    `reserved` is what expressions of the class come to on them, `reservation` the one that is launched into; `efa`
    counts the interfaces for high-performance computing.
    """

    image_id: str
    max_pods: int
    reserved: Sequence[Reserved] = ()
    reservation: Reservation | None = None
    efa: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """Where machines stand: on whose hardware, and in which placement group (by ID; empty: in none) and partition."""

    tenancy: str = "default"
    placement_group: str = ""
    partition: int = 0


def build(
    claim: NodeClaim,
    node_class: EC2NodeClass,
    cluster: ClusterFacts,
    variant: Variant,
    *,
    capacity_type: str,
    reserved_capacity: bool = True,
    place: Place,
) -> LaunchTemplate:
    """The template of a claim's launch. Raises ValueError when the class's user data is malformed.

    With the gate `reserved_capacity` a launch that is not into a reservation leaves open ones to others.
    """
    spec, reservation = node_class.spec, variant.reservation
    template = LaunchTemplate(
        name="",
        image_id=variant.image_id,
        user_data=_user_data(claim, node_class, cluster, variant, capacity_type),
        instance_profile=node_class.status.instance_profile,
        security_group_ids=tuple(sorted(group.id for group in node_class.status.security_groups)),
        metadata_options=spec.metadata_options,
        block_device_mappings=spec.block_device_mappings or families.of(node_class.family).volumes,
        detailed_monitoring=bool(spec.detailed_monitoring),
        associate_public_ip_address=spec.associate_public_ip_address,
        tags=tags.launch(node_class, claim.pool_name, cluster.name),
        capacity_type=capacity_type,
        ip_prefix_count=spec.ip_prefix_count,
        connection_tracking=spec.connection_tracking,
        nested_virtualization=_nested(spec),
        ipv6=is_ipv6(cluster.dns_ip),
        network_interfaces=spec.network_interfaces or _efa(variant.efa),
        capacity_reservations=ONLY_RESERVED if reservation is not None else "none" if reserved_capacity else "",
        reservation=_held(reservation),
        enclaves=any(claim.requests()[name] for name in ENCLAVES),
        tenancy=place.tenancy,
        placement_group=place.placement_group,
        partition=place.partition,
    )
    return replace(template, name=_name(template))


def _nested(spec: EC2NodeClassSpec) -> str:
    return (spec.cpu_options.nested_virtualization or "") if spec.cpu_options is not None else ""


def _efa(count: int) -> tuple[NetworkInterface, ...]:
    """One on each network card, where the class lists no interfaces; the first is the machine's own."""
    return tuple(
        NetworkInterface(network_card_index=card, device_index=min(card, 1), interface_type=EFA)
        for card in range(count)
    )


def _held(reservation: Reservation | None) -> HeldReservation | None:
    if reservation is None:
        return None
    return HeldReservation(id=reservation.id, type=reservation.type, interruptible=reservation.interruptible)


def _name(template: LaunchTemplate) -> str:
    """`karpenter.k8s.aws/` and a 64-bit number in decimal, of the whole content.

    Older versions made templates with IPv6 prefixes that EC2 refuses to launch; such a template is not used again.
    """
    content = msgspec.json.encode(template, order="deterministic")
    if template.ipv6 and template.ip_prefix_count:
        content += _PREFIXES_ALONE
    return PREFIX + str(int.from_bytes(hashlib.sha256(content).digest()[:8], "big"))


def _user_data(
    claim: NodeClaim, node_class: EC2NodeClass, cluster: ClusterFacts, variant: Variant, capacity_type: str
) -> str:
    spec = node_class.spec
    inputs = Bootstrap(
        cluster=cluster,
        custom=spec.user_data,
        labels=userdata.claim_labels(claim, node_class.family, capacity_type),
        taints=userdata.claim_taints(claim),
        kubelet=reading.with_reserved(reading.without_nulls(spec.kubelet), variant.reserved),
        max_pods=variant.max_pods,
        raid0=spec.instance_store_policy == "RAID0",
        image_version=bottlerocket.version(node_class),
    )
    return userdata.render(node_class.family, inputs)
