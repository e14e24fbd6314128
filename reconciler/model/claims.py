"""Whether a NodeClaim makes sense, or a NodePool: one that does not can neither be launched from nor counted on."""

from __future__ import annotations

from api import durations
from api.v1.nodeclaim import NodeClaim
from api.v1.nodepool import NodePool


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
