"""How a command is carried out: one step a tick, each resting on what the API server already shows.

The command is written to its NodeClaim; then the node is tainted; then replacements are created; when all of them are
initialised, the claim is deleted. A crash after any step leaves a state from which the next tick continues. Until the
deletion a command can be rolled back: the annotation goes first, and whatever it had brought (taint, condition) is
removed because no command accounts for it any more. Source: disruption reference §6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from kerf.disruption.announcing import CHURN, rejected
from kerf.disruption.candidates import canary
from kerf.disruption.candidates.candidates import Candidate, pod_blocker, unreadable, waived
from kerf.disruption.candidates.pacing import failed_now
from kerf.disruption.command import Command, command_id
from kerf.disruption.on_nodes import leaving, taint, tainted, terminating, tried, untaint
from kerf.disruption.replacing import are_late, awaited, ends_at, replacements
from kerf.disruption.view import View
from kerf.model import kinds
from kerf.model.annotations import text_of
from kerf.model.instants import SKEW, rfc3339
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.memory import Step, planning
from kerf.model.plan import (
    NOTHING,
    Action,
    CreateNodeClaim,
    DeleteObject,
    Event,
    Plan,
    Reason,
    Refusal,
    Source,
    joined,
)
from kerf.model.snapshot import StateNode
from kerf.model.writes import annotate
from kerf.scheduling.mismatch.replacements import MISFITS, Misfit
from kerf_api import labels
from kerf_api.v1.budgets import DRIFTED, EMPTY, EXPIRED, UNDERUTILIZED
from kerf_api.v1.nodeclaim import NodeClaim

#: What the write that begins a command is called.
START_COMMAND: Final = "StartCommand"
#: Replacements that have not appeared by then cannot be created.
_CREATE_LIMIT: Final = timedelta(minutes=1)
#: Commands that go together are written at once; one that has not appeared by then was not written, or is no more.
_PEERS_LIMIT: Final = timedelta(seconds=15)
#: What the end of a command rests on: that no pod came, that none is protected, that the NodePool is there.
_SOURCES = frozenset({Source.PODS, Source.PDBS, Source.NODES, Source.NODE_CLAIMS, Source.NODE_POOLS})


@dataclass(frozen=True, slots=True)
class _Stop:
    """Why a command cannot go on. `failed` says that its replacement is to blame, `differs` that this is other than
    planned, `late` that it was not initialized in time."""

    code: str
    text: str
    failed: bool = False
    differs: bool = False
    late: bool = False


# --- start ------------------------------------------------------------------------------------------------------
def start(
    view: View,
    candidate: Candidate,
    reason: str,
    text: str,
    replacements: Sequence[NodeClaim] = (),
    saving: int | None = None,
) -> Plan:
    """Write the command to the candidate's claim; the replacements are part of it, for a later tick to create."""
    return start_together(view, (candidate,), reason, text, replacements, saving)


def start_together(
    view: View,
    candidates: Sequence[Candidate],
    reason: str,
    text: str,
    replacements: Sequence[NodeClaim] = (),
    saving: int | None = None,
) -> Plan:
    """The same for several that go for the same replacements: each carries the whole command."""
    now, names = view.snapshot.now, [one.claim.name for one in candidates]
    id_ = command_id(candidates[0].claim.metadata.uid, reason, now)
    claims = tuple(_marked(claim, names) for claim in replacements)
    why = Reason(reason, text)
    actions = []
    for one in candidates:
        command = Command(
            id=id_,
            reason=reason,
            started=now,
            replacements=tuple(claim.name for claim in claims),
            claims=claims,
            created=not claims,
            pods=tuple(sorted(pod.metadata.uid for pod in one.movable)),
            why=text,
            peers=tuple(name for name in names if name != one.claim.name),
            saving=saving,
        )
        actions.append(annotate(one.claim, START_COMMAND, {labels.COMMAND: text_of(command)}, why))
    return Plan(actions=tuple(actions))


def _marked(claim: NodeClaim, replaced: Sequence[str]) -> NodeClaim:
    annotations = {**claim.metadata.annotations, labels.REPLACES: ",".join(replaced)}
    return replace(claim, metadata=replace(claim.metadata, annotations=annotations))


