"""Node repair (gate NodeRepair): a node that has been unhealthy for too long is deleted, despite budgets and its pods.

Many unhealthy nodes are more often one unhealthy network, or an API server that has not heard the kubelets; so
nothing is repaired while more than a fifth of a NodePool is unhealthy, however long each of them has been. A repair is
a deletion whose drain has no time left: the claim is deleted first, and its deadline follows as soon as that shows, so
that a crash between the two leaves an ordinary deletion and never a claim with a deadline that no plan intended.
Source: disruption reference §5.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from kerf.disruption.on_nodes import leaving, node_events, over_at_once, tried
from kerf.ec2.node_health import REPAIR_POLICIES
from kerf.model import kinds
from kerf.model.instants import rfc3339
from kerf.model.kubernetes.objects import Node
from kerf.model.memory import Step, Turn
from kerf.model.plan import NOTHING, DeleteObject, Event, Plan, Reason, Refusal, Source, joined
from kerf.model.snapshot import Snapshot, StateNode

#: One of so many nodes of a NodePool may be unhealthy; of fewer nodes than that, one.
_ONE_OF: Final = 5
_NODES, _SICK, _NEW = "nodes", "unhealthy", "unhealthy and never initialized"
#: A NodePool whose node never initializes makes one more. Nothing runs on these two, so none blocks the other's repair.
_NEVER_INITIALIZED: Final = 2
_BLOCKED_EVENT_SECONDS: Final = 15 * 60


@dataclass(frozen=True, slots=True)
class Sickness:
    """The condition whose patience ends first, with its status, since when it has that, and until when it is
    tolerated."""

    condition: str
    status: str
    since: datetime
    until: datetime

    def __str__(self) -> str:
        return f"condition {self.condition} has been {self.status} since {rfc3339(self.since)}"


def repair(turn: Turn, ending: frozenset[str] = frozenset()) -> Plan:
    """Delete the claims of nodes that have been unhealthy for too long; `ending` are claims that this very plan
    deletes.

    Due again when the next one's time has come.
    """
    snapshot = turn.snapshot
    if not snapshot.settings.gates.node_repair:
        return NOTHING
    asked = turn.all(_HEALTH, turn.noted)
    return joined(
        tried(snapshot, f"node/{snapshot.state_nodes[key].name}", partial(_one, snapshot, asked.sums, key, sickness))
        for key, sickness in ((key, health.sickness) for key, health in asked.spoken.items() if key not in ending)
        if sickness is not None
    )


def _one(snapshot: Snapshot, sums: Mapping[Any, int], key: str, sickness: Sickness) -> Plan:
    state = snapshot.state_nodes[key]
    if not _ours(state):
        return NOTHING
    assert state.claim is not None
    if snapshot.now < sickness.until:
        return Plan(next_due=sickness.until)
    too_many = _too_many(sums, state.pool_name)
    if too_many:
        return _blocked(snapshot, state, sickness, too_many)
    reason = Reason("Unhealthy", str(sickness))
    if state.claim.metadata.deleting:
        return over_at_once(snapshot, state.claim, reason)
    deletion = DeleteObject(
        reason=reason,
        sources=frozenset({Source.NODE_CLAIMS, Source.NODES, Source.PODS}),
        ref=kinds.ref(state.claim),
        uid=state.claim.metadata.uid,
        condition=sickness.condition,
        moved=leaving(snapshot, state),
    )
    events = node_events(state, "NodeUnhealthy", f"Replacing the node: {sickness}", type_="Warning")
    return Plan(actions=(deletion,), events=events)


def _ours(state: StateNode) -> bool:
    """What can be read only in part is not judged: its conditions may be what is missing."""
    claim, node = state.claim, state.node
    if claim is None or node is None or not claim.managed:
        return False
    return not (claim.metadata.unreadable or node.metadata.unreadable)


# --- the breaker ------------------------------------------------------------------------------------------------
def _too_many(sums: Mapping[Any, int], pool: str) -> str:
    """How many of a pool's nodes are unhealthy, if that is too many; of a claim without a NodePool, of the whole
    cluster."""
    nodes, sick, new = (_sum(sums, part, pool) for part in (_NODES, _SICK, _NEW))
    if sick <= -(-nodes // _ONE_OF) or (pool and sick == new <= _NEVER_INITIALIZED):
        return ""
    where = f"NodePool {pool}" if pool else "the cluster"
    return f"{sick} of {nodes} nodes of {where} are unhealthy, more than one of {_ONE_OF}"


def _sum(sums: Mapping[Any, int], part: str, pool: str) -> int:
    if pool:
        return sums.get((pool, part), 0)
    return sum(count for (_, counted), count in sums.items() if counted == part)


def _blocked(snapshot: Snapshot, state: StateNode, sickness: Sickness, too_many: str) -> Plan:
    assert state.claim is not None
    assert state.node is not None
    text = f"{too_many}; {sickness}"
    subjects = [state.node, state.claim, snapshot.node_pools.get(state.pool_name)]
    events = tuple(
        Event(
            kinds.ref(one),
            one.metadata.uid,
            "Warning",
            "NodeRepairBlocked",
            f"Node repair is blocked: {too_many if one is subjects[2] else text}",
            dedupe_seconds=_BLOCKED_EVENT_SECONDS,
        ).standing()
        for one in subjects
        if one is not None
    )
    return Plan(refusals=(Refusal(f"node/{state.name}", Reason("NodeRepairBlocked", text)),), events=events)


# --- what is known of single nodes ------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Health:
    """Of one state node: its NodePool, whether it is there already, and its unhealthy condition."""

    pool: str
    joined: bool
    initialized: bool
    sickness: Sickness | None

    @property
    def counts(self) -> tuple[tuple[tuple[str, str], int], ...]:
        sick = self.sickness is not None
        return (
            ((self.pool, _NODES), int(self.joined)),
            ((self.pool, _SICK), int(sick)),
            ((self.pool, _NEW), int(sick and not self.initialized)),
        )


def sickness_of(node: Node) -> Sickness | None:
    """The condition whose toleration ends first; None when no policy speaks of what the node's conditions say."""
    return min(sicknesses(node), key=lambda one: (one.until, one.condition), default=None)


def sicknesses(node: Node) -> list[Sickness]:
    """The conditions of which a policy speaks."""
    return [
        Sickness(row.type, row.status, row.last_transition_time, row.last_transition_time + policy.toleration)
        for row in node.status.conditions
        for policy in REPAIR_POLICIES
        if (row.type, row.status) == (policy.condition, policy.status) and row.last_transition_time is not None
    ]


def _health(snapshot: Snapshot, key: str) -> tuple[_Health, None]:
    state = snapshot.state_nodes[key]
    sickness = sickness_of(state.node) if state.node is not None else None
    return _Health(state.pool_name, state.node is not None, state.initialized, sickness), None


_HEALTH: Final[Step[Snapshot, _Health]] = Step(
    "health", "state_nodes", _health, speaks=lambda health: health.sickness is not None, counts=lambda h: h.counts
)
