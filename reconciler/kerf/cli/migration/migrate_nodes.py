"""The nodes: which of them Kerf would replace or remove when it leads, and which are in the middle of something.

The answers are those of the rooms that decide, asked about a snapshot as Kerf would take it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from msgspec.structs import replace as replaced

from kerf.disruption.drift.drift import drift_reason
from kerf.disruption.forced.expiration import PACED_FOR, End, end_of
from kerf.disruption.propose import propose
from kerf.disruption.view import View, view
from kerf.model.snapshot import Snapshot
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, WRONG, Finding
from kerf.scheduling.offerings.prices import dollars
from kerf_api import labels
from kerf_api.texts import shortened
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import Budget, NodePool

#: So many names are listed of those that share something.
_NAMED: Final = 5
#: Ends within this time are reported.
_SOON: Final = timedelta(hours=24)
_NO_LIMIT: Final = (Budget(nodes="100%"),)
_HOLD: Final = 'to check first: a budget of nodes: "0" in spec.disruption.budgets'


def look(snapshot: Snapshot, *, live: bool) -> Iterator[Finding]:
    """Everything about the nodes. Without AWS (`live` is False) what needs it is reported as unknown."""
    snapshot = replace(snapshot, leading_since=snapshot.now)  # as if Kerf began to lead now
    claims = [claim for _, claim in sorted(snapshot.node_claims.items()) if claim.managed]
    yield Finding("NodeClaims", GOOD, f"{len(claims)} of this provider")
    yield from _unfinished(snapshot, claims)
    settled = [one for one in claims if one.is_true("Initialized") and not one.metadata.deleting]
    yield from _drift(view(snapshot), settled)
    yield from _expiration(snapshot, settled)
    if live:
        yield from _consolidation(snapshot)
    else:
        text = "not checked: files do not contain current AMIs, security groups, instance types and prices"
        yield Finding("AWS", DOUBTFUL, text, "run it against the cluster, too")
    yield from _policies(snapshot)


# --- in the middle of something ---------------------------------------------------------------------------------
def _unfinished(snapshot: Snapshot, claims: Sequence[NodeClaim]) -> Iterator[Finding]:
    deleting = [one.name for one in claims if one.metadata.deleting]
    joining = [one.name for one in claims if not one.metadata.deleting and not one.is_true("Initialized")]
    tainted = [
        node.name
        for _, node in sorted(snapshot.nodes.items())
        if any(taint.key == labels.DISRUPTED_TAINT for taint in node.spec.taints) and not node.metadata.deleting
    ]
    for what, found, seen in (
        ("NodeClaims on their way out", deleting, "Kerf continues their drain and terminates their instances"),
        (
            "NodeClaims without a node yet",
            joining,
            "Kerf continues at their step; a NodeClaim without an instance is launched",
        ),
        (
            "Nodes that Karpenter is about to disrupt",
            tainted,
            "Kerf does not know its plan, and removes the taint",
        ),
    ):
        if found:
            yield Finding(
                what,
                DOUBTFUL,
                f"{shortened(found, _NAMED)}: {seen}",
                "if possible, wait until Karpenter has completed these",
            )


# --- on their way out with Kerf -----------------------------------------------------------------------------------
def _drift(seen: View, claims: Sequence[NodeClaim]) -> Iterator[Finding]:
    """Those that have newly drifted block the migration: the change of controllers should replace no node."""
    known: dict[str, list[str]] = {}
    news: dict[str, list[str]] = {}
    for claim in claims:
        pool = seen.snapshot.node_pools.get(claim.pool_name)
        reason = drift_reason(seen, claim, pool) if pool is not None else ""
        if claim.is_true("Drifted"):
            told = claim.condition("Drifted")
            known.setdefault(told.reason if told is not None else "", []).append(claim.name)
        elif reason:
            news.setdefault(reason, []).append(claim.name)
    if not news and not known:
        yield Finding("Drift", GOOD, "no node has drifted")
    for reason, found in sorted(known.items()):
        text = f"{shortened(found, _NAMED)}: Karpenter would replace them, and so does Kerf, within the same budgets"
        yield Finding(f"Drifted by {reason}", DOUBTFUL, text)
    for reason, found in sorted(news.items()):
        text = f"{shortened(found, _NAMED)}: Kerf would replace them, and Karpenter has not marked them yet"
        yield Finding(f"Drifted by {reason}", WRONG, text, "kerf why node NAME shows the difference")


def _expiration(snapshot: Snapshot, claims: Sequence[NodeClaim]) -> Iterator[Finding]:
    """How many nodes reach their `expireAfter` soon, and how many have done so."""
    ends: list[tuple[str, End]] = []
    for claim in claims:
        try:
            end = end_of(snapshot, claim, snapshot.now)
        except ValueError as error:
            seen = f"{error}: Kerf does not expire this NodeClaim"
            yield Finding(f"NodeClaim {claim.name}", DOUBTFUL, seen, "delete the NodeClaim; its pods get another node")
            continue
        ends += [] if end is None else [(claim.name, end)]
    late = [name for name, end in ends if end.at <= snapshot.now]
    soon = [name for name, end in ends if snapshot.now < end.at <= snapshot.now + _SOON]
    within = snapshot.settings.expire_within_budgets
    budgets = "within the budgets of their NodePools"
    fix = "" if within else "EXPIRE_WITHIN_BUDGETS=true: budgets count, without limit"
    if late:
        hours = PACED_FOR // timedelta(hours=1)
        limit = "" if within else f", and {hours} hours after Kerf began to lead without budgets"
        yield Finding(
            "Expired",
            DOUBTFUL,
            f"{shortened(late, _NAMED)}: past their expireAfter; Kerf removes them {budgets}{limit}",
            fix,
        )
    if soon:
        when = budgets if within else "when they reach their expireAfter, independent of budgets"
        yield Finding("Expire within 24 hours", DOUBTFUL, f"{shortened(soon, _NAMED)}: Kerf removes them {when}", fix)


def _consolidation(snapshot: Snapshot) -> Iterator[Finding]:
    """What would be proposed if no budget held it."""
    found = propose(snapshot.with_node_pools(*map(_unlimited, snapshot.node_pools.values())))
    names = sorted({name for one in found for name in one.candidates})
    if not names:
        yield Finding("Consolidation", GOOD, "no node would be consolidated now")
        return
    saving = dollars(sum(one.saving for one in found))
    text = f"{shortened(names, _NAMED)}: they would be consolidated, for {saving} less an hour, as budgets allow"
    yield Finding("Consolidation", DOUBTFUL, text, _HOLD)


def _unlimited(pool: NodePool) -> NodePool:
    disruption = replaced(pool.spec.disruption, budgets=_NO_LIMIT)
    return replaced(pool, spec=replaced(pool.spec, disruption=disruption))


def _policies(snapshot: Snapshot) -> Iterator[Finding]:
    """Kerf packs tighter: what Karpenter leaves alone may be worth a move to it."""
    names = [
        name
        for name, pool in sorted(snapshot.node_pools.items())
        if pool.managed and pool.spec.disruption.consolidation_policy != "WhenEmpty"
        if pool.spec.disruption.consolidate_after != "Never"
    ]
    if names:
        listed = shortened(names, _NAMED)
        text = f"{listed} allow the removal of nodes in use, and Kerf may find savings that Karpenter does not"
        yield Finding("NodePools that consolidate", DOUBTFUL, text, _HOLD)