# --- progress ---------------------------------------------------------------------------------------------------
def progress(view: View) -> Plan:
    """The next step of every command, in the order of the claims' names."""
    return joined(_next(view, name, view.commands[name]) for name in sorted(view.commands))


def _next(view: View, name: str, command: Command) -> Plan:
    return tried(view.snapshot, f"nodeclaim/{name}", lambda: _advance(view, name, command))


def _advance(view: View, name: str, command: Command) -> Plan:
    state = view.snapshot.state_nodes[name]
    if state.deleting or state.claim is None or name in view.ending:
        return NOTHING
    stop = _stop(view, name, state, command)
    if stop is not None:
        return _roll_back(view, state.claim, command, stop)
    assert state.node is not None
    why = Reason(command.reason, f"command {command.id}")
    due = ends_at(view, command)
    if not tainted(state.node):
        return Plan(actions=(taint(state.node, why),), next_due=due)
    if not state.claim.is_true("DisruptionReason"):
        return Plan(next_due=due)
    if not command.created:
        return Plan(actions=_create(view, state.claim, command, why), next_due=_peers_due(view, command) or due)
    waiting = awaited(view, command)
    if waiting:
        return Plan(events=tuple(e for claim in waiting for e in _told_of(claim)), next_due=due)
    for one in sorted(_misfits(view, command), key=lambda one: one.verdict or due):
        text = f"{one.text}; that may change until {rfc3339(one.verdict or due)}"
        return Plan(refusals=(Refusal(f"nodeclaim/{name}", Reason("ReplacementDiffers", text)),), next_due=one.verdict)
    return _finish(view, state, command)


def _create(view: View, claim: NodeClaim, command: Command, why: Reason) -> tuple[Action, ...]:
    """Create the replacements that are not there yet; once all are, note that, and forget their contents.

    Of several that go together the first by name does so, when all of them are tainted.
    """
    missing = [c for c in command.claims if c.name not in view.snapshot.node_claims]
    if missing and not (claim.name < min(command.peers, default="~") and all(_ready(view, p) for p in command.peers)):
        return ()
    if missing:
        return tuple(CreateNodeClaim(reason=why, claim=c) for c in missing)
    seen = replace(command, created=True, claims=())
    return (annotate(claim, "NoteReplacements", {labels.COMMAND: text_of(seen)}, why),)


def _ready(view: View, name: str) -> bool:
    """Whether no pod comes to the node any more."""
    state = view.snapshot.state_nodes.get(name)
    return (
        state is not None
        and state.node is not None
        and state.claim is not None
        and tainted(state.node)
        and state.claim.is_true("DisruptionReason")
    )


def _lost_peer(view: View, command: Command) -> str | None:
    """One that was to go with it and does not carry the command (any more, or not yet)."""
    known = ((name, view.commands.get(name)) for name in command.peers)
    return next((name for name, theirs in known if theirs is None or theirs.id != command.id), None)


def _peers_due(view: View, command: Command) -> datetime | None:
    return command.started + _PEERS_LIMIT if _lost_peer(view, command) is not None else None


def _told_of(claim: NodeClaim) -> tuple[Event, ...]:
    ref, uid = kinds.ref(claim), claim.metadata.uid
    replaced = claim.metadata.annotations.get(labels.REPLACES, "")
    return (
        Event(ref, uid, "Normal", "DisruptionLaunching", f"Launching in place of {replaced}").standing(),
        Event(
            ref, uid, "Normal", "DisruptionWaitingReadiness", f"Waiting until it can run the pods of {replaced}"
        ).standing(),
    )


