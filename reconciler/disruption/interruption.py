"""Interruption: what EC2 announces about instances ends their NodeClaims, whatever budgets say.

A message is deleted only in a plan that already sees its effect stored: the claim is being deleted, or nothing of ours
has that instance. A crash before that leaves the message in the queue. Source: AWS reference §8.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from api import labels
from api.v1.nodeclaim import NodeClaim
from reconciler.disruption.writes import NOTHING, joined, told
from reconciler.model import kinds
from reconciler.model.cloud import Interruption
from reconciler.model.plan import DeleteMessage, DeleteObject, Event, Plan, Reason, Source
from reconciler.model.snapshot import Snapshot, StateNode


@dataclass(frozen=True, slots=True)
class _Kind:
    """The event that a kind of message makes, its type and words, the code of its reason, and whether the node goes."""

    event: str
    text: str
    code: str
    type: str = "Warning"
    ends: bool = True


_KINDS: Final = {
    "spot_interrupted": _Kind("SpotInterrupted", "EC2 takes the spot instance back", "SpotInterrupted"),
    "capacity_reservation_interrupted": _Kind(
        "CapacityReservationInstanceInterrupted",
        "EC2 takes the reserved capacity back",
        "CapacityReservationInterrupted",
    ),
    "scheduled_change": _Kind("InstanceUnhealthy", "EC2 has scheduled maintenance of the instance", "ScheduledChange"),
    "instance_stopped": _Kind("InstanceStopping", "The instance is stopping", "InstanceStopped"),
    "instance_terminated": _Kind("InstanceTerminating", "The instance is terminating", "InstanceTerminated"),
    "rebalance_recommendation": _Kind(
        "SpotRebalanceRecommendation",
        "EC2 says that the spot instance is at risk",
        "RebalanceRecommendation",
        type="Normal",
        ends=False,
    ),
}


def interrupt(snapshot: Snapshot) -> Plan:
    """What the messages of the queue call for."""
    if not snapshot.interruptions:
        return NOTHING
    by_instance = {_instance_of(state): state for state in snapshot.state_nodes.values() if _instance_of(state)}
    ended: set[str] = set()
    return joined(_one(snapshot, message, by_instance, ended) for message in snapshot.interruptions)


def _instance_of(state: StateNode) -> str:
    """The instance that is the claim's, or will be once its status says so."""
    claim = state.claim
    return "" if claim is None else claim.instance_id or claim.metadata.annotations.get(labels.INSTANCE, "")


def _one(snapshot: Snapshot, found: Interruption, by_instance: dict[str, StateNode], ended: set[str]) -> Plan:
    """One message; `ended` are the claims that earlier messages of this plan delete."""
    kind = _KINDS.get(found.kind)
    states = [by_instance[i] for i in sorted(set(found.instance_ids)) if i in by_instance]
    living = [s for s in states if s.claim is not None and not s.claim.metadata.deleting]
    if kind is None or not (kind.ends and living):
        unassigned = kind is not None and any(_unassigned(snapshot, i) for i in found.instance_ids)
        events = [e for s in living if kind is not None for e in told(s, kind.event, kind.text, type_=kind.type)]
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
        *told(state, kind.event, kind.text, type_=kind.type),
        *told(state, "TerminatingOnInterruption", f"Deleting the NodeClaim: {kind.text}", type_="Warning"),
    )


def _unassigned(snapshot: Snapshot, instance_id: str) -> bool:
    """Whether an instance of ours is about to be assigned to a claim that waits for it."""
    instance = snapshot.instances.get(instance_id)
    group = instance.tags.get(labels.LAUNCH_GROUP) if instance is not None else None
    return group is not None and any(
        not claim.status.provider_id and claim.metadata.annotations.get(labels.LAUNCH_GROUP) == group
        for claim in snapshot.node_claims.values()
    )


def _deletion(claim: NodeClaim, kind: _Kind) -> DeleteObject:
    return DeleteObject(
        reason=Reason(kind.code, kind.text),
        sources=frozenset({Source.NODE_CLAIMS}),
        ref=kinds.ref(claim),
        uid=claim.metadata.uid,
    )


def _handled(found: Interruption) -> DeleteMessage:
    return DeleteMessage(reason=Reason("Handled", f"nothing is left to do for {found.kind}"), message=found.message)
