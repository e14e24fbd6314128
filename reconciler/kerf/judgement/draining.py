"""The stage of a node that is being removed: remaining pods with the blocker of each, volumes, the deadline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from kerf.disruption.forced import interruption
from kerf.judgement import troubles
from kerf.judgement.troubles import Trouble
from kerf.judgement.values import Fact, Stage
from kerf.lifecycle.shifted_zones import claim_held
from kerf.lifecycle.termination.drain import forced_at, must_go, waiting_pods, wave_of
from kerf.lifecycle.termination.volumes import attached
from kerf.lifecycle.view import View
from kerf.model import ends, failures
from kerf.model.changes.pdbs import Pdbs
from kerf.model.claims import deadline_of
from kerf.model.failures import Failure
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.snapshot import Snapshot, StateNode
from kerf_api import labels
from kerf_api.texts import counted, shortened
from kerf_api.v1 import conditions
from kerf_api.v1.conditions import TRUE
from kerf_api.v1.meta import Condition
from kerf_api.v1.nodeclaim import NodeClaim

_WAVES = ("plain pods", "DaemonSet pods", "critical pods", "critical DaemonSet pods")
_MOST_NAMES: Final = 3


def going(snapshot: Snapshot, state: StateNode) -> Stage:
    """Return the stage of a node that is being deleted, or whose NodeClaim is."""
    view, claim, node = View(snapshot), state.claim, state.node
    deadline = deadline_of(claim) if claim is not None else None
    since = _since(state)
    if claim is not None and claim.is_true("InstanceTerminating"):
        return _terminating(snapshot, state, claim)
    if claim is not None and not claim.assigned_instance:
        return Stage("Terminating", "its launch is being cancelled", since)
    if claim is not None and (held := claim.condition(ends.HELD)) is not None and held.status == TRUE:
        return _guarded(snapshot, state, held)
    if node is None or labels.TERMINATION_FINALIZER not in node.metadata.finalizers:
        facts = (*_failed(snapshot, state), *_kept(view, claim), *_others(claim, node))
        fails = _but(snapshot, state)
        text = f"its instance is to be terminated{fails}" if fails else "its instance is about to be terminated"
        return Stage("Terminating", text, since, facts)
    waiting = waiting_pods(view, node)
    if waiting:
        text = f"is being drained: {counted(len(waiting), 'pod')} left{_but(snapshot, state, waiting)}"
        facts = (*_failed(snapshot, state), *_pods(snapshot, waiting, deadline), *_deadline(claim, deadline))
        return Stage("Draining", text, since, facts)
    volumes = attached(view, node)
    if volumes:
        text = f"is drained; {counted(len(volumes), 'volume')} still to be detached"
        facts = (*(Fact(f"volume {name}") for name in volumes), *_deadline(claim, deadline))
        return Stage("Detaching", text, since, facts)
    facts = (*_failed(snapshot, state), *_kept(view, claim))
    fails = _but(snapshot, state)
    text = f"is drained{fails}" if fails else "is drained; its instance is about to be terminated"
    return Stage("Terminating", text, since, facts)


def _guarded(snapshot: Snapshot, state: StateNode, held: Condition) -> Stage:
    """Return the stage of a node whose drain the deletion guard blocks. The blockers of its pods come first: they need
    a change, and block the drain after the guard has released it."""
    deadline = deadline_of(state.claim) if state.claim is not None else None
    waiting = waiting_pods(View(snapshot), state.node) if state.node is not None else []
    rows = [(pod, names) for pod in waiting if (names := _blockers(snapshot, pod, deadline))]
    text = "is being terminated, but its drain is blocked"
    if rows:
        known = sorted({name for _, names in rows for name in names})
        text = f"{text} by {shortened(known, _MOST_NAMES)}, and by the deletion guard"
    facts = [fact for pod, _ in rows for fact in _pods(snapshot, [pod], deadline)]
    return Stage(
        "Held", text, _since(state), (*facts, Fact(held.message), *(_deadline(state.claim, deadline) if rows else ()))
    )


def _blockers(snapshot: Snapshot, pod: Pod, deadline: datetime | None) -> tuple[str, ...]:
    """Return what keeps a pod from being evicted, whenever its turn comes; empty for a pod that is deleted anyway."""
    if pod.metadata.deletion_timestamp is not None or must_go(pod, snapshot.now, deadline):
        return ()
    if pods.protected(pod, snapshot.now):
        return (f"the annotation {labels.DO_NOT_DISRUPT}",)
    found = Pdbs(snapshot.pdb_selectors, snapshot.pdb_budgets).blocking(pod, snapshot.now)
    return tuple(f"PodDisruptionBudget {key}" for key in found)


def _failures(snapshot: Snapshot, state: StateNode) -> tuple[Failure, ...]:
    """Return the failing actions on the node, its NodeClaim and its instance, the oldest first."""
    claim, node = state.claim, state.node
    names = [f"node/{node.name}"] if node is not None else []
    names += [f"nodeclaim/{claim.name}", f"instance/{claim.assigned_instance}"] if claim is not None else []
    return failures.of(snapshot.failures, *names)


def _reported(snapshot: Snapshot, claim: NodeClaim | None) -> Iterator[Condition]:
    """Return the conditions of a NodeClaim that report a failing action which is not known otherwise."""
    for condition in claim.status.conditions if claim is not None else ():
        if condition.status != TRUE and not failures.known_end(snapshot.failures, condition.reason):
            yield condition


def _but(snapshot: Snapshot, state: StateNode, waiting: Sequence[Pod] = ()) -> str:
    """Return the failing action on a node or on one of its pods with its fix, as the end of a text; empty if none."""
    evictions = (failures.eviction(snapshot.failures, pod.key) for pod in waiting)
    for one in (*_failures(snapshot, state), *(one for one in evictions if one is not None)):
        return f", but {one.text}; {one.fix}"
    for condition in _reported(snapshot, state.claim):
        return f", but {condition.message}; kerf preflight lists missing permissions"
    return ""


def _failed(snapshot: Snapshot, state: StateNode) -> Iterator[Fact]:
    """Return the failing actions on the node, its NodeClaim and its instance; else the NodeClaim's conditions."""
    yield from (Fact(one.standing(snapshot.now)) for one in _failures(snapshot, state))
    for condition in _reported(snapshot, state.claim):
        yield Fact(f"{conditions.words(condition)}, since", condition.last_transition_time)


