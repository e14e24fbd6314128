"""A disruption command as it is remembered: an annotation on the NodeClaim that will be removed.

It says why, since when, which claims replace it, and which pods were there. That is all a restarted controller needs
to go on. The claims themselves are part of it until they have been created.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta

from kerf.model.annotations import read
from kerf.model.instants import SKEW, Instant, is_ahead
from kerf.model.mismatches import PROBE_EVERY
from kerf_api import labels
from kerf_api.v1.meta import Value
from kerf_api.v1.nodeclaim import NodeClaim

#: How long a candidate is left alone after its replacement failed: doubling from the first to the last.
_BACKOFF_FIRST, _BACKOFF_LAST = timedelta(minutes=1), timedelta(minutes=10)
LATE_EVERY = timedelta(hours=1)


class Command(Value, frozen=True, kw_only=True):
    """`replacements` are claim names; `pods` the UIDs of the pods that will want a place elsewhere; `why` has the
    details of the reason.

    `claims` holds the replacements in full until `created`, when all of them have been seen. `peers` are the claims
    that go for the same replacements, by a command of the same id: nothing is bought before all of them carry it.
    `saving` is what all of them together promise, in millionths of a dollar per hour, where that is what it is for.
    """

    id: str
    reason: str
    started: Instant
    replacements: tuple[str, ...] = ()
    claims: tuple[NodeClaim, ...] = ()
    created: bool = False
    pods: tuple[str, ...] = ()
    why: str = ""
    peers: tuple[str, ...] = ()
    saving: int | None = None


class Failure(Value, frozen=True, kw_only=True):
    """The last replacement of this candidate that failed, and how many have in a row.

    `inputs` is not empty when that node came up other than planned: the hash of what may change the outcome
    (`scheduling/mismatch/inputs.py`). A second such node is followed by one a day or one with other inputs. A second
    one that was `late` with its initialization is followed by one an hour: what it lacks is often not in the inputs.
    `command` is the id of the command, which several candidates may share.
    """

    at: Instant
    count: int = 1
    inputs: str = ""
    late: bool = False
    command: str = ""

    @property
    def until(self) -> datetime:
        if self.inputs and self.count > 1:
            return self.at + (LATE_EVERY if self.late else PROBE_EVERY)
        doublings = max(0, min(self.count - 1, 10))
        return self.at + min(_BACKOFF_FIRST * (1 << doublings), _BACKOFF_LAST)


def command_of(annotations: Mapping[str, str]) -> Command | None:
    """The command that an object's annotations carry; None when there is none or it cannot be read."""
    return read(annotations, labels.COMMAND, Command)


def failure_of(annotations: Mapping[str, str], now: datetime) -> Failure | None:
    """The failure that an object's annotations hold; None without one, or when it cannot be read or is ahead of now."""
    found = read(annotations, labels.COMMAND_FAILED, Failure)
    return None if found is None or is_ahead(found.at, now) else found


def failure_due(annotations: Mapping[str, str], now: datetime) -> datetime | None:
    """The next instant at which the failure counts in another way: its wait ends, or now is no longer far before it."""
    found = read(annotations, labels.COMMAND_FAILED, Failure)
    if found is None:
        return None
    due = found.at - SKEW if is_ahead(found.at, now) else found.until
    return due if due > now else None


def replaced_by(claim: NodeClaim) -> tuple[str, ...]:
    """The claims that this one was made to replace."""
    names = claim.metadata.annotations.get(labels.REPLACES)
    return tuple(names.split(",")) if names else ()


def command_id(claim_uid: str, reason: str, now: datetime) -> str:
    """Ten hex digits, the same for the same decision at the same instant."""
    return hashlib.sha256(f"{claim_uid} {reason} {now.isoformat()}".encode()).hexdigest()[:10]
