"""Whether an instance is still what its EC2NodeClass would launch today.

Each verdict needs both sides of its comparison; where one is not known there is no verdict, never a guess. Source: AWS
provider reference §7.
"""

from __future__ import annotations

from bisect import bisect_left

from kerf.ec2 import images
from kerf.model.aws.cloud import ClassFacts, Instance
from kerf.model.aws.instance_type import Catalogue, InstanceType
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.hashes import NODECLASS_HASH_VERSION, nodeclass_hash
from kerf_api.v1.nodeclaim import NodeClaim

NODE_CLASS_DRIFT, AMI_DRIFT = "NodeClassDrift", "AMIDrift"
SECURITY_GROUP_DRIFT, SUBNET_DRIFT = "SecurityGroupDrift", "SubnetDrift"
RESERVATION_DRIFT, PLACEMENT_GROUP_DRIFT = "CapacityReservationDrift", "PlacementGroupDrift"


def reason(
    claim: NodeClaim,
    node_class: EC2NodeClass,
    instance: Instance | None,
    catalogue: Catalogue,
    ca_bundle: str,
    facts: ClassFacts | None = None,
) -> str | None:
    """The first reason, in the order above, why the claim's instance has drifted; "" when it has not.

    None when there is none, but not all could be compared. `facts` are what AWS says of the class.
    """
    if not claim.pool_name or node_class.metadata.deleting:
        return ""
    if _static(claim, node_class, ca_bundle):
        return NODE_CLASS_DRIFT
    verdicts = {
        AMI_DRIFT: _image(claim, node_class, catalogue, facts),
        SECURITY_GROUP_DRIFT: _groups(node_class, instance),
        SUBNET_DRIFT: _subnet(node_class, instance),
        RESERVATION_DRIFT: _reservation(node_class, instance),
        PLACEMENT_GROUP_DRIFT: _placement_group(claim, node_class, facts),
    }
    found = next((name for name, drifted in verdicts.items() if drifted), None)
    return found or (None if None in verdicts.values() else "")


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


def _image(claim: NodeClaim, node_class: EC2NodeClass, catalogue: Catalogue, facts: ClassFacts | None) -> bool | None:
    """Whether the class maps the instance's type to another image, or to none; None when one side is not known."""
    name = claim.metadata.labels.get(labels.INSTANCE_TYPE, "")
    place = bisect_left(catalogue, name, key=lambda t: t.name)
    instance_type = catalogue[place] if place < len(catalogue) and catalogue[place].name == name else None
    if instance_type is None or not claim.status.image_id or not node_class.status.amis:
        return None
    current = images.pick(instance_type.requirements, images.table(node_class.status.amis))
    if current is None:
        return True if _without_image(node_class, instance_type, facts) else None
    return current != claim.status.image_id


def _without_image(node_class: EC2NodeClass, instance_type: InstanceType, facts: ClassFacts | None) -> bool:
    """Whether the class has no image for the type, such as one of its architecture, and AWS has answered in full.

    A selector or a parameter that names no image at the moment may be the one for this type.
    """
    if facts is None or facts.generation != node_class.metadata.generation or "AMIsReady" in facts.problems:
        return False
    found = images.listed(facts.images)
    return (
        facts.images_complete and bool(found) and images.pick(instance_type.requirements, images.table(found)) is None
    )


def _groups(node_class: EC2NodeClass, instance: Instance | None) -> bool | None:
    wanted = {group.id for group in node_class.status.security_groups}
    if instance is None or not wanted or not instance.security_group_ids:
        return None
    return wanted != set(instance.security_group_ids)


def _subnet(node_class: EC2NodeClass, instance: Instance | None) -> bool | None:
    wanted = {subnet.id for subnet in node_class.status.subnets}
    if instance is None or not wanted or not instance.subnet_id:
        return None
    return instance.subnet_id not in wanted


def _reservation(node_class: EC2NodeClass, instance: Instance | None) -> bool | None:
    """Whether the class selects the instance's reservation no more; who is in none has not drifted."""
    if instance is None:
        return None
    held, selected = instance.reservation, {row.id for row in node_class.status.capacity_reservations}
    return held is not None and held.id not in selected


def selected_group(node_class: EC2NodeClass, facts: ClassFacts | None) -> str | None:
    """The ID of the placement group that the class is for, "" when it is for none; None when it is not known."""
    if node_class.spec.placement_group_selector is None:
        return ""
    known = facts is not None and facts.generation == node_class.metadata.generation
    return facts.placement_group.id if facts is not None and known and facts.placement_group is not None else None


def _placement_group(claim: NodeClaim, node_class: EC2NodeClass, facts: ClassFacts | None) -> bool | None:
    selected = selected_group(node_class, facts)
    return None if selected is None else claim.metadata.labels.get(labels.PLACEMENT_GROUP, "") != selected
