"""Termination of an instance by its ID, when a list of EC2 shows it and it is the claim's own (`ownership`).

It is gone only when a list that EC2 completed since then lacks it.

A claim that never launched may still have an instance on its way: its launch call may have been made. Such an instance
is recognised by the group's tag, given to the claim, and terminated like any other.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from kerf.lifecycle.nodeclaim.assignment import turn
from kerf.lifecycle.nodeclaim.outcomes import mismatched, shown_from
from kerf.lifecycle.nodeclaim.ownership import is_own, kept
from kerf.lifecycle.nodeclaim.progress import Progress
from kerf.lifecycle.shifted_zones import claim_held
from kerf.lifecycle.view import View
from kerf.model.aws.cloud import SHOWN_AFTER
from kerf.model.claims import since
from kerf.model.failures import TERMINATION_FAILED, key
from kerf.model.plan import Plan, Reason, Source, TerminateInstance
from kerf.model.writes import act, stale, with_annotations
from kerf_api import labels
from kerf_api.v1.conditions import TRUE, UNKNOWN
from kerf_api.v1.nodeclaim import NodeClaim

#: How soon to look again for an instance that is shutting down or on its way.
_LOOK_AGAIN = timedelta(seconds=5)
_DESTROYS = (Source.PODS, Source.NODES, Source.NODE_CLAIMS)


def terminate(progress: Progress) -> tuple[Progress, bool]:
    """The instance's termination, asked for again while it is seen alive afterwards; and whether it is gone."""
    view, claim = progress.view, progress.claim
    instance_id = claim.assigned_instance
    if _shared(view, claim):
        return progress, True
    instance, asked = view.snapshot.instances.get(instance_id), claim.condition("InstanceTerminating")
    if instance is not None and instance.live and not is_own(view, claim, instance):
        return progress.also(kept(view, claim, instance)), True
    begun = asked is not None and asked.status == TRUE
    listed = asked is not None and view.listed_after(since(claim, "InstanceTerminating", view.now))
    if begun and listed and instance is None:
        return progress, True
    progress = progress.also(Plan(next_due=view.snapshot.now + _LOOK_AGAIN))
    if instance is not None and not instance.live:  # it ends already, whichever client has asked for that
        return progress.condition("InstanceTerminating", TRUE), False
    if instance is None and not begun:  # nothing that no list has shown is terminated
        held = claim_held(view, claim, None)
        return (progress, view.listed_after(_shows_from(view, claim))) if held is None else (progress.also(held), False)
    alive_still = instance is not None and listed
    if begun and not alive_still:
        return progress, False
    held = claim_held(view, claim, instance)
    return (_ask(progress, instance_id) if held is None else progress.also(held)), False


def _shows_from(view: View, claim: NodeClaim) -> datetime | None:
    """The instant from which the absence of the claim's instance counts. A status that was changed after the
    registration, and names an instance without a Node of the claim, must not have another claim's node drained."""
    deleted = claim.metadata.deletion_timestamp or view.snapshot.now
    owners = (owner for node in view.nodes_of(claim) for owner in node.metadata.owner_references)
    changed = claim.is_true("Registered") and not any(owner.uid == claim.metadata.uid for owner in owners)
    return deleted if changed else shown_from(claim, deleted, view.now)


def _shared(view: View, claim: NodeClaim) -> bool:
    """Another claim has the same instance: it is not this one's to end."""
    others = view.claims.get(claim.status.provider_id, ())
    return any(other.name != claim.name for other in others)


def _ask(progress: Progress, instance_id: str) -> Progress:
    snapshot, claim = progress.view.snapshot, progress.claim
    refusal = stale(snapshot, f"nodeclaim/{claim.name}", _DESTROYS)
    if refusal is not None:
        return progress.also(refusal)
    action = TerminateInstance(
        reason=Reason("Terminating", f"node claim {claim.name} is being deleted"),
        sources=frozenset(_DESTROYS),
        instance_id=instance_id,
    )
    failure = snapshot.failures.get(key("TerminateInstance", action.lane))
    if failure is not None:  # it is not on its way to its end
        return progress.condition("InstanceTerminating", UNKNOWN, TERMINATION_FAILED, failure.text).also(act(action))
    return progress.condition("InstanceTerminating", TRUE).also(act(action))


def adopt_or_release(progress: Progress) -> tuple[Progress, bool]:
    """For a claim without an instance: the one that its launch group has left over, or that none can come any more."""
    view, claim = progress.view, progress.claim
    group = view.group_of(claim)
    if not group:  # an instance that was launched for it all the same is an orphan
        return progress, True
    spare = view.snapshot.spare(group)[turn(view, claim, group) :]
    if spare:
        return progress.with_claim(with_annotations(claim, {labels.INSTANCE: spare[0].id})), False
    since, failure = claim.metadata.deletion_timestamp, view.snapshot.launch_failures.get(group)
    if failure is not None and not mismatched(failure):
        return progress, True
    if since is not None and view.listed_after(since + SHOWN_AFTER):
        return progress, True
    return progress.also(Plan(next_due=view.snapshot.now + _LOOK_AGAIN)), False
