"""Expiration: a NodeClaim that has reached its `expireAfter` is deleted, whatever its pods say; so is one in a capacity
block that is about to end, for EC2 then ends its instance.

Claims that were born together would all expire at once; so each expires a little earlier, as a hash of its UID has it,
and for some time before that its successor is made ready (`retirement.py`). Never later, and never earlier than by a
tenth of its life: the age is a promise. With `EXPIRE_WITHIN_BUDGETS` a claim that has expired waits until its
NodePool's budgets allow it.

A NodeClaim of another controller (Karpenter, before Kerf took over) keeps the end that its people know: no jitter. If
it was over when Kerf began to lead, it waits for the budgets, for a day at most: a fleet that has grown old meanwhile
is not replaced in a minute. Source: disruption reference §5.1, with jitter, successor and budgets as ours.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kerf.disruption.on_nodes import ended, leaving
from kerf.model import kinds
from kerf.model.memory import Turn, planning
from kerf.model.plan import NOTHING, DeleteObject, Plan, Reason, Source
from kerf.model.snapshot import Snapshot
from kerf_api import durations, labels
from kerf_api.v1.budgets import EXPIRED
from kerf_api.v1.nodeclaim import NodeClaim

#: Lives shorter than this have no jitter.
JITTER_FROM: Final = timedelta(hours=1)
#: A successor is sought so long before the end, or for a twentieth of the life where that is shorter.
LEAD: Final = timedelta(minutes=10)
#: NodeClaims that had expired before Kerf began to lead wait so long for the budgets.
PACED_FOR: Final = timedelta(hours=24)
_SHARE: Final = 10
_STEPS: Final = 2**32


@dataclass(frozen=True, slots=True)
class End:
    """When a claim is removed; from `prepared_from` on its successor is made ready, and it is removed then.

    From `at` to `latest` it waits for the budgets of its NodePool; None for no limit.
    """

    prepared_from: datetime
    at: datetime
    latest: datetime | None

    @property
    def paced(self) -> bool:
        """Whether budgets count at all."""
        return self.latest != self.at


def expire(turn: Turn) -> Plan:
    """Delete what has expired; due again when the next claim does."""
    return turn.all(_EXPIRY, turn.noted).plan


def _one(snapshot: Snapshot, name: str) -> Plan:
    claim = snapshot.node_claims[name]
    if claim.metadata.deleting or claim.metadata.unreadable or not claim.managed:
        return NOTHING
    block = _ending_block(snapshot, claim)
    if block:
        text = f"its capacity block {block} is about to end"
        return ended(snapshot, _deletion(snapshot, claim, Reason("CapacityBlockExpiring", text)))
    end = end_of(snapshot, claim, snapshot.now)
    if end is None or end.latest is None or end.latest > snapshot.now:
        return Plan(next_due=end.latest if end is not None else None)
    return expired(snapshot, claim)


def expired(snapshot: Snapshot, claim: NodeClaim) -> Plan:
    """The end of a claim that has reached its `expireAfter`."""
    text = f"older than its expireAfter of {claim.spec.expire_after}"
    return ended(snapshot, _deletion(snapshot, claim, Reason(EXPIRED, text)))


def _ending_block(snapshot: Snapshot, claim: NodeClaim) -> str:
    """The ID of the claim's capacity reservation, if that is about to end and takes its instances with it."""
    id_ = claim.metadata.labels.get(labels.RESERVATION_ID, "")
    node_class = snapshot.node_classes.get(claim.spec.node_class_ref.name) if id_ else None
    known = node_class.status.capacity_reservations if node_class is not None else ()
    return id_ if any(row.id == id_ and row.state == "expiring" for row in known) else ""


_EXPIRY = planning("expiry", "node_claims", "nodeclaim", _one)


def end_of(snapshot: Snapshot, claim: NodeClaim, now: datetime) -> End | None:
    """When the claim is removed; None when it never expires. Raises ValueError on a malformed duration.

    Long before `now` comes near, the earliest instants that jitter could give are near enough, and spare the hash.
    """
    try:
        life = durations.parse_nillable(claim.spec.expire_after)
        if life is None or claim.metadata.creation_timestamp is None:
            return None
        at = claim.metadata.creation_timestamp + life
    except (ValueError, OverflowError) as error:
        raise ValueError(f"expireAfter: {error}") from error
    lead = min(LEAD, life / (2 * _SHARE))
    if not launched_by_kerf(claim):
        return End(at - lead, at, _latest(snapshot, at, taken_over=True))
    earliest = at - life / _SHARE
    at = at - _jitter(claim.metadata.uid, life, lead) if now >= earliest else earliest + lead
    return End(at - lead, at, _latest(snapshot, at, taken_over=False))


def launched_by_kerf(claim: NodeClaim) -> bool:
    """Whether Kerf launched its instance; another controller did, or nothing has been launched yet, otherwise."""
    return labels.LAUNCH_GROUP in claim.metadata.annotations


def _latest(snapshot: Snapshot, at: datetime, *, taken_over: bool) -> datetime | None:
    """How long budgets may hold up the end of a claim; None for no limit."""
    if snapshot.settings.expire_within_budgets:
        return None
    since = snapshot.leading_since
    if not taken_over or (since is not None and since < at):
        return at
    return None if since is None else since + PACED_FOR


def _jitter(uid: str, life: timedelta, lead: timedelta) -> timedelta:
    """Between nothing and a tenth of the life, less the lead; the same for the same UID."""
    if life < JITTER_FROM:
        return timedelta(0)
    drawn = int.from_bytes(hashlib.sha256(f"expire {uid}".encode()).digest()[:4])
    return timedelta(seconds=int((life / _SHARE - lead).total_seconds()) * drawn // _STEPS)


def _deletion(snapshot: Snapshot, claim: NodeClaim, reason: Reason) -> DeleteObject:
    return DeleteObject(
        reason=reason,
        sources=frozenset({Source.NODE_CLAIMS, Source.PODS}),  # its drain could not continue without them
        ref=kinds.ref(claim),
        uid=claim.metadata.uid,
        moved=leaving(snapshot, snapshot.state_nodes[claim.name]),
    )
