"""A NodePool whose launches come to nothing is left alone for a while, twice as long each time.

What counts is a claim that was given up, and one for which there is nothing to be had although no offering is to blame
(a quota, say): an offering that is out of stock is passed over by itself. One claim that registers ends it all, and so
does a change of the pool or its class. The count is a help, no promise: one that meets a conflict is lost, for its
claims are gone by then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from kerf.lifecycle.nodeclaim import outcomes
from kerf.lifecycle.nodeclaim.liveness import give_up
from kerf.lifecycle.nodeclaim.progress import begin
from kerf.lifecycle.view import View
from kerf.model import backoff
from kerf.model.backoff import PoolFailures
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

#: All that have failed and are still there, or each would count again; but an annotation holds no more UIDs than this.
_MOST_REMEMBERED = 2000


def failures(
    view: View, pool: NodePool, joining: Collection[NodeClaim], lately: Iterable[NodeClaim]
) -> PoolFailures | None:
    """With what the pool's claims have come to since; None when nothing failed, or something has come off.

    `joining` are its claims that have not registered yet, `lately` those that have a short while ago.
    """
    known = backoff.remembered(pool, view.snapshot.now)
    if known is not None and any(_registered_since(claim, known) for claim in lately):
        known = None
    counted = frozenset(known.claims if known is not None else ())
    new = {claim.metadata.uid for claim in _failed(view, joining)} - counted
    if not new:
        return known
    still = counted.intersection(claim.metadata.uid for claim in joining)
    claims = tuple(sorted(still | new)[:_MOST_REMEMBERED])
    if known is not None and view.snapshot.now < backoff.ends(known, pool):  # of the same attempt
        return PoolFailures(count=known.count, at=known.at, claims=claims)
    return PoolFailures(count=known.count + 1 if known is not None else 1, at=view.now, claims=claims)


def _registered_since(claim: NodeClaim, known: PoolFailures) -> bool:
    told = claim.condition("Registered")
    since = told.last_transition_time if told is not None and told.status == "True" else None
    return since is not None and since > known.at


def _failed(view: View, claims: Iterable[NodeClaim]) -> Iterator[NodeClaim]:
    for claim in claims:
        if claim.metadata.deleting or claim.metadata.unreadable:
            continue
        if _blameless(view, claim) or give_up(begin(view, claim)).actions:
            yield claim


def _blameless(view: View, claim: NodeClaim) -> bool:
    """Nothing to be had for the claim, and some error that is no offering's."""
    if claim.is_true("Launched"):
        return False
    failure = view.snapshot.launch_failures.get(view.group_of(claim))
    if failure is None or not outcomes.out_of_capacity(failure):
        return False
    return any(not (error.capacity and error.instance_type and error.zone) for error in failure.errors)
