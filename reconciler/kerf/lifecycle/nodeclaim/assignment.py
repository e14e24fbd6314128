"""Dealing the instances of a launch group to its claims: in order of name and ID, each instance once.

First the choice is written to the claim together with the labels that the instance gives it; then the status says
Launched. A crash in between loses nothing, and what was chosen is never chosen again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from kerf.ec2 import instances
from kerf.lifecycle.nodeclaim.ownership import is_own
from kerf.lifecycle.nodeclaim.progress import Progress
from kerf.lifecycle.nodeclaim.registration import register
from kerf.lifecycle.view import View
from kerf.model.aws.cloud import Instance
from kerf.model.aws.instance_type import InstanceType
from kerf.model.writes import with_metadata
from kerf_api import labels
from kerf_api.v1.conditions import TRUE
from kerf_api.v1.nodeclaim import NodeClaim


def pairs(view: View, waiting: Iterable[NodeClaim]) -> Mapping[str, Instance]:
    """By claim name, the instance of its group that is to become its own. A choice that was written down stays."""
    chosen: dict[str, Instance] = {}
    open_claims: list[tuple[str, str]] = []
    for claim in waiting:
        group, instance_id = view.group_of(claim), claim.metadata.annotations.get(labels.INSTANCE, "")
        if instance_id:
            instance = view.snapshot.instances.get(instance_id)
            if instance is not None and is_own(view, claim, instance):
                chosen[claim.name] = instance
        elif group:
            open_claims.append((group, claim.name))
    for group, members in groupby(sorted(open_claims), key=lambda member: member[0]):
        names = [name for _, name in members]
        chosen.update(zip(names, view.snapshot.spare(group), strict=False))
    return chosen


def turn(view: View, claim: NodeClaim, group: str) -> int:
    """How many claims without an instance come before this one when spare instances of the group are dealt: those with
    a valid mark, of these the ones that stay, then by name."""
    waiting = (one for one in view.snapshot.claims_by_group.get(group, ()) if not one.assigned_instance)
    own = _rank(view, claim)
    return sum(_rank(view, other) < own for other in waiting)


def _rank(view: View, claim: NodeClaim) -> tuple[bool, bool, str]:
    marked = view.mark_of(claim).group
    return not marked, marked and claim.metadata.deleting, claim.name


def assign(progress: Progress, instance: Instance) -> Progress:
    """The claim with its instance: labels and the choice in the metadata, the machine in the status."""
    claim = progress.claim
    sold = (t for t in progress.view.types_of(claim) if t.name == instance.instance_type)
    kind = next((t.launched(instance.zone, instance.capacity_type) for t in sold), None)
    if claim.metadata.annotations.get(labels.INSTANCE) != instance.id:
        return _with_labels(progress, instance, kind)
    status = instances.claim_status(claim, instance, kind)
    known = progress.with_status(
        provider_id=status["providerID"],
        image_id=status["imageID"],
        capacity=status.get("capacity", claim.status.capacity),
        allocatable=status.get("allocatable", claim.status.allocatable),
    )
    return register(known.condition("Launched", TRUE))


def _with_labels(progress: Progress, instance: Instance, kind: InstanceType | None) -> Progress:
    """The claim's own labels win over the instance's, and its hashes (it may have been re-hashed) over the class's. The
    request has served its purpose."""
    claim, node_class = progress.claim, progress.view.class_of(progress.claim)
    given = instances.claim_labels(instance, kind, node_class)
    notes = {key: value for key, value in claim.metadata.annotations.items() if key != labels.LAUNCH_REQUEST}
    notes[labels.INSTANCE] = instance.id
    if node_class is not None:
        stamps = (labels.NODECLASS_HASH, labels.NODECLASS_HASH_VERSION)
        profile = instance.profile or node_class.status.instance_profile  # the class's may be another one by now
        known = {**node_class.metadata.annotations, labels.INSTANCE_PROFILE: profile}
        notes = {key: known[key] for key in (*stamps, labels.INSTANCE_PROFILE) if known.get(key)} | notes
    return progress.with_claim(with_metadata(claim, labels={**given, **claim.metadata.labels}, annotations=notes))
