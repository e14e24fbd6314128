"""The stage of a node in its life, from the NodeClaim to the termination of the instance."""

from __future__ import annotations

from collections.abc import Iterator

from kerf.disruption.command import Command, replaced_by
from kerf.disruption.consolidation.consequences import evicted
from kerf.disruption.forced.expiration import end_of
from kerf.disruption.on_nodes import tainted
from kerf.disruption.replacing import awaited, ends_at
from kerf.disruption.view import View
from kerf.ec2.errors import UNAUTHORIZED, launch_condition
from kerf.judgement.draining import going
from kerf.judgement.values import Fact, Stage
from kerf.lifecycle.nodeclaim.liveness import given_up_at
from kerf.lifecycle.view import View as LifeView
from kerf.model import failures
from kerf.model.snapshot import Snapshot, StateNode
from kerf_api import labels
from kerf_api.v1.budgets import EXPIRED
from kerf_api.v1.nodeclaim import NodeClaim

#: The first condition that is not True yet, with the stage and the text of a NodeClaim that waits for it.
_STEPS = (
    ("Launched", "Launching", "waits for its instance to be launched"),
    ("Registered", "Registering", "waits for its instance to join the cluster as a node"),
    ("Initialized", "Initializing", "has joined and waits to be initialized"),
)


def stage_of(view: View, key: str) -> Stage:
    """Return the stage of a state node."""
    state = view.snapshot.state_nodes[key]
    claim, node = state.claim, state.node
    if claim is None or not claim.managed:
        return _foreign(view, state)
    if claim.metadata.deleting or claim.is_true("InstanceTerminating") or (node is not None and node.metadata.deleting):
        return going(view.snapshot, state)
    command = view.command(key)
    if command is not None:
        return _disrupting(view, state, command)
    return _coming(view, claim) or _in_use(view, state, claim)


def _foreign(view: View, state: StateNode) -> Stage:
    claims = [state.claim] if state.claim is not None else []
    if state.node is not None:
        claims += view.snapshot.foreign_by_provider.get(state.node.spec.provider_id, ())
    for claim in claims:
        ref = claim.spec.node_class_ref
        text = f"is managed by another controller: its nodeClassRef is {ref.kind}.{ref.group} {ref.name}"
        return Stage("NotOurs", text)
    assert state.node is not None
    meta = state.node.metadata
    if meta.deleting and {labels.TERMINATION_FINALIZER} & set(meta.finalizers) and labels.NODECLASS in meta.labels:
        return going(view.snapshot, state)
    sharing = view.snapshot.claims_by_provider.get(state.node.spec.provider_id, ())
    if sharing:
        names = ", ".join(claim.name for claim in sharing)
        return Stage("NotOurs", f"is one of several nodes with the instance of NodeClaim {names}")
    pool = meta.labels.get(labels.NODEPOOL)
    was = f"; it is labelled with NodePool {pool}, but its NodeClaim is gone" if pool else ""
    return Stage("NotOurs", f"is not managed by Kerf: no NodeClaim has its instance{was}")


# --- before initialization --------------------------------------------------------------------------------------
def _coming(view: View, claim: NodeClaim) -> Stage | None:
    for type_, code, text in _STEPS:
        if not claim.is_true(type_):
            condition = claim.condition(type_)
            since = condition.last_transition_time if condition is not None else claim.metadata.creation_timestamp
            return Stage(code, f"{text}{_but(view, claim, type_)}", since, tuple(_waits(view, claim, type_)))
    return None


def _but(view: View, claim: NodeClaim, type_: str) -> str:
    """Return the failing action that no further attempt fixes, with its fix, as the end of a text; empty if none."""
    launched = type_ != "Launched"
    for one in failures.of_coming(view.snapshot.failures, claim.name, claim.pool_name, launched=launched):
        if one.outcome in failures.STUCK:
            return f", but {one.text}; {one.fix}"
    condition = claim.condition(type_)
    if condition is not None and condition.reason == UNAUTHORIZED:
        return f", but {condition.message}; {failures.IAM_FIX}"
    return ""


