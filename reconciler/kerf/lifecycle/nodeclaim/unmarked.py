"""A NodeClaim that bears a launch group without Kerf's valid mark: nothing is launched by what stands there.

An earlier version of Kerf may have written it and called EC2 before it ended, or the key was lost. So Kerf waits for a
list of EC2 that would show the instances of such a call. It adopts them; without any it plans a new launch group.
"""

from __future__ import annotations

from typing import Final

from kerf.lifecycle.nodeclaim.assignment import turn
from kerf.lifecycle.view import View
from kerf.model import kinds
from kerf.model.aws.cloud import SHOWN_AFTER, Instance
from kerf.model.aws.launch_marks import MarkedLaunch
from kerf.model.plan import PatchObject, Plan, Reason
from kerf.model.writes import act
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim

UNMARKED: Final = "LaunchUnmarked"
_TEXT: Final = (
    f"the annotations {labels.LAUNCH_GROUP} and {labels.LAUNCH_REQUEST} have no valid mark of Kerf and have no effect: "
    "if EC2 shows no instance of that launch group within about a minute, Kerf plans another launch"
)


def step(view: View, claim: NodeClaim) -> Plan | Reason | None:
    """Adopt the launch group when EC2 shows instances for it, or say why the claim waits.

    None when the claim bears no unmarked group, or bears one of which no instance exists.
    """
    since = view.mark_of(claim).doubted_since
    if since is None:
        return None
    if not view.listed_after(since + SHOWN_AFTER):
        return Reason(UNMARKED, _TEXT)
    return _adoption(claim) if _adoptable(view, claim) else None


def attempt(view: View, claim: NodeClaim) -> int:
    """The number that distinguishes the next call from the one of an unmarked group (part of its group's hash)."""
    since = view.mark_of(claim).doubted_since
    return 0 if since is None else int(since.timestamp())


def may_get_instance(view: View, claim: NodeClaim) -> bool:
    """Whether an instance of its launch group may still become the claim's."""
    if claim.assigned_instance:
        return False
    since = view.mark_of(claim).doubted_since
    return since is None or not view.listed_after(since + SHOWN_AFTER)


def _adoptable(view: View, claim: NodeClaim) -> bool:
    group, snapshot = claim.metadata.annotations[labels.LAUNCH_GROUP], view.snapshot
    named = snapshot.instances.get(claim.assigned_instance)
    if named is not None:
        return _is_of(named, group) and len(snapshot.claims_by_instance.get(named.id, ())) == 1
    if claim.assigned_instance:
        return False
    return turn(view, claim, group) < len(snapshot.spare(group))


def _is_of(instance: Instance, group: str) -> bool:
    return (
        instance.live and instance.tags.get(labels.LAUNCH_GROUP) == group and labels.TAG_NODECLAIM not in instance.tags
    )


def _adoption(claim: NodeClaim) -> Plan:
    """The mark over the group as it stands; the request does not count, and goes."""
    group = claim.metadata.annotations[labels.LAUNCH_GROUP]
    patch = PatchObject(
        reason=Reason("AdoptLaunch", f"EC2 shows instances of the launch group of node claim {claim.name}"),
        verb="AdoptLaunch",
        ref=kinds.ref(claim),
        patch={"metadata": {"annotations": {labels.LAUNCH_GROUP: group, labels.LAUNCH_REQUEST: None}}},
        resource_version=claim.metadata.resource_version,
        marks=MarkedLaunch.of(claim, group, ""),
    )
    return act(patch)
