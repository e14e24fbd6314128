"""Proposals of the slow half, as the fast half sees them: which have stood their time, and whether they still hold.

A move is proposed, and found again and again while the world stays as it is; only one that was first proposed a while
ago and is not old is looked at, and then checked against the world of now. Moves that are proposed together reckon with
each other: pods that the first ones move land where they upset the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from kerf.disruption.candidates.candidates import Candidate, candidate
from kerf.disruption.command import failure_of
from kerf.disruption.consolidation.eligibility import consolidation_blockers
from kerf.disruption.view import View
from kerf.model.kubernetes.objects import Node
from kerf.model.snapshot import Proposal, Snapshot
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

#: A proposal older than this is no longer looked at.
FRESH: Final = timedelta(minutes=2)


def timely(view: View) -> tuple[datetime | None, list[Proposal]]:
    """When the next proposal will have stood its time, and those that have; the best saving first."""
    now, delay = view.snapshot.now, view.snapshot.settings.validation_delay
    young, ready = [], {}
    for proposal in view.snapshot.proposals:
        if proposal.made_at is None or now - proposal.made_at >= FRESH:
            continue
        if now - proposal.made_at < delay:
            young.append(proposal.made_at + delay)
        else:
            ready[proposal.id] = proposal
    return min(young, default=None), sorted(ready.values(), key=lambda p: (-p.saving, p.id))


def outweighed(view: View, ready: Sequence[Proposal]) -> bool:
    """Whether it is better to wait for the others that were found along with those that are ready: they save more, and
    will soon have stood their time, too."""
    instants = [proposal.made_at for proposal in ready if proposal.made_at is not None]
    latest = min(instants, default=view.snapshot.now) + view.snapshot.settings.validation_delay
    known = {proposal.id for proposal in ready}
    oldest = view.snapshot.now - FRESH
    soon = [
        p.saving
        for p in view.snapshot.proposals
        if p.id not in known and p.made_at is not None and oldest < p.made_at <= latest
    ]
    return bool(ready) and sum(soon) > sum(p.saving for p in ready)


def agreed(view: View, proposal: Proposal) -> list[Candidate] | None:
    """The candidates of a proposal whose world has not changed; None when it has."""
    if any(version(view.snapshot, ref) != known for ref, known in proposal.versions.items()):
        return None
    found = []
    for key in proposal.candidates:
        one = candidate(view, key) if key in view.snapshot.state_nodes and consolidatable(view, key) else None
        if not isinstance(one, Candidate) or not {p.metadata.uid for p in one.movable} <= proposal.pods:
            return None
        found.append(one)
    return found or None


def consolidatable(view: View, key: str) -> bool:
    """Whether single-node consolidation may look at the node now."""
    claim = view.snapshot.state_nodes[key].claim
    failure = failure_of(claim.metadata.annotations, view.snapshot.now) if claim is not None else None
    return (failure is None or failure.until <= view.snapshot.now) and eligible(view, key)


def eligible(view: View, key: str) -> bool:
    """Whether single-node consolidation would like to look at the node at all. Source: disruption reference §1.2."""
    state = view.snapshot.state_nodes[key]
    if (
        state.claim is None
        or not state.claim.is_true("Consolidatable")
        or view.command(key) is not None
        or state.deleting
    ):
        return False
    pool = view.snapshot.node_pools.get(state.pool_name)
    return pool is not None and next(consolidation_blockers(view, state, pool), None) is None


def versions(snapshot: Snapshot, refs: Iterable[str]) -> dict[str, str]:
    return {ref: version(snapshot, ref) for ref in sorted(refs)}


def version(snapshot: Snapshot, ref: str) -> str:
    """What must not change while a proposal waits: which object it is, and its spec.

    Resource versions would not do: every heartbeat and every count in a status makes a new one.
    """
    kind, _, name = ref.partition("/")
    tables: Mapping[str, Mapping[str, NodeClaim | Node | NodePool]] = {
        "nodeclaim": snapshot.node_claims,
        "node": snapshot.nodes,
        "nodepool": snapshot.node_pools,
    }
    value = tables[kind].get(name)
    return "" if value is None else f"{value.metadata.uid}:{value.metadata.generation}"
