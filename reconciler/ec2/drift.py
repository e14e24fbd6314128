"""Whether an instance is still what its EC2NodeClass would launch today.

Each verdict needs both sides of its comparison; where one is not known there is no verdict, never a guess. Source: AWS
provider reference §7.
"""

from __future__ import annotations

from bisect import bisect_left

from api import labels
from api.v1.ec2nodeclass import EC2NodeClass
from api.v1.hashes import NODECLASS_HASH_VERSION, nodeclass_hash
from api.v1.nodeclaim import NodeClaim
from reconciler.ec2 import images
from reconciler.model.cloud import Instance
from reconciler.model.instance_type import Catalogue

NODE_CLASS_DRIFT, AMI_DRIFT = "NodeClassDrift", "AMIDrift"
SECURITY_GROUP_DRIFT, SUBNET_DRIFT = "SecurityGroupDrift", "SubnetDrift"
RESERVATION_DRIFT = "CapacityReservationDrift"


def reason(
    claim: NodeClaim, node_class: EC2NodeClass, instance: Instance | None, catalogue: Catalogue, ca_bundle: str
) -> str | None:
    """The first reason, in the order above, why the claim's instance has drifted; None when it has not."""
    if not claim.pool_name or node_class.metadata.deleting:
        return None
    if _static(claim, node_class, ca_bundle):
        return NODE_CLASS_DRIFT
    if _image(claim, node_class, catalogue):
        return AMI_DRIFT
    if instance is None:
        return None
    groups = {group.id for group in node_class.status.security_groups}
    if groups and instance.security_group_ids and groups != set(instance.security_group_ids):
        return SECURITY_GROUP_DRIFT
    subnets = {subnet.id for subnet in node_class.status.subnets}
    if subnets and instance.subnet_id and instance.subnet_id not in subnets:
        return SUBNET_DRIFT
    held, selected = instance.reservation, {row.id for row in node_class.status.capacity_reservations}
    return RESERVATION_DRIFT if held is not None and held.id not in selected else None


def _static(claim: NodeClaim, node_class: EC2NodeClass, ca_bundle: str) -> bool:
    """Whether the hashes differ, both having the same version.

    The class's annotation may lag behind its spec, so a difference is checked against the spec itself.
    """
    mine, theirs = claim.metadata.annotations, node_class.metadata.annotations
    version = mine.get(labels.NODECLASS_HASH_VERSION)
    hashed, known = mine.get(labels.NODECLASS_HASH), theirs.get(labels.NODECLASS_HASH)
    if not version or not hashed or not known or version != theirs.get(labels.NODECLASS_HASH_VERSION):
        return False
    if hashed == known:
        return False
    return version != NODECLASS_HASH_VERSION or hashed != nodeclass_hash(node_class, ca_bundle)


def _image(claim: NodeClaim, node_class: EC2NodeClass, catalogue: Catalogue) -> bool:
    """Whether the class now maps the instance's type to another image."""
    name = claim.metadata.labels.get(labels.INSTANCE_TYPE, "")
    place = bisect_left(catalogue, name, key=lambda t: t.name)
    instance_type = catalogue[place] if place < len(catalogue) and catalogue[place].name == name else None
    if instance_type is None or not claim.status.image_id or not node_class.status.amis:
        return False
    current = images.pick(instance_type.requirements, images.table(node_class.status.amis))
    return current is not None and current != claim.status.image_id