def _finish(view: View, state: StateNode, command: Command) -> Plan:
    """Delete the claim. The drain is the lifecycle's: it waits for PodDisruptionBudgets."""
    assert state.claim is not None
    assert state.node is not None
    pool = view.snapshot.node_pools.get(state.pool_name)
    if command.reason == DRIFTED and pool is not None and canary.unnoted(view, pool, command):
        return Plan(next_due=view.snapshot.now + view.snapshot.settings.disruption_period)
    on_node = view.pods_on(state.node.name)
    forceful = _forceful(command)
    deletion = DeleteObject(
        reason=Reason(command.reason, f"command {command.id}"),
        sources=_SOURCES,
        ref=kinds.ref(state.claim),
        uid=state.claim.metadata.uid,
        node_name="" if forceful else state.node.name,
        expected_pods=None if forceful else frozenset(pod.metadata.uid for pod in on_node),
        policy=_policy(view, state, command),
        moved=leaving(view.snapshot, state),
    )
    words = f"{command.reason} ({command.why})" if command.why else command.reason
    return Plan(actions=(deletion,), events=terminating(state, deletion, f"{words}, command {command.id}"))


def _policy(view: View, state: StateNode, command: Command) -> str:
    """The consolidationPolicy that a command comes from; drift and expiration come from none."""
    pool = view.snapshot.node_pools.get(state.pool_name)
    if pool is None or command.reason not in (EMPTY, UNDERUTILIZED):
        return ""
    return pool.spec.disruption.consolidation_policy


# --- rolling back -----------------------------------------------------------------------------------------------
def _stop(view: View, name: str, state: StateNode, command: Command) -> _Stop | None:
    """The first reason not to continue, or None."""
    snapshot = view.snapshot
    assert state.claim is not None
    torn = next(unreadable(view, state), None)
    if torn is not None:
        return _Stop(torn.code, torn.text)
    if state.node is None or not state.initialized:
        return _Stop("NodeGone", "the Node is deleted or no longer initialized")
    if state.pool_name not in snapshot.node_pools:
        return _Stop("NodePoolNotFound", f"NodePool {state.pool_name!r} not found")
    if command.reason == DRIFTED and not state.claim.is_true("Drifted"):
        return _Stop("NotDrifted", "the NodeClaim is no longer drifted")
    if not _forceful(command) and state.annotations.get(labels.DO_NOT_DISRUPT) == "true":
        return _Stop("NodeDoNotDisrupt", f"the node is annotated {labels.DO_NOT_DISRUPT}")
    return _stop_for_replacements(view, command) or view.turn.one(_STOPS, view.each, name)


def _stop_for_replacements(view: View, command: Command) -> _Stop | None:
    """A lost replacement, or too long a wait."""
    age = view.snapshot.now - command.started
    blamed = bool(command.replacements)
    if age < -SKEW:
        return _Stop("TimedOut", f"it started at {rfc3339(command.started)}, ahead of now: the clock was wrong")
    limit = ends_at(view, command) - command.started
    if age > limit:
        return _Stop("TimedOut", f"not done after {limit}", failed=blamed, late=are_late(view, command))
    if not command.created:
        alone = _lost_peer(view, command) if age > _PEERS_LIMIT else None
        if alone is not None:
            return _Stop("PeerStays", f"NodeClaim {alone}, of the same command, stays")
        late = age > _CREATE_LIMIT
        return _Stop("TimedOut", "the replacements could not be created", failed=True) if late else None
    living = [claim for claim in replacements(view, command) if not claim.metadata.deleting]
    if len(living) < len(command.replacements):
        lost = sorted(set(command.replacements) - {claim.name for claim in living})
        return _Stop("ReplacementFailed", f"replacement {', '.join(lost)} is gone", failed=True)
    texts = [one.text for one in _misfits(view, command) if one.verdict is None]
    return _Stop("ReplacementDiffers", texts[0], failed=True, differs=True) if texts else None


def _misfits(view: View, command: Command) -> list[Misfit]:
    """The replacements that could not run the pods. A node that is removed anyway takes any."""
    if _forceful(command):
        return []
    known = (view.turn.one(MISFITS, view.turn.noted, claim.name) for claim in replacements(view, command))
    return [one for one in known if one is not None]