def _terminating(snapshot: Snapshot, state: StateNode, claim: NodeClaim) -> Stage:
    condition = claim.condition("InstanceTerminating")
    since = condition.last_transition_time if condition is not None else None
    fails, others = _but(snapshot, state), tuple(_others(claim, state.node))
    if others and any(_released(value) for value in (claim, state.node)):
        text = f"instance {claim.assigned_instance} is terminated, but {others[0].text}"
        return Stage("Terminating", text, _since(state), others[1:])
    text = f"instance {claim.assigned_instance} is {'to be' if fails else 'being'} terminated{fails}"
    return Stage("Terminating", text, since, (*_failed(snapshot, state), *others))


def _released(value: NodeClaim | Node | None) -> bool:
    """Whether Kerf's finalizer is gone from what is being deleted: that is after the end of the instance."""
    return (
        value is not None and value.metadata.deleting and labels.TERMINATION_FINALIZER not in value.metadata.finalizers
    )


def _kept(view: View, claim: NodeClaim | None) -> Iterator[Fact]:
    """Return the reason why its instance may not be terminated now."""
    held = claim_held(view, claim, view.instance(claim.status.provider_id)) if claim is not None else None
    for refusal in held.refusals if held is not None else ():
        yield Fact(refusal.reason.text)


def _others(claim: NodeClaim | None, node: Node | None) -> Iterator[Fact]:
    """Return the finalizers of other controllers: Kerf does not remove these."""
    for kind, value in (("NodeClaim", claim), ("Node", node)):
        foreign = [f for f in value.metadata.finalizers if f != labels.TERMINATION_FINALIZER] if value else []
        if value is not None and foreign and value.metadata.deleting:
            others = ", ".join(sorted(foreign))
            yield Fact(
                f"the deletion of {kind} {value.metadata.name} is blocked by finalizers of other controllers: {others}"
            )


