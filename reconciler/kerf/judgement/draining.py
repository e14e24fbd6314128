"""The stage of a node that is being removed: remaining pods with the blocker of each, volumes, the deadline."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kerf.judgement import troubles
from kerf.judgement.troubles import Trouble
from kerf.judgement.values import Fact, Stage
from kerf.lifecycle.shifted_zones import claim_held
from kerf.lifecycle.termination.drain import forced_at, must_go, waiting_pods, wave_of
from kerf.lifecycle.termination.volumes import attached
from kerf.lifecycle.view import View
from kerf.model import failures
from kerf.model.changes.pdbs import Pdbs
from kerf.model.claims import deadline_of
from kerf.model.ends import HELD
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.snapshot import Snapshot, StateNode
from kerf_api import labels
from kerf_api.texts import counted
from kerf_api.v1 import conditions
from kerf_api.v1.conditions import TRUE
from kerf_api.v1.nodeclaim import NodeClaim

_WAVES = ("plain pods", "DaemonSet pods", "critical pods", "critical DaemonSet pods")


def going(snapshot: Snapshot, state: StateNode) -> Stage:
    """Return the stage of a node that is being deleted, or whose NodeClaim is."""
    view, claim, node = View(snapshot), state.claim, state.node
    deadline = deadline_of(claim) if claim is not None else None
    since = _since(state)
    if claim is not None and claim.is_true("InstanceTerminating"):
        return _terminating(snapshot, state, claim)
    if claim is not None and not claim.assigned_instance:
        return Stage("Terminating", "its launch is being cancelled", since)
    if claim is not None and (held := claim.condition(HELD)) is not None and held.status == TRUE:
        return Stage("Held", "is being terminated, but its drain is blocked", since, (Fact(held.message),))
    if node is None or labels.TERMINATION_FINALIZER not in node.metadata.finalizers:
        facts = (*_failed(snapshot, state), *_kept(view, claim), *_others(claim, node))
        return Stage("Terminating", "its instance is about to be terminated", since, facts)
    waiting = waiting_pods(view, node)
    if waiting:
        text = f"is being drained: {counted(len(waiting), 'pod')} left"
        facts = (*_failed(snapshot, state), *_pods(snapshot, waiting, deadline), *_deadline(deadline))
        return Stage("Draining", text, since, facts)
    volumes = attached(view, node)
    if volumes:
        text = f"is drained; {counted(len(volumes), 'volume')} still to be detached"
        facts = (*(Fact(f"volume {name}") for name in volumes), *_deadline(deadline))
        return Stage("Detaching", text, since, facts)
    facts = (*_failed(snapshot, state), *_kept(view, claim))
    return Stage("Terminating", "is drained; its instance is about to be terminated", since, facts)


def _failed(snapshot: Snapshot, state: StateNode) -> Iterator[Fact]:
    """Return the failing actions on the node, its NodeClaim and its instance; else the NodeClaim's conditions."""
    claim, node = state.claim, state.node
    names = [f"node/{node.name}"] if node is not None else []
    names += [f"nodeclaim/{claim.name}", f"instance/{claim.assigned_instance}"] if claim is not None else []
    known = failures.of(snapshot.failures, *names)
    yield from (Fact(one.standing(snapshot.now)) for one in known)
    for condition in claim.status.conditions if claim is not None else ():
        if condition.status != TRUE and not failures.known_end(snapshot.failures, condition.reason):
            yield Fact(f"{conditions.words(condition)}, since", condition.last_transition_time)


def _terminating(snapshot: Snapshot, state: StateNode, claim: NodeClaim) -> Stage:
    condition = claim.condition("InstanceTerminating")
    since = condition.last_transition_time if condition is not None else None
    text = f"instance {claim.assigned_instance} is being terminated"
    return Stage("Terminating", text, since, (*_failed(snapshot, state), *_others(claim, None)))


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


def _deadline(deadline: datetime | None) -> Iterator[Fact]:
    if deadline is not None:
        yield Fact("its terminationGracePeriod forces the drain at", deadline)
    else:
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
            yield troubles.not_removed(claim, since, "; ".join([stage.text, *(one.text for one in stage.facts[:1])]))


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
