"""Whether a NodeClaim has drifted from what its NodePool and node class ask for now; the first reason found.

The template's hash comes first, then requirements, then whether the type is still offered, then what EC2 says.
Source: disruption reference §4.1 to §4.3, AWS reference §7.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from kerf.disruption.drift import drift_detail as detail
from kerf.disruption.view import View
from kerf.ec2.nodeclass import drift as ec2_drift
from kerf.model.aws.instance_type import InstanceType
from kerf.model.claims import differs
from kerf.model.plan import Source
from kerf.model.snapshot import Snapshot
from kerf_api import labels
from kerf_api.requirements import Requirements
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

#: A younger claim's type is not looked up: the catalogue may be behind.
_TYPE_CHECK_AGE: Final = timedelta(hours=1)
_TEMPLATE, _REQUIREMENTS, _TYPE = "NodePoolDrifted", "RequirementsDrifted", "InstanceTypeNotFound"
_DEMOTABLE = (labels.RESERVED, labels.ON_DEMAND)


def drift_reason(view: View, claim: NodeClaim, pool: NodePool) -> str | None:
    """The reason's name, or "" when the claim has not drifted; None when that is unknown now."""
    if not claim.is_true("Launched"):
        return ""
    if differs(claim, pool, labels.NODEPOOL_HASH, labels.NODEPOOL_HASH_VERSION):
        return _TEMPLATE
    wanted = view.requirements_of(pool)
    if wanted is None:
        return None
    if any(detail.violations(wanted, claim.metadata.labels)):
        return _REQUIREMENTS
    if _type_is_gone(view, claim, pool):
        return _TYPE
    return _provider_reason(view, claim)


def drift_detail(view: View, claim: NodeClaim, pool: NodePool, reason: str) -> str:
    """What is on either side of a drift of this reason, for a person."""
    if reason == _TEMPLATE:
        return detail.of_template(claim, pool)
    if reason == _REQUIREMENTS:
        return detail.of_requirements(view.requirements_of(pool) or Requirements(()), claim.metadata.labels)
    if reason == _TYPE:
        return detail.of_type(claim)
    node_class = view.snapshot.node_classes.get(claim.spec.node_class_ref.name)
    instance = view.snapshot.instances.get(claim.instance_id)
    if node_class is None:
        return ""
    group = ec2_drift.selected_group(node_class, view.snapshot.class_facts.get(node_class.name))
    return detail.of_provider(claim, node_class, instance, group or "").get(reason, "")


def _type_is_gone(view: View, claim: NodeClaim, pool: NodePool) -> bool:
    created = claim.metadata.creation_timestamp
    types = view.types_of(pool)
    if not types or created is None or view.snapshot.now - created < _TYPE_CHECK_AGE:
        return False
    found = types.get(claim.metadata.labels.get(labels.INSTANCE_TYPE, ""))
    return found is None or not _offered(found, claim)


def type_check_due(claim: NodeClaim, now: datetime) -> datetime | None:
    """When the claim's type will be looked up; None when that is done already."""
    created = claim.metadata.creation_timestamp
    due = created + _TYPE_CHECK_AGE if created is not None else None
    return due if due is not None and due > now else None


def _offered(instance_type: InstanceType, claim: NodeClaim) -> bool:
    """Whether the type still has the claim's zone and capacity type, in stock or not; reserved may become on-demand."""
    zone = claim.metadata.labels.get(labels.ZONE)
    capacity_type = claim.metadata.labels.get(labels.CAPACITY_TYPE)
    accepted = _DEMOTABLE if capacity_type == labels.RESERVED else (capacity_type,)
    return any(
        (zone is None or o.zone == zone) and (capacity_type is None or o.capacity_type in accepted)
        for o in instance_type.offerings
    )


def _provider_reason(view: View, claim: NodeClaim) -> str | None:
    snapshot = view.snapshot
    node_class = snapshot.node_classes.get(claim.spec.node_class_ref.name)
    if node_class is None or node_class.metadata.deleting:
        return ""
    instance = snapshot.instances.get(claim.instance_id)
    catalogue = snapshot.catalogues.get(node_class.name, ())
    ca_bundle = snapshot.cluster.ca_bundle if snapshot.cluster is not None else ""
    facts = snapshot.class_facts.get(node_class.name)
    found = ec2_drift.reason(claim, node_class, instance, catalogue, ca_bundle, facts)
    return _reservation_reason(snapshot, node_class.name) if found == ec2_drift.RESERVATION_DRIFT else found


def _reservation_reason(snapshot: Snapshot, class_name: str) -> str | None:
    """Of an instance in a reservation that its class does not select: one whose reservation has come to its end is on
    demand, and stays; so the instances have to be listed later than the reservations were."""
    if not snapshot.settings.gates.reserved_capacity:
        return ""
    listed, asked = snapshot.fresh_at.get(Source.INSTANCES), snapshot.resolved_at.get(class_name)
    return ec2_drift.RESERVATION_DRIFT if listed is not None and asked is not None and listed > asked else None
