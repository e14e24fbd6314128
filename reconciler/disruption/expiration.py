"""Expiration: a NodeClaim that has reached its `expireAfter` is deleted, whatever budgets say; so is one in a capacity
block that is about to end, for EC2 then ends its instance.

Claims that were born together would all go at once; so each goes a little earlier, by up to a tenth of its life, as a
hash of its UID has it. Never later: the age is a promise. Source: disruption reference §5.1, with the jitter as ours.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from api import durations, labels
from api.v1.nodeclaim import NodeClaim
from reconciler.model import kinds
from reconciler.model.memory import Turn, planning, said
from reconciler.model.plan import NOTHING, DeleteObject, Plan, Reason, Source
from reconciler.model.snapshot import Snapshot

#: Lives shorter than this are not shortened.
JITTER_FROM = timedelta(hours=1)
_SHARE = 10
_STEPS = 2**32


def expire(turn: Turn) -> Plan:
    """Delete what has expired; due again when the next claim does."""
    return said(turn.all(_EXPIRY, turn.noted))


def _one(snapshot: Snapshot, name: str) -> Plan:
    claim = snapshot.node_claims[name]
    if claim.metadata.deleting or claim.metadata.unreadable or not claim.managed:
        return NOTHING
    block = _ending_block(snapshot, claim)
    if block:
        text = f"its capacity block {block} is about to end"
        return Plan(actions=(_deletion(claim, Reason("CapacityBlockExpiring", text)),))
    try:
        due = expires_at(claim, snapshot.now)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"expireAfter: {error}") from error
    if due is None or due > snapshot.now:
        return Plan(next_due=due)
    return Plan(
        actions=(_deletion(claim, Reason("Expired", f"older than its expireAfter of {claim.spec.expire_after}")),)
    )


def _ending_block(snapshot: Snapshot, claim: NodeClaim) -> str:
    """The ID of the claim's capacity reservation, if that is about to end and takes its instances with it."""
    id_ = claim.metadata.labels.get(labels.RESERVATION_ID, "")
    node_class = snapshot.node_classes.get(claim.spec.node_class_ref.name) if id_ else None
    known = node_class.status.capacity_reservations if node_class is not None else ()
    return id_ if any(row.id == id_ and row.state == "expiring" for row in known) else ""


_EXPIRY = planning("expiry", "node_claims", "nodeclaim", _one)


def expires_at(claim: NodeClaim, now: datetime) -> datetime | None:
    """When the claim goes; None when it never expires. Raises ValueError on a malformed duration.

    Long before that, the earliest instant that jitter could give is near enough, and spares the hash.
    """
    life = durations.parse_nillable(claim.spec.expire_after)
    if life is None or claim.metadata.creation_timestamp is None:
        return None
    at = claim.metadata.creation_timestamp + life
    earliest_at = at - life / _SHARE
    return earliest_at if now < earliest_at else at - _jitter(claim.metadata.uid, life)


def _jitter(uid: str, life: timedelta) -> timedelta:
    """Between nothing and a tenth of the life, the same for the same UID."""
    if life < JITTER_FROM:
        return timedelta(0)
    drawn = int.from_bytes(hashlib.sha256(f"expire {uid}".encode()).digest()[:4])
    return timedelta(seconds=int(life.total_seconds()) * drawn // (_STEPS * _SHARE))


def _deletion(claim: NodeClaim, reason: Reason) -> DeleteObject:
    return DeleteObject(
        reason=reason,
        sources=frozenset({Source.NODE_CLAIMS, Source.PODS}),  # its drain could not go on without them
        ref=kinds.ref(claim),
        uid=claim.metadata.uid,
    )
