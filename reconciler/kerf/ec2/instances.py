"""What a launched instance makes of its NodeClaim: labels, and the status fields that describe the machine."""

from __future__ import annotations

from typing import Any

from kerf.ec2.instance_types.capacity import EFA_RESOURCE
from kerf.model.aws.cloud import Instance
from kerf.model.aws.instance_type import InstanceType
from kerf_api import labels
from kerf_api.requirements import DOES_NOT_EXIST
from kerf_api.resources import Resources
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.nodeclaim import NodeClaim

_TENANCY = f"{labels.AWS_GROUP}/instance-tenancy"


def claim_labels(
    instance: Instance, instance_type: InstanceType | None, node_class: EC2NodeClass | None
) -> dict[str, str]:
    """The labels that the instance gives its claim, keys sorted: those of its type, and where and how it runs."""
    found: dict[str, str] = {labels.INSTANCE_TYPE: instance.instance_type}
    if instance_type is not None:
        for key, row in instance_type.requirements.items():
            if not row.complement and len(row.values) == 1:
                found[key] = min(row.values)
    found[_TENANCY] = instance.tenancy
    found[labels.ZONE] = instance.zone
    found[labels.CAPACITY_TYPE] = instance.capacity_type
    held = instance.reservation
    if held is not None:
        found |= labels.of_reservation(held.id, held.type, held.interruptible)
    found |= _placed(instance, instance_type)
    found.pop(labels.ZONE_ID, None)
    zone_id = _zone_id(instance, node_class)
    if zone_id:
        found[labels.ZONE_ID] = zone_id
    if instance.tags.get(labels.TAG_NODEPOOL):
        found[labels.NODEPOOL] = instance.tags[labels.TAG_NODEPOOL]
    return dict(sorted(found.items()))


def claim_status(claim: NodeClaim, instance: Instance, instance_type: InstanceType | None) -> dict[str, Any]:
    """`providerID`, `imageID`, `capacity` and `allocatable` as a status patch writes them.

    What is known already stays when the instance or its type is no longer listed. Interfaces for high-performance
    computing are listed where the instance has some.
    """
    status: dict[str, Any] = {
        "providerID": instance.provider_id,
        "imageID": instance.image_id or claim.status.image_id,
    }
    if instance_type is not None:
        status["capacity"] = _texts(instance_type.capacity, instance)
        status["allocatable"] = _texts(instance_type.allocatable, instance)
    return status


def _placed(instance: Instance, instance_type: InstanceType | None) -> dict[str, str]:
    """Where it is in its placement group; of a partition that EC2 has not returned yet the label is empty."""
    if not instance.placement_group:
        return {}
    known = instance_type.requirements.get(labels.PLACEMENT_PARTITION) if instance_type is not None else None
    partitioned = instance.partition or (known is not None and known.operator != DOES_NOT_EXIST)
    number = {labels.PLACEMENT_PARTITION: str(instance.partition or "")} if partitioned else {}
    return {labels.PLACEMENT_GROUP: instance.placement_group, **number}


def _texts(amounts: Resources, instance: Instance) -> dict[str, str]:
    shown = {name: value for name, value in amounts.items() if value and (name != EFA_RESOURCE or instance.efa)}
    return Resources(shown).texts()


def _zone_id(instance: Instance, node_class: EC2NodeClass | None) -> str:
    subnets = node_class.status.subnets if node_class is not None else ()
    known = (subnet.zone_id for subnet in subnets if subnet.zone == instance.zone and subnet.zone_id)
    return next(known, instance.zone_id)
