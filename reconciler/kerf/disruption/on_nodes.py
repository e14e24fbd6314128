"""Taints, deadlines and events of nodes that are disrupted, on the Node and on the NodeClaim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kerf.model import kinds
from kerf.model.boundaries import guarded
from kerf.model.claims import deadline_of
from kerf.model.instants import rfc3339
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Node
from kerf.model.kubernetes.pods import DISRUPTED
from kerf.model.plan import NOTHING, DeleteObject, Event, PatchObject, Plan, Reason
from kerf.model.snapshot import Snapshot, StateNode
from kerf.model.writes import annotate, patch
from kerf_api import labels
from kerf_api.texts import shortened
from kerf_api.v1.conditions import put
from kerf_api.v1.meta import Condition, encode
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

_PODS_SHOWN: Final = 10


def taint(node: Node, reason: Reason) -> PatchObject:
    rows = [encode(t) for t in (*node.spec.taints, DISRUPTED)]
    return patch(node, {"spec": {"taints": rows}}, "TaintNode", reason)


def untaint(node: Node, reason: Reason) -> PatchObject:
    rows = [encode(t) for t in node.spec.taints if not t.matches(DISRUPTED)]
    return patch(node, {"spec": {"taints": rows}}, "UntaintNode", reason)


def tainted(node: Node) -> bool:
    return any(t.key == labels.DISRUPTED_TAINT and t.effect == DISRUPTED.effect for t in node.spec.taints)


def rows_with(
    snapshot: Snapshot,
    value: NodeClaim | NodePool,
    known: tuple[Condition, ...],
    type_: str,
    status: str,
    reason: str,
    message: str = "",
) -> tuple[Condition, ...]:
    """These conditions with one of them set, for the object as it is now; in whole seconds, as the API keeps them."""
    generation, now = value.metadata.generation, snapshot.now.replace(microsecond=0)
    return put(known, type_, status, reason, generation=generation, now=now, message=message)


def node_events(
    state: StateNode,
    reason: str,
    message: str,
    *,
    type_: str = "Normal",
    dedupe: str = "",
    dedupe_seconds: int = 120,
) -> tuple[Event, ...]:
    """The same event on the Node and on the NodeClaim, where they exist."""
    subjects = [value for value in (state.node, state.claim) if value is not None]
    return tuple(Event(kinds.ref(v), v.metadata.uid, type_, reason, message, dedupe, dedupe_seconds) for v in subjects)


def over_at_once(snapshot: Snapshot, claim: NodeClaim, reason: Reason) -> Plan:
    """The drain of a claim that is being deleted has its deadline now; one that is past is left as it is."""
    known = deadline_of(claim)
    if known is not None and known <= snapshot.now:
        return NOTHING
    deadline = {labels.TERMINATION_TIMESTAMP: rfc3339(snapshot.now)}
    return Plan(actions=(annotate(claim, "SetDeadline", deadline, reason),))


def leaving(snapshot: Snapshot, state: StateNode) -> tuple[str, ...]:
    """The pods of a node that will want a place elsewhere (`namespace/name`), sorted."""
    return pods.moving(snapshot.pods.on(state.node.name)) if state.node is not None else ()


def terminating(state: StateNode, deletion: DeleteObject, why: str = "") -> tuple[Event, ...]:
    """That a node is removed, why (by default what the deletion says), and which pods will move."""
    moved = deletion.moved or ()
    pods_ = f"pods that move: {shortened(moved, _PODS_SHOWN)}" if moved else "no pods move"
    return node_events(state, "DisruptionTerminating", f"Disrupting the node: {why or deletion.reason}; {pods_}")


def ended(snapshot: Snapshot, deletion: DeleteObject) -> Plan:
    """The end of a claim for which no command stands, and a word about it."""
    return Plan(actions=(deletion,), events=terminating(snapshot.state_nodes[deletion.ref.name], deletion))


def tried(snapshot: Snapshot, subject: str, part: Callable[[], Plan]) -> Plan:
    """A part that fails becomes a refusal about its subject, and is tried again soon: all other parts continue."""
    return guarded(subject, part, due=snapshot.now + snapshot.settings.disruption_period)