def _since(state: StateNode) -> datetime | None:
    for value in (state.claim, state.node):
        if value is not None and value.metadata.deletion_timestamp is not None:
            return value.metadata.deletion_timestamp
    return None


def _deadline(claim: NodeClaim | None, deadline: datetime | None) -> Iterator[Fact]:
    code = ends.code(claim) if claim is not None else ""
    if code in interruption.CODES:
        yield Fact(f"EC2 ends its instance ({code}): pods that are left then are stopped")
    if deadline is not None:
        yield Fact("its terminationGracePeriod forces the drain at", deadline)
    elif code not in interruption.CODES:
        yield Fact("it has no terminationGracePeriod, so its drain has no time limit")


# --- troubles ---------------------------------------------------------------------------------------------------
def never_drained(snapshot: Snapshot) -> Iterator[Trouble]:
    """Return drains that never end: they have no deadline, and PodDisruptionBudgets never allow some evictions; and
    removals that take longer than `troubles.REMOVED_WITHIN`."""
    view, pdbs = View(snapshot), Pdbs(snapshot.pdb_selectors, snapshot.pdb_budgets)
    for state in snapshot.state_nodes.values():
        claim, node, now = state.claim, state.node, snapshot.now
        if claim is None or not claim.metadata.deleting:
            continue
        deadline, since = deadline_of(claim), claim.metadata.deletion_timestamp
        waiting = waiting_pods(view, node) if node is not None and deadline is None else ()
        rows = [pod for pod in waiting if pdbs.forbids(pod, now)]
        if kept := [troubles.Kept(pod.key, pdbs.blocking(pod, now)) for pod in rows]:
            yield troubles.undrained(claim, sorted(kept, key=lambda one: one.pod))
        elif since is not None and now - max(since, deadline or since) >= troubles.REMOVED_WITHIN:
            stage = going(snapshot, state)
            cause = () if _but(snapshot, state) else stage.facts[:1]  # the text of the stage has it already
            state_text = "; ".join([stage.text, *(one.text for one in cause)])
            yield troubles.not_removed(claim, since, state_text, drains=stage.code == "Draining")


# --- pods -------------------------------------------------------------------------------------------------------
def _pods(snapshot: Snapshot, waiting: list[Pod], deadline: datetime | None) -> Iterator[Fact]:
    """Return the state of each remaining pod, sorted by key."""
    wave = min(wave_of(pod) for pod in waiting)
    for pod in waiting:
        text, at = _held(snapshot, pod, wave, deadline)
        forced = forced_at(pod, deadline)
        if forced is not None and at is None and pod.metadata.deletion_timestamp is None:
            text, at = f"{text}; deleted by force at", forced
        yield Fact(f"{pods.named(pod)} {text}", at)


def _held(snapshot: Snapshot, pod: Pod, wave: int, deadline: datetime | None) -> tuple[str, datetime | None]:
    now = snapshot.now
    if pod.metadata.deletion_timestamp is not None:
        return "is terminating until", pod.metadata.deletion_timestamp
    if must_go(pod, now, deadline):
        return "is being deleted by force: the deadline is near", None
    if pods.protected(pod, now):
        until = min(pods.protection_ends(pod), default=None)
        return f"is annotated {labels.DO_NOT_DISRUPT}" + (", until" if until is not None else ""), until
    if wave_of(pod) > wave:
        return f"waits until the {_WAVES[wave]} are gone", None
    holding = Pdbs(snapshot.pdb_selectors, snapshot.pdb_budgets).blocking(pod, now)
    if len(holding) > 1:
        return f"has several PodDisruptionBudgets, which eviction does not support: {', '.join(holding)}", None
    if holding:
        return f"is blocked by PodDisruptionBudget {holding[0]}", None
    failure = failures.eviction(snapshot.failures, pod.key)
    if failure is not None:
        return f"cannot be evicted: {failure.standing(now)}", None
    return "is being evicted", None
