"""What a claim has drifted by, in words: the field, and what it is on either side, as far as the claim still shows it.

A hash says that something differs and not what; so what the claim was made from is held against the template as it is
now. A value that is lost (a label that the template no longer has) is reported as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kerf.model.aws.cloud import Instance
from kerf_api import durations, labels
from kerf_api.requirements import DOES_NOT_EXIST, NOT_IN, Requirements
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import Taint
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool


def of_template(claim: NodeClaim, pool: NodePool) -> str:
    """The fields of `spec.template` in which claim and pool differ."""
    found = [*_of_maps("label", claim.metadata.labels, pool.spec.template.metadata.labels)]
    found += _of_maps("annotation", claim.metadata.annotations, pool.spec.template.metadata.annotations)
    mine, theirs = claim.spec, pool.spec.template.spec
    found += _of_taints("taints", mine.taints, theirs.taints)
    found += _of_taints("startupTaints", mine.startup_taints, theirs.startup_taints)
    one, two = mine.node_class_ref, theirs.node_class_ref
    if one != two:
        found.append(f"nodeClassRef was {one.kind} {one.name}, now {two.kind} {two.name}")
    found += _of_durations("expireAfter", mine.expire_after, theirs.expire_after)
    found += _of_durations("terminationGracePeriod", mine.termination_grace_period, theirs.termination_grace_period)
    return "; ".join(found) or "the template has lost a label or an annotation that the node has"


def _of_maps(what: str, mine: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[str]:
    for key in sorted(theirs):
        if mine.get(key) != theirs[key]:
            before = f"was {mine[key]!r}" if key in mine else "was not there"
            yield f"{what} {key} {before}, now {theirs[key]!r}"


def _of_taints(field: str, mine: Iterable[Taint], theirs: Iterable[Taint]) -> Iterator[str]:
    one, two = ({(t.key, t.value, t.effect): str(t) for t in side} for side in (mine, theirs))
    gone, come = (sorted(text for key, text in a.items() if key not in b) for a, b in ((one, two), (two, one)))
    parts = [f"has lost {', '.join(gone)}"] if gone else []
    parts += [f"has got {', '.join(come)}"] if come else []
    if parts:
        yield f"{field} {' and '.join(parts)}"


def _of_durations(field: str, mine: str | None, theirs: str | None) -> Iterator[str]:
    if _length(mine) != _length(theirs):
        yield f"{field} was {mine or 'not there'}, now {theirs or 'not there'}"


def _length(text: str | None) -> object:
    try:
        return None if text is None else durations.parse_nillable(text)
    except ValueError:
        return text


def of_requirements(wanted: Requirements, own: Mapping[str, str]) -> str:
    """The labels that fall outside the requirements."""
    return "; ".join(violations(wanted, own))


def violations(wanted: Requirements, own: Mapping[str, str]) -> Iterator[str]:
    """A label that is not there meets only what accepts its absence."""
    for key, row in wanted.items():
        value = own.get(key)
        if value is not None and not row.has(value):
            yield f"label {key} is {value!r}, the NodePool requires {row}"
        elif value is None and row.operator not in (NOT_IN, DOES_NOT_EXIST):
            yield f"label {key} is not there, the NodePool requires {row}"


def of_type(claim: NodeClaim) -> str:
    own = claim.metadata.labels
    name, zone = own.get(labels.INSTANCE_TYPE, "without a label"), own.get(labels.ZONE, "")
    return f"{name} in {zone or 'any zone'} as {own.get(labels.CAPACITY_TYPE, 'anything')} is not offered any more"


def of_provider(
    claim: NodeClaim, node_class: EC2NodeClass, instance: Instance | None, placement_group: str
) -> Mapping[str, str]:
    """By reason, what is on either side. `placement_group` is the ID of the one that the class is for."""
    placed = claim.metadata.labels.get(labels.PLACEMENT_GROUP)
    images = ", ".join(sorted(image.id for image in node_class.status.amis))
    groups = ", ".join(sorted(group.id for group in node_class.status.security_groups))
    found = {
        "NodeClassDrift": f"the spec of EC2NodeClass {node_class.name} has changed",
        "AMIDrift": f"the image is {claim.status.image_id}, EC2NodeClass {node_class.name} has {images}",
        "PlacementGroupDrift": f"the placement group is {placed or 'none'}, now {placement_group or 'none'}",
    }
    if instance is None:
        return found
    held = instance.reservation
    return {
        **found,
        "SecurityGroupDrift": f"security groups are {', '.join(sorted(instance.security_group_ids))}, now {groups}",
        "SubnetDrift": f"subnet {instance.subnet_id} is not selected any more",
        "CapacityReservationDrift": f"reservation {held.id if held is not None else ''} is not selected any more",
    }