def _waits(view: View, claim: NodeClaim, type_: str) -> Iterator[Fact]:
    said = _said(claim, type_)
    if said:
        yield Fact(said)
    launched = type_ != "Launched"
    for one in failures.of_coming(view.snapshot.failures, claim.name, claim.pool_name, launched=launched):
        yield Fact(one.standing(view.snapshot.now))
    replaced = replaced_by(claim)
    if replaced:
        yield Fact(f"it replaces NodeClaim {', '.join(replaced)}")
    until = given_up_at(LifeView(view.snapshot), claim)
    if until is not None:
        yield Fact("its NodeClaim is deleted, and created again if it is needed, at", until)
    elif type_ == "Initialized":
        yield Fact("no time limit; before it is initialized, it is neither replaced for drift nor consolidated")


def _said(claim: NodeClaim, type_: str) -> str:
    """Return reason and message of a condition."""
    condition = claim.condition(type_)
    return condition.text if condition is not None else ""


# --- a command --------------------------------------------------------------------------------------------------
def _disrupting(view: View, state: StateNode, command: Command) -> Stage:
    facts = (*_moving(view, state, command), *_replacements(view, command), _otherwise(view, state, command))
    reason = f"{command.reason}: {command.why}" if command.why else command.reason
    text = f"is about to be disrupted ({reason}; command {command.id}): {_step(view, state, command)}"
    return Stage("Disrupting", text, command.started, facts)


def _moving(view: View, state: StateNode, command: Command) -> Iterator[Fact]:
    """Return the nodes that are disrupted together with it, and the pods to evict."""
    if command.peers:
        yield Fact(f"is disrupted together with NodeClaim {', '.join(command.peers)}")
    yield from (Fact(line) for line in evicted(view.pods_on(state.name)))


def _otherwise(view: View, state: StateNode, command: Command) -> Fact:
    """Return the consequence for the node if the command fails."""
    claim = state.claim if command.reason == EXPIRED else None
    end = end_of(view.snapshot, claim, view.snapshot.now) if claim is not None else None
    if end is not None and end.latest is not None:
        return Fact("is terminated by force if its successor is not ready by", end.latest)
    return Fact("the command is rolled back if it is not complete by", ends_at(view, command))


def _step(view: View, state: StateNode, command: Command) -> str:
    if state.node is None or not tainted(state.node):
        return "it is being tainted"
    if not command.created:
        return "its replacements are being created"
    waiting = awaited(view, command)
    if waiting:
        return f"waits for {', '.join(claim.name for claim in waiting)}"
    return "its NodeClaim is about to be deleted"


def _replacements(view: View, command: Command) -> Iterator[Fact]:
    for name in command.replacements:
        claim = view.snapshot.node_claims.get(name)
        if claim is None:
            gone = f"gone{refused_launch(view.snapshot, name)}"
            yield Fact(f"replacement {name} is {gone if command.created else 'still to be created'}")
            continue
        missing = next(((type_, text) for type_, _, text in _STEPS if not claim.is_true(type_)), None)
        said = _said(claim, missing[0]) if missing is not None else ""
        waits = missing[1] if missing is not None else "is ready"
        yield Fact(f"replacement {name}{_kind(claim)} {waits}" + (f" ({said})" if said else ""))


def refused_launch(snapshot: Snapshot, name: str) -> str:
    """Return why Kerf has deleted a NodeClaim that was never launched; empty when that is not known."""
    failure = snapshot.launch_failures.get(f"nodeclaim/{name}")
    message = launch_condition(failure.errors)[1] if failure is not None else ""
    return f": Kerf deleted the NodeClaim, for EC2 refused its launch: {message}" if message else ""


def _kind(claim: NodeClaim) -> str:
    """Return the launched instance type, capacity type and zone, in parentheses."""
    keys = (labels.INSTANCE_TYPE, labels.CAPACITY_TYPE, labels.ZONE)
    known = [claim.metadata.labels[key] for key in keys if key in claim.metadata.labels]
    return f" ({' '.join(known)})" if known else ""


# --- in use -----------------------------------------------------------------------------------------------------
def _in_use(view: View, state: StateNode, claim: NodeClaim) -> Stage:
    condition = claim.condition("Initialized")
    since = condition.last_transition_time if condition is not None else None
    return Stage("InUse", "is in use", since, tuple(_remarks(state)))


def _remarks(state: StateNode) -> Iterator[Fact]:
    if state.node is None:
        yield Fact("its Node does not exist")
    elif not state.node.ready:
        yield Fact("its Node is not Ready, and counts against the budgets of its NodePool")
    elif not state.initialized:
        yield Fact(f"its Node has lost the label {labels.INITIALIZED}")
