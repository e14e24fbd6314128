"""What emptiness and consolidation do not care to look at, and why: the pool's policy, and nodes that are not at rest.

This is about eligibility. The blockers of an eligible node are in `candidates`.
"""

from __future__ import annotations

from collections.abc import Iterator

from kerf.disruption.candidates.canary import consolidation_blocker
from kerf.disruption.candidates.candidates import Blocker
from kerf.disruption.consolidation.pausing import paused
from kerf.disruption.consolidation.worth import asked, grown_at, too_young
from kerf.disruption.drift.conditions import CONSOLIDATABLE, consolidation_window
from kerf.disruption.view import View
from kerf.model.claims import marks_of
from kerf.model.mismatches import PROBE_EVERY
from kerf.model.snapshot import StateNode
from kerf.scheduling.mismatch.evidence import SHAPES, kept_until
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

WHEN_EMPTY = "WhenEmpty"


def rest_blockers(view: View, claim: NodeClaim, pool: NodePool) -> Iterator[Blocker]:
    """Why neither emptiness nor consolidation cares: the pool is static or says Never, or the node is not at rest."""
    if pool.static:
        yield Blocker("StaticNodePool", f"NodePool {pool.name} is static: its nodes are not consolidated")
        return
    kept = kept_until(view.turn, claim.name)
    if kept is not None:
        yield Blocker("AwaitingPods", "pods that it was made for are not bound yet", until=kept)
    if not _consolidates(pool):
        yield Blocker("ConsolidationDisabled", f"consolidateAfter of NodePool {pool.name} is Never")
    elif not claim.is_true(CONSOLIDATABLE):
        window = consolidation_window(claim, pool, view.snapshot.now)
        text = (
            f"consolidateAfter of NodePool {pool.name} is {pool.spec.disruption.consolidate_after}, since the last pod"
        )
        yield Blocker("NotConsolidatable", f"{text} change", until=window.until)


def consolidation_blockers(view: View, state: StateNode, pool: NodePool) -> Iterator[Blocker]:
    """Why single-node consolidation does not care. Source: disruption reference §1.2."""
    assert state.claim is not None
    yield from rest_blockers(view, state.claim, pool)
    if pool.spec.disruption.consolidation_policy == WHEN_EMPTY:
        yield Blocker("WhenEmpty", f"consolidationPolicy of NodePool {pool.name} is {WHEN_EMPTY}, and the node is not")
    type_ = state.labels.get(labels.INSTANCE_TYPE, "")
    if type_ not in view.types_of(pool):
        yield Blocker("UnknownInstanceType", f"nothing is known of the instance type {type_!r}")
    for label in (labels.ZONE, labels.CAPACITY_TYPE):
        if label not in state.labels:
            yield Blocker("NoLabel", f"the node has no label {label}")
    wanted, until = asked(view, pool), grown_at(view, state, pool)
    if isinstance(wanted, Blocker):
        yield wanted
    elif until is not None:
        yield too_young(pool, wanted, until)
    attempt = _attempt(view, state)
    if attempt is not None:
        yield attempt
    pause = paused(pool, view.snapshot.now)
    if pause is not None:
        yield pause
    waits = consolidation_blocker(view, state, pool)
    if waits is not None:
        yield waits


def _attempt(view: View, state: StateNode) -> Blocker | None:
    """Of a node that was made for pods which run nowhere else though other nodes seem to have capacity for them: a
    simulation would move them back."""
    claim, node, now = state.claim, state.node, view.snapshot.now
    created = claim.metadata.creation_timestamp if claim is not None else None
    shapes = marks_of(claim, labels.ALTERNATIVE_FOR) if claim is not None else frozenset()
    if claim is None or node is None or created is None or not shapes:
        return None
    until = created + PROBE_EVERY
    running: frozenset[str] = view.turn.one(SHAPES, view.turn.noted, node.name)
    if until <= now or shapes.isdisjoint(running):
        return None
    text = "it was made for pods that did not run where Kerf expected them; they stay a day"
    return Blocker("FurtherAttempt", text, until=until)


def _consolidates(pool: NodePool) -> bool:
    """Whether it says anything but Never; what cannot be read counts as that."""
    try:
        return pool.consolidate_after is not None
    except ValueError:
        return False
