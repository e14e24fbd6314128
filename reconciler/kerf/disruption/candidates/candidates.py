"""Candidates for disruption: nodes that nothing speaks against; and for the others, what speaks against them.

The blockers are asked in a fixed order and the first one answers; `kerf why node` lists all of them. Those
of the pods are waived for drift when the claim has a termination grace period: its owner has said how long pods may
hold a node. Source: disruption reference §1.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from kerf.disruption.candidates import costs
from kerf.disruption.command import replaced_by
from kerf.disruption.on_nodes import node_events
from kerf.disruption.view import View
from kerf.model import kinds
from kerf.model.boundaries import broken
from kerf.model.changes.pdbs import why_held
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.memory import Step
from kerf.model.plan import Plan, Reason, Refusal
from kerf.model.snapshot import StateNode
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool


@dataclass(frozen=True)
class Candidate:
    """A node that may be disrupted. `key` is that of `snapshot.state_nodes`; `pods` are all of the node's, sorted."""

    key: str
    state: StateNode
    claim: NodeClaim
    node: Node
    pool: NodePool
    pods: tuple[Pod, ...]
    price: int
    #: The price on demand, when the node is on reserved capacity that costs nothing more; 0 for others.
    reserved: int = 0

    @cached_property
    def cost(self) -> int:
        """What disrupting it costs the pods, in units of `costs.ONE`."""
        return costs.reschedule_cost(self.pods)

    @cached_property
    def movable(self) -> tuple[Pod, ...]:
        """The pods that will want a place elsewhere."""
        return tuple(pod for pod in self.pods if pods.reschedulable(pod))


@dataclass(frozen=True, slots=True)
class Blocker:
    """Why a node is no candidate. A quiet one has no event: the node is not ours, or already on its way.

    `until` is when it ends by itself, if that is known; `pod` (`namespace/name`) and `budgets` are who holds the node.
    """

    code: str
    text: str
    quiet: bool = False
    until: datetime | None = None
    pod: str = ""
    budgets: tuple[str, ...] = ()


def candidate(view: View, key: str, *, eventual: bool = False) -> Candidate | Blocker:
    """The candidate behind a state node, or the first blocker: be it that it cannot be judged. `eventual` is the class
    of drift."""
    try:
        return _judged(view, key, eventual)
    except Exception as error:
        reason = broken(error)
        return Blocker(reason.code, reason.text)


def _judged(view: View, key: str, eventual: bool) -> Candidate | Blocker:
    return next(blockers(view, key, eventual=eventual), None) or unblocked(view, key)


def unblocked(view: View, key: str) -> Candidate:
    """The candidate, whatever speaks against it. The node must have a claim, a Node and a NodePool."""
    state = view.snapshot.state_nodes[key]
    assert state.claim is not None
    assert state.node is not None
    pool = view.snapshot.node_pools[state.pool_name]
    types, on_node = view.types_of(pool), view.pods_on(state.node.name)
    price = costs.node_price(types, state.labels)
    reserved = costs.reserved_price(types, state.labels)
    return Candidate(key, state, state.claim, state.node, pool, on_node, price, reserved)


def bound_to_go(view: View, key: str) -> Candidate | None:
    """A node that ends whatever speaks for it; None when too little of it is there, or known, to think of its pods
    elsewhere."""
    state = view.snapshot.state_nodes[key]
    pool = view.snapshot.node_pools.get(state.pool_name)
    if state.claim is None or state.node is None or not state.initialized or state.deleting or pool is None:
        return None
    if next(unreadable(view, state), None) is not None or not view.types_of(pool):
        return None
    return unblocked(view, key)


def known_candidate(view: View, key: str, *, eventual: bool = False) -> Candidate | Blocker:
    """The same, worked out only when something has changed."""
    return view.turn.one(_EVENTUAL if eventual else _GRACEFUL, view.each, key)


def blockers(view: View, key: str, *, eventual: bool = False) -> Iterator[Blocker]:
    """All that speaks against disrupting a node, in the reference's order: of the node itself, then of its pods."""
    state = view.snapshot.state_nodes[key]
    yield from _node_blockers(view, key, state)
    if state.node is not None and state.claim is not None and not waived(state.claim, eventual):
        yield from pod_blockers(view, view.pods_on(state.node.name))


def _node_blockers(view: View, key: str, state: StateNode) -> Iterator[Blocker]:
    if view.command(key) is not None:
        yield Blocker("CommandInProgress", "a disruption command is already being carried out", quiet=True)
    if state.claim is None or not state.claim.managed:
        yield Blocker("Unmanaged", "no NodeClaim of ours is behind this node", quiet=True)
    yield from unreadable(view, state)
    if state.node is None:
        yield Blocker("NoNode", "the NodeClaim has no Node yet")
    if not state.initialized:
        yield Blocker("NotInitialized", "the node is not initialized")
    if state.deleting:
        yield Blocker("Deleting", "the node is already being deleted")
    if replaces_a_node(view, state):
        yield Blocker("Replacement", "pods of another node are about to move here", quiet=True)
    until = view.snapshot.nominated_until.get(key)
    if any(view.snapshot.pods.expected_on(state.name)):
        yield Blocker("Nominated", "a pending pod is expected on this node")
    elif until is not None and until > view.snapshot.now:
        yield Blocker("Nominated", "a pending pod is expected on this node", until=until)
    if state.annotations.get(labels.DO_NOT_DISRUPT) == "true":
        yield Blocker("NodeDoNotDisrupt", f"the node is annotated {labels.DO_NOT_DISRUPT}")
    yield from _shift_blockers(view, state)
    yield from _pool_blockers(view, state)


