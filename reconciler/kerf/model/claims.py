"""Whether a NodeClaim makes sense, or a NodePool: one that does not can neither be launched from nor counted on; and
what is read off a claim's annotations by more than one room."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from kerf.model.instants import is_ahead
from kerf_api import bounds, durations, labels
from kerf_api.v1.conditions import TRUE
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

#: In seconds.
LONGEST_STARTUP: Final = 900.0


def check(claim: NodeClaim) -> None:
    """Raises ValueError, with words for a person, when a field of the claim's spec cannot be understood."""
    claim.requirements()
    claim.requests()
    _durations(claim.spec.expire_after, claim.spec.termination_grace_period)


def check_pool(pool: NodePool) -> None:
    """Raises ValueError when a duration cannot be understood: what is made from the pool could not be managed."""
    spec = pool.spec.template.spec
    _durations(spec.expire_after, spec.termination_grace_period, pool.spec.disruption.consolidate_after)


def _durations(*texts: str | None) -> None:
    for text in texts:
        durations.parse_nillable(text)


def differs(claim: NodeClaim, source: NodePool | EC2NodeClass, hashed: str, version: str) -> bool:
    """Whether a claim was made from another version of its NodePool or class. Hashes are compared only where all four
    annotations are there and the versions agree.

    Args:
        claim: the claim.
        source: the NodePool or class as it is now.
        hashed: the annotation of both with the hash.
        version: the annotation of both with the version of the hash.
    """
    mine, theirs = claim.metadata.annotations, source.metadata.annotations
    if mine.get(version) is None or mine.get(version) != theirs.get(version):
        return False
    one, two = mine.get(hashed), theirs.get(hashed)
    return one is not None and two is not None and one != two


def is_outdated(claim: NodeClaim, pool: NodePool | None, node_class: EC2NodeClass | None) -> bool:
    """Whether the hash of its NodePool or of its class is another one since a claim was made."""
    rows = (
        (pool, labels.NODEPOOL_HASH, labels.NODEPOOL_HASH_VERSION),
        (node_class, labels.NODECLASS_HASH, labels.NODECLASS_HASH_VERSION),
    )
    return any(source is not None and differs(claim, source, *keys) for source, *keys in rows)


def planned_pods(claim: NodeClaim) -> frozenset[str]:
    """The marks of the pods that a NodeClaim was made for."""
    return marks_of(claim, labels.PLANNED_PODS)


def probed_by(claim: NodeClaim) -> frozenset[str]:
    """The shapes that a NodeClaim is a further attempt for."""
    return marks_of(claim, labels.PROBES)


def marks_of(claim: NodeClaim, annotation: str) -> frozenset[str]:
    """The parts of an annotation with commas."""
    return frozenset(claim.metadata.annotations.get(annotation, "").split(",")) - {""}


def since(claim: NodeClaim, type_: str, now: datetime) -> datetime | None:
    """The instant at which a condition of the claim got its status; None without one.

    A clock that was wrong stamps a time ahead of now. Then the creation counts, which the API server stamps.
    """
    known = claim.condition(type_)
    at = known.last_transition_time if known is not None else None
    return claim.metadata.creation_timestamp if at is not None and is_ahead(at, now) else at


def true_since(claim: NodeClaim, type_: str) -> datetime | None:
    """Since when a condition is True; None when it is not."""
    found = claim.condition(type_)
    return found.last_transition_time if found is not None and found.status == TRUE else None


def launched_since(claims: Iterable[NodeClaim], at: datetime) -> bool:
    """Whether one of the claims has been launched since then, to the second: conditions have whole seconds."""
    found = (one for claim in claims if (one := claim.condition("Launched")) is not None and one.status == TRUE)
    times = (one.last_transition_time for one in found)
    return any(time is not None and time >= at.replace(microsecond=0) for time in times)


def seconds_between(claim: NodeClaim, first: str, second: str) -> float | None:
    """The seconds from the transition of one condition to that of a later one; None unless both are True.

    None as well above 15 minutes: that startup has another cause, such as a manual step, and is no measure for others.
    """
    ends = [one.last_transition_time for type_ in (first, second) if (one := claim.condition(type_)) is not None]
    if len(ends) < 2 or ends[0] is None or ends[1] is None or not (claim.is_true(first) and claim.is_true(second)):
        return None
    seconds = (ends[1] - ends[0]).total_seconds()
    return seconds if 0 <= seconds <= LONGEST_STARTUP else None


def deadline_of(claim: NodeClaim) -> datetime | None:
    """The forced end of the claim's drain as written down; None when there is none. Raises ValueError."""
    text = claim.metadata.annotations.get(labels.TERMINATION_TIMESTAMP)
    if text is None:
        return None
    try:
        return bounds.instant_of(text)
    except ValueError as error:
        raise ValueError(f"annotation {labels.TERMINATION_TIMESTAMP}: {error}") from error