def _stop_for_pods(view: View, name: str) -> tuple[_Stop | None, datetime | None]:
    """Pods that came or may not be disrupted, and when that may be otherwise.

    Once replacements are bought, a PodDisruptionBudget no longer ends the command: it delays the drain. A node for the
    same pods would be bought and given up each time that it is closed for longer than a command lasts.
    """
    snapshot, command = view.snapshot, view.command(name)
    claim, node = snapshot.state_nodes[name].claim, snapshot.state_nodes[name].node
    if command is None or claim is None or node is None or _forceful(command):
        return None, None
    on_node = view.pods_on(node.name)
    return _stop_of(view, claim, command, on_node), pods.next_protection_end(on_node, snapshot.now)


def _stop_of(view: View, claim: NodeClaim, command: Command, on_node: tuple[Pod, ...]) -> _Stop | None:
    come = [pod for pod in on_node if _unforeseen(pod, command)]
    if come:
        return _Stop("PodArrived", f"{pods.named(come[0])} was bound to the node")
    until = view.snapshot.nominated_until.get(claim.name)
    if command.reason == EMPTY and until is not None and until > view.snapshot.now:
        return _Stop("Nominated", "a pending pod is expected on this node")
    blocker = None if _eventual(claim, command) else pod_blocker(view, on_node)
    if blocker is None or (blocker.code == "PodDisruptionBudget" and command.replacements and command.created):
        return None
    return _Stop(blocker.code, blocker.text)


#: Of a NodeClaim with a command.
_STOPS: Final[Step[View, _Stop | None]] = Step(
    "pods that stop commands", "node_claims", _stop_for_pods, speaks=lambda _: False
)


def _unforeseen(pod: Pod, command: Command) -> bool:
    """Whether the pod needs a place that no plan has; one that tolerates the taint comes and goes as it likes."""
    return pods.reschedulable(pod) and pod.metadata.uid not in command.pods and not pods.tolerates_disruption(pod)


def _eventual(claim: NodeClaim, command: Command) -> bool:
    return waived(claim, command.reason == DRIFTED)


def _forceful(command: Command) -> bool:
    """Whether the node is removed anyway, and the command only sees to it that its successor is ready by then."""
    return command.reason == EXPIRED


def _roll_back(view: View, claim: NodeClaim, command: Command, stop: _Stop) -> Plan:
    """Take the command from the claim; a failed replacement is remembered there."""
    now = view.snapshot.now
    why = Reason(stop.code, stop.text)
    annotations: dict[str, str | None] = {labels.COMMAND: None}
    if stop.failed:
        annotations[labels.COMMAND_FAILED] = text_of(
            failed_now(view.snapshot, claim, command, differs=stop.differs, late=stop.late)
        )
    dropped = command.reason == UNDERUTILIZED and not stop.failed
    return Plan(
        actions=(annotate(claim, "RollBackCommand", annotations, why),),
        events=rejected([view.snapshot.state_nodes[claim.name]], CHURN, stop.text) if dropped else (),
        refusals=(Refusal(f"nodeclaim/{claim.name}", why),),
        next_due=now + view.snapshot.settings.disruption_period,
    )


# --- healing ----------------------------------------------------------------------------------------------------
def heal(view: View) -> Plan:
    """Remove taints that no command accounts for, and commands that cannot be read."""
    return view.turn.all(_HEALED, view.each).plan


def _suspect(state: StateNode) -> bool:
    """Whether something of a command is there, on a node that lives."""
    claim, node = state.claim, state.node
    if claim is None or claim.metadata.deleting or claim.metadata.unreadable:
        return False
    left = node is not None and tainted(node) and state.initialized and not node.metadata.deleting
    return (left and not state.deleting) or labels.COMMAND in claim.metadata.annotations


def _healed(view: View, key: str) -> Plan:
    state = view.snapshot.state_nodes[key]
    if not _suspect(state) or view.command(key) is not None:
        return NOTHING
    assert state.claim is not None
    why = Reason("NoCommand", "removes the annotation or taint of a command that no longer exists")
    if labels.COMMAND in state.claim.metadata.annotations:
        return Plan(actions=(annotate(state.claim, "RemoveCommand", {labels.COMMAND: None}, why),))
    if state.node is None or state.node.metadata.unreadable:  # taints that could not be read would be lost
        return NOTHING
    return Plan(actions=(untaint(state.node, why),))


_HEALED = planning("left over commands", "state_nodes", "node", _healed)
