"""Interruption: what EC2 announces about instances ends their NodeClaims, whatever budgets say.

A message is deleted only in a plan that already sees its effect stored: the claim is being deleted, or nothing of ours
has that instance. A crash before that leaves the message in the queue. Source: AWS reference §8.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kerf.disruption.on_nodes import node_events, tried
from kerf.model import ends, kinds
from kerf.model.aws.interruptions import Interruption, InterruptionKind
from kerf.model.ends import HELD
from kerf.model.plan import NOTHING, DeleteMessage, DeleteObject, Event, Plan, Reason, Source, joined
from kerf.model.snapshot import Snapshot, StateNode
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim


@dataclass(frozen=True, slots=True)
class _Kind:
    """The event that a kind of message makes, its type and words, the code of its reason, and whether the node is
    removed."""

    event: str
    text: str
    code: str
    type: str = "Warning"
    ends: bool = True


_KINDS: Final = {
    InterruptionKind.SPOT_INTERRUPTED: _Kind("SpotInterrupted", "EC2 reclaims the spot instance", "SpotInterrupted"),
    InterruptionKind.CAPACITY_RESERVATION_INTERRUPTED: _Kind(
        "CapacityReservationInstanceInterrupted",
        "EC2 reclaims the reserved capacity",
        "CapacityReservationInterrupted",
    ),
    InterruptionKind.SCHEDULED_CHANGE: _Kind(
        "InstanceUnhealthy", "EC2 has scheduled maintenance of the instance", "ScheduledChange"
    ),
    InterruptionKind.INSTANCE_STOPPED: _Kind("InstanceStopping", "The instance is stopping", "InstanceStopped"),
    InterruptionKind.INSTANCE_TERMINATED: _Kind(
        "InstanceTerminating", "The instance is terminating", "InstanceTerminated"
    ),
    InterruptionKind.REBALANCE_RECOMMENDATION: _Kind(
        "SpotRebalanceRecommendation",
        "EC2 reports that the spot instance is at risk",
        "RebalanceRecommendation",
        type="Normal",
        ends=False,
    ),
}
#: What a NodeClaim's deletion says when a message ends it.
CODES: Final = frozenset(kind.code for kind in _KINDS.values() if kind.ends)


def interrupt(snapshot: Snapshot) -> Plan:
    """What the messages of the queue call for."""
    if not snapshot.interruptions:
        return NOTHING
    ended: set[str] = set()
    return joined(_read(snapshot, message, ended) for message in snapshot.interruptions)


def _read(snapshot: Snapshot, found: Interruption, ended: set[str]) -> Plan:
    return tried(snapshot, f"message/{found.message.id}", lambda: _one(snapshot, found, ended))


def states_of(snapshot: Snapshot, instance_id: str) -> Iterator[StateNode]:
    """The nodes whose claims have this instance, or will have it once their status says so."""
    for claim in snapshot.claims_by_instance.get(instance_id, ()):
        yield snapshot.state_nodes[claim.name]


def _one(snapshot: Snapshot, found: Interruption, ended: set[str]) -> Plan:
    """One message; `ended` are the claims that earlier messages of this plan delete."""
    kind = _KINDS.get(found.kind)
    states = [state for id_ in sorted(set(found.instance_ids)) for state in states_of(snapshot, id_)]
    living = [s for s in states if s.claim is not None and not s.claim.metadata.deleting]
    waiting = [s.claim for s in states if s.claim is not None and s.claim.metadata.deleting and s.claim.is_true(HELD)]
    if kind is not None and kind.ends and (held := [claim for claim in waiting if not ends.by_us(claim)]):
        reason = Reason(kind.code, kind.text)
        # As of the deletion, which may be long ago: a note of another time is not believed to be about it.
        return Plan(
            actions=tuple(ends.note(claim, reason, claim.metadata.deletion_timestamp or snapshot.now) for claim in held)
        )
    if kind is None or not (kind.ends and living):
        unassigned = kind is not None and any(_unassigned(snapshot, i) for i in found.instance_ids)
        events = [e for s in living if kind is not None for e in node_events(s, kind.event, kind.text, type_=kind.type)]
        done = () if unassigned or not snapshot.fresh(Source.NODE_CLAIMS) else (_handled(found),)
        return Plan(actions=done, events=tuple(events))
    actions, plans = [], []
    for state in living:
        assert state.claim is not None
        if state.claim.name not in ended:
            ended.add(state.claim.name)
            actions.append(_deletion(state.claim, kind))
            plans.append(Plan(events=_told(state, kind)))
    return joined([Plan(actions=tuple(actions)), *plans])


def _told(state: StateNode, kind: _Kind) -> tuple[Event, ...]:
    return (
        *node_events(state, kind.event, kind.text, type_=kind.type),
        *goes(state, kind.text),
    )


def goes(state: StateNode, why: str) -> tuple[Event, ...]:
    """That the node ends because of what EC2 says."""
    return node_events(state, "TerminatingOnInterruption", f"Deleting the NodeClaim: {why}", type_="Warning")


def _unassigned(snapshot: Snapshot, instance_id: str) -> bool:
    """Whether an instance of ours is about to be assigned to a claim that waits for it."""
    instance = snapshot.instances.get(instance_id)
    group = instance.tags.get(labels.LAUNCH_GROUP) if instance is not None else None
    claims = snapshot.claims_by_group.get(group, ()) if group is not None else ()
    return any(not claim.status.provider_id for claim in claims)


def _deletion(claim: NodeClaim, kind: _Kind) -> DeleteObject:
    return DeleteObject(
        reason=Reason(kind.code, kind.text),
        sources=frozenset({Source.NODE_CLAIMS}),
        ref=kinds.ref(claim),
        uid=claim.metadata.uid,
    )


def _handled(found: Interruption) -> DeleteMessage:
    return DeleteMessage(reason=Reason("Handled", f"nothing is left to do for {found.kind}"), message=found.message)
