"""What a fleet call that gave too little means for its claims, and when they may be part of another call.

Only a definite answer is here; a call that timed out is simply made again, with the same token. A token that was spent
on another request waits until EC2 would show what that request launched.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from kerf.ec2 import errors
from kerf.model.aws.cloud import SHOWN_AFTER
from kerf.model.claims import since
from kerf.model.snapshot import LaunchFailure
from kerf_api.v1.nodeclaim import NodeClaim

_MISMATCH = "IdempotencyMismatch"
_SHORTEST, _LONGEST = timedelta(seconds=1), timedelta(seconds=60)
_LONGEST_MESSAGE = 300


def shown_from(claim: NodeClaim, earliest: datetime | None, now: datetime) -> datetime | None:
    """The instant from which a list of EC2 shows the claim's instance while there is one, and not before `earliest`.

    Its node may join, and its NodeClaim be registered, before EC2 lists the instance.
    """
    launched = since(claim, "Launched", now)
    return max((at for at in (earliest, launched + SHOWN_AFTER if launched else None) if at is not None), default=None)


def out_of_capacity(failure: LaunchFailure) -> bool:
    """Nothing to have now of all that was asked for."""
    return errors.is_capacity(failure.errors)


def mismatched(failure: LaunchFailure) -> bool:
    """The token belongs to another request, whose instances may exist."""
    return any(error.code == _MISMATCH for error in failure.errors)


def condition(failure: LaunchFailure) -> tuple[str, str]:
    """Reason and message of the claim's Launched condition."""
    reason, message = errors.launch_condition(failure.errors)
    return reason, message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}{errors.CUT}"


def renew_at(failure: LaunchFailure, created: datetime | None) -> datetime:
    """When to try another call: after half the claim's age, which makes the waits grow without counting them."""
    age = failure.at - created if created is not None else _SHORTEST
    return failure.at + min(_LONGEST, max(_SHORTEST, age / 2))


def attempt(failure: LaunchFailure) -> int:
    """A number that distinguishes the next call from this one (part of its group's hash)."""
    return int(failure.at.timestamp())
