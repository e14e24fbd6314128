"""Whose deletion it is that a NodeClaim waits for: Kerf notes on a claim why it deletes it, before it does.

A claim that is being deleted does not say by whom. One with a command, or with a note of its own time, goes because
Kerf has decided so; any other was deleted by another client: a person, a garbage collector, the end of its NodePool or
of its definition. Only such deletions are held up when they are many (`lifecycle/termination/deletion_guard.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from kerf.model import kinds
from kerf.model.instants import SKEW, rfc3339
from kerf.model.plan import Action, DeleteObject, PatchObject, Reason
from kerf.model.snapshot import Snapshot
from kerf_api import bounds, labels
from kerf_api.v1.nodeclaim import NodeClaim

#: The reason of a deletion that follows a person's, of the claim's Node.
NODE_DELETED: Final = "NodeDeleted"
#: The condition of a claim whose deletion by another client is delayed.
HELD: Final = "DeletionHeld"
#: A deletion that is noted follows at once; one that comes later is another one's.
_FOLLOWS_WITHIN: Final = timedelta(minutes=5)
_NOTED_ANEW_AFTER: Final = timedelta(minutes=1)


def by_us(claim: NodeClaim) -> bool:
    """Whether Kerf has decided that this claim, which is being deleted, goes."""
    if labels.COMMAND in claim.metadata.annotations:
        return True
    noted, deleted = _noted_at(claim), claim.metadata.deletion_timestamp
    return noted is not None and (deleted is None or noted - SKEW <= deleted <= noted + _FOLLOWS_WITHIN)


def code(claim: NodeClaim) -> str:
    """The code of the reason that Kerf has noted; empty without a note."""
    return claim.metadata.annotations.get(labels.ENDS, "").partition(" ")[2]


def note(claim: NodeClaim, reason: Reason, now: datetime) -> PatchObject:
    """The claim with a note why Kerf ends it. It rests on nothing that was read: whatever has changed, it goes."""
    notes = {labels.ENDS: f"{rfc3339(now)} {reason.code}"}
    patch = {"metadata": {"annotations": notes}}
    return PatchObject(reason=reason, verb="NoteEnd", ref=kinds.ref(claim), patch=patch)


def noted(snapshot: Snapshot, actions: Iterable[Action]) -> Iterator[Action]:
    """These actions, each deletion of a claim that has a Node after a note on that claim. They share a lane, so a note
    that cannot be written stops the deletion."""
    for action in actions:
        if isinstance(action, DeleteObject) and (claim := _to_note(snapshot, action)) is not None:
            yield note(claim, action.reason, snapshot.now)
        yield action


def _to_note(snapshot: Snapshot, action: DeleteObject) -> NodeClaim | None:
    if action.ref.kind != kinds.NODE_CLAIM.name or action.reason.code == NODE_DELETED:
        return None
    claim = snapshot.node_claims.get(action.ref.name)
    if claim is None or not claim.is_true("Registered") or labels.COMMAND in claim.metadata.annotations:
        return None
    at = _noted_at(claim)
    return claim if at is None or at + _NOTED_ANEW_AFTER < snapshot.now else None


def _noted_at(claim: NodeClaim) -> datetime | None:
    """When that was; None without a note, or with one that makes no sense."""
    try:
        return bounds.instant_of(claim.metadata.annotations.get(labels.ENDS, "").partition(" ")[0])
    except ValueError:
        return None