def _shift_blockers(view: View, state: StateNode) -> Iterator[Blocker]:
    """In a zone that traffic is shifted away from no instance is ended: a drain would be for nothing."""
    zone, zone_id = (state.labels.get(key, "") for key in (labels.ZONE, labels.ZONE_ID))
    until = view.snapshot.shifted_until(zone, zone_id)
    if until is not None:
        yield Blocker("ZonalShift", f"zone {zone or zone_id} is shifted away", until=until)


def unreadable(view: View, state: StateNode) -> Iterator[Blocker]:
    """What can be read only in part may protect a node more than is seen: a default stands where a budget was."""
    for value in (state.claim, state.node, view.snapshot.node_pools.get(state.pool_name)):
        if value is not None and value.metadata.unreadable:
            yield Blocker("Unreadable", f"{kinds.ref(value)} cannot be read: {value.metadata.unreadable}")


def replaces_a_node(view: View, state: StateNode) -> bool:
    """Whether this is the replacement of a node that a command is still about; it may well be empty until then."""
    names = replaced_by(state.claim) if state.claim is not None else ()
    replaced = [view.snapshot.node_claims.get(name) for name in names]
    return any(claim is not None and labels.COMMAND in claim.metadata.annotations for claim in replaced)


def _pool_blockers(view: View, state: StateNode) -> Iterator[Blocker]:
    if not state.pool_name:
        yield Blocker("NoNodePoolLabel", f"the node has no label {labels.NODEPOOL}")
    pool = view.snapshot.node_pools.get(state.pool_name)
    if pool is None:
        yield Blocker("NodePoolNotFound", f"NodePool {state.pool_name!r} not found")
    elif not view.types_of(pool):
        yield Blocker("NodePoolNotFound", f"NodePool {pool.name!r} has no instance types")


def waived(claim: NodeClaim, eventual: bool) -> bool:
    """Whether pods cannot stop the disruption of this claim from beginning."""
    return eventual and claim.spec.termination_grace_period is not None


def pod_blocker(view: View, on_node: tuple[Pod, ...]) -> Blocker | None:
    return next(pod_blockers(view, on_node), None)


def pod_blockers(view: View, on_node: tuple[Pod, ...]) -> Iterator[Blocker]:
    """First the pods that are protected (or may be: they can be read only in part), then those that a
    PodDisruptionBudget holds."""
    now = view.snapshot.now
    for pod in on_node:
        if pod.metadata.unreadable:
            yield Blocker("Unreadable", f"{pods.named(pod)} cannot be read: {pod.metadata.unreadable}", pod=pod.key)
        elif labels.DO_NOT_DISRUPT in pod.metadata.annotations and pods.active(pod) and pods.protected(pod, now):
            until = min(pods.protection_ends(pod), default=None)
            yield Blocker(
                "PodDoNotDisrupt", f"{pods.named(pod)} is annotated {labels.DO_NOT_DISRUPT}", until=until, pod=pod.key
            )
    for pod in on_node:
        holding = view.pdbs.blocking(pod, now)
        if holding:
            yield Blocker("PodDisruptionBudget", why_held(pod, holding), pod=pod.key, budgets=holding)


def _until(view: View, key: str) -> datetime | None:
    """When the answer may be another one although nothing has changed: a pod's protection ends."""
    return pods.next_protection_end(view.snapshot.pods.on(view.snapshot.state_nodes[key].name), view.snapshot.now)


def _graceful(view: View, key: str) -> tuple[Candidate | Blocker, datetime | None]:
    return candidate(view, key), _until(view, key)


def _eventually(view: View, key: str) -> tuple[Candidate | Blocker, datetime | None]:
    return candidate(view, key, eventual=True), _until(view, key)


_GRACEFUL: Step[View, Candidate | Blocker] = Step("candidates", "state_nodes", _graceful, speaks=lambda _: False)
_EVENTUAL: Step[View, Candidate | Blocker] = Step(
    "candidates of drift", "state_nodes", _eventually, speaks=lambda _: False
)


def refused(state: StateNode, blocker: Blocker, now: datetime | None = None) -> Plan:
    """A refusal about the node, emitted as an event unless it is quiet. `now` makes the plan look again then."""
    refusal = Refusal(f"node/{state.name}", Reason(blocker.code, blocker.text))
    words = f"Cannot disrupt: {blocker.text}"
    events = () if blocker.quiet else node_events(state, "DisruptionBlocked", words, dedupe=blocker.code)
    return Plan(refusals=(refusal,), events=tuple(event.standing() for event in events), next_due=now)
