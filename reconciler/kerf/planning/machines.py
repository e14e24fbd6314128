"""Instances that a snapshot does not list: a live cluster is read without them, and manifests have none.

A launched NodeClaim has most data of its instance: type, zone, capacity type and image. Kerf assumes the subnets and
security groups that the EC2NodeClass selects.
"""

from __future__ import annotations

from collections.abc import Iterator

from kerf.model.aws.cloud import ClassFacts, Instance
from kerf.model.snapshot import Snapshot
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim


def instances(snapshot: Snapshot) -> Iterator[Instance]:
    """Return the instances of a snapshot, and one for each launched NodeClaim whose instance it does not list."""
    yield from snapshot.instances.values()
    for claim in snapshot.node_claims.values():
        if claim.instance_id and claim.instance_id not in snapshot.instances and claim.is_true("Launched"):
            yield _of(snapshot, claim)


def _of(snapshot: Snapshot, claim: NodeClaim) -> Instance:
    own, class_name = claim.metadata.labels, claim.spec.node_class_ref.name
    zone, facts = own.get(labels.ZONE, ""), snapshot.class_facts.get(class_name, ClassFacts(0))
    launched = claim.condition("Launched")
    return Instance(
        claim.instance_id,
        own.get(labels.INSTANCE_TYPE, ""),
        zone,
        "running",
        own.get(labels.CAPACITY_TYPE, labels.ON_DEMAND),
        (launched.last_transition_time if launched is not None else None) or snapshot.now,
        image_id=claim.status.image_id,
        subnet_id=next((one.id for one in facts.subnets if one.zone == zone), ""),
        security_group_ids=tuple(one.id for one in facts.security_groups),
        tags={
            labels.cluster_tag(snapshot.settings.cluster_name): "owned",
            labels.TAG_EKS_CLUSTER: snapshot.settings.cluster_name,
            labels.TAG_NODEPOOL: claim.pool_name,
            labels.TAG_NODECLASS: class_name,
            labels.TAG_NODECLAIM: claim.name,
            labels.TAG_NAME: claim.status.node_name,
        },
        zone_id=next((one.zone_id for one in facts.subnets if one.zone == zone), ""),
        profile=facts.instance_profile,
    )
