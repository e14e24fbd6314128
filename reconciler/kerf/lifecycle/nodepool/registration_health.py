"""Whether a NodePool's claims become nodes: its last four launches and registrations, two of which may not have failed.

Only trouble is remembered, in an annotation of the pool: from the first failure on, until four successes follow it.
While all goes well nothing is written. Source: disruption reference §5.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from kerf.lifecycle.nodeclaim.liveness import give_up
from kerf.lifecycle.nodeclaim.progress import begin
from kerf.lifecycle.view import View
from kerf.model.backoff import KEPT, MOST_PODS, REGISTRATION_FAILED, Registration, Registrations
from kerf.model.claims import is_outdated, planned_pods
from kerf.model.mismatches import place
from kerf_api.v1 import conditions
from kerf_api.v1.conditions import FALSE, TRUE
from kerf_api.v1.meta import Condition
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

HEALTHY: Final = "NodeRegistrationHealthy"
_TOO_MANY: Final = 2


def results(
    view: View, pool: NodePool, known: Registrations, joining: Iterable[NodeClaim], lately: Iterable[NodeClaim]
) -> Registrations:
    """With what the pool's own claims have come to since; empty when no failure is among the last four.

    `joining` are its claims that have not registered yet, `lately` those that have a short while ago.
    """
    seen = {result.claim for result in known}
    failed = [r for r in _failures(view, pool, joining) if r.claim not in seen]
    since = known[-1].at if known else min((r.at for r in failed), default=None)
    registered = [r for r in _successes(pool, lately, since) if r.claim not in seen] if since is not None else []
    last = (*known, *sorted([*failed, *registered], key=lambda r: (r.at, r.claim)))[-KEPT:]
    first = next((place for place, result in enumerate(last) if result.reason), len(last))
    return last[first:]


def health(
    view: View, pool: NodePool, found: Registrations, lately: Iterable[NodeClaim], known: tuple[Condition, ...]
) -> tuple[Condition, ...]:
    """The pool's conditions with what the results say; one failure alone says nothing."""
    failures = [result for result in found if result.reason]
    generation, now = pool.metadata.generation, view.now
    if len(failures) >= _TOO_MANY:
        reason, message = failures[-1].reason, failures[-1].message
        return conditions.put(known, HEALTHY, FALSE, reason, generation=generation, now=now, message=message)
    told = conditions.get(known, HEALTHY)
    if told is not None and told.status != TRUE and (len(found) > len(failures) or _any_since(pool, lately, told)):
        return conditions.put(known, HEALTHY, TRUE, HEALTHY, generation=generation, now=now)
    return known


def _any_since(pool: NodePool, lately: Iterable[NodeClaim], told: Condition) -> bool:
    """Whether a claim has registered since the condition is as it is; a failure is not forgotten that way."""
    since = told.last_transition_time
    return told.status != FALSE and since is not None and any(True for _ in _successes(pool, lately, since))


def _owned(claim: NodeClaim, pool: NodePool) -> bool:
    return any(owner.uid == pool.metadata.uid for owner in claim.metadata.owner_references)


def _failures(view: View, pool: NodePool, joining: Iterable[NodeClaim]) -> Iterator[Registration]:
    """The pool's own claims that are given up now; those from before an edit say nothing of the pool as it is."""
    for claim in joining:
        if claim.metadata.unreadable or not _owned(claim, pool) or is_outdated(claim, pool, view.class_of(claim)):
            continue
        if not give_up(begin(view, claim)).actions:
            continue
        launched = claim.condition("Launched")
        reason, message = REGISTRATION_FAILED, f"{claim.name} has not registered in time"
        if launched is not None and launched.status != TRUE:
            reason, message = launched.reason, launched.message
        where, marks = place(claim.metadata.labels), tuple(sorted(planned_pods(claim))[:MOST_PODS])
        yield Registration(
            claim=claim.metadata.uid, at=view.now, reason=reason, message=message, where=where, pods=marks
        )


def _successes(pool: NodePool, lately: Iterable[NodeClaim], since: datetime) -> Iterator[Registration]:
    """The pool's own claims that live and have registered since."""
    for claim in lately:
        told = claim.condition("Registered")
        if claim.metadata.deleting or told is None or told.status != TRUE or not _owned(claim, pool):
            continue
        if told.last_transition_time is not None and told.last_transition_time >= since:
            yield Registration(claim=claim.metadata.uid, at=told.last_transition_time)
