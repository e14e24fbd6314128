"""The end of a claim: its Node is drained, its volumes detach, its instance is terminated and gone; then both vanish.

Deleting the claim or its Node comes to the same. Each stage waits for the one before, each wait is a fact in the API
(a taint, a condition, a finalizer), and a claim lets go only when EC2's own list no longer shows the instance.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from kerf.lifecycle.nodeclaim.outcomes import shown_from
from kerf.lifecycle.nodeclaim.ownership import is_of_another, is_strayed
from kerf.lifecycle.nodeclaim.progress import Progress, finish
from kerf.lifecycle.termination.deletion_guard import released
from kerf.lifecycle.termination.drain import drain, failed_evictions
from kerf.lifecycle.termination.instance_end import adopt_or_release, terminate
from kerf.lifecycle.termination.volumes import attached
from kerf.lifecycle.view import View
from kerf.model.claims import deadline_of, since
from kerf.model.ends import NODE_DELETED
from kerf.model.instants import rfc3339
from kerf.model.kubernetes.objects import Node
from kerf.model.kubernetes.pods import DISRUPTED
from kerf.model.plan import NOTHING, Event, Plan, Reason, Source, joined
from kerf.model.writes import (
    act,
    changed,
    deletion,
    normal,
    warning,
    with_annotations,
    with_metadata,
    without_finalizer,
)
from kerf_api import durations, labels
from kerf_api.v1.conditions import FALSE, TRUE, UNKNOWN
from kerf_api.v1.meta import Taint
from kerf_api.v1.nodeclaim import NodeClaim

_NODE_WAIT = timedelta(seconds=10)
_EXCLUDED = {labels.EXCLUDE_BALANCERS: "karpenter"}


def end_claim(view: View, claim: NodeClaim) -> Plan:
    """The next stage of a claim that is being deleted and still has our finalizer."""
    if labels.TERMINATION_FINALIZER not in claim.metadata.finalizers:
        return NOTHING
    progress = _with_deadline(released(Progress(view, claim, None)))
    if not claim.assigned_instance:
        progress, ended = adopt_or_release(progress)
    elif nodes := _registered_nodes(view, claim):
        progress, ended = _end_nodes(progress, nodes), False
    else:
        progress, ended = terminate(progress)
    if ended:
        progress = progress.with_claim(without_finalizer(progress.claim, labels.TERMINATION_FINALIZER))
        return finish(progress, claim, None, Source.INSTANCES, Source.NODE_CLAIMS)
    return finish(progress, claim)


def end_node(view: View, node: Node) -> Plan:
    """A Node that is being deleted: its claim goes too and leads from there; without one it is only drained."""
    if labels.TERMINATION_FINALIZER not in node.metadata.finalizers:
        return NOTHING
    claim = view.claim_of(node)
    if claim is None:
        return _end_orphan(view, node) if labels.NODECLASS in node.metadata.labels else NOTHING
    if claim.metadata.deleting or not claim.managed:
        return NOTHING
    return act(deletion(claim, Reason(NODE_DELETED, f"node {node.name} is being deleted"), Source.NODES))


def _end_orphan(view: View, node: Node) -> Plan:
    """No claim, or several: the instance is left to garbage collection, which goes by EC2's tags."""
    if _lost(view, node):
        return _release_node(node, Source.INSTANCES)
    if (tainted := _tainted(node)) != node:
        return act(*changed(node, tainted, "TaintNode", Reason("Terminating", f"node {node.name} is drained")))
    waiting = drain(view, node, None, "")
    if waiting is not None:
        return waiting
    if volumes := attached(view, node):
        return _volumes_pending(view, node, volumes)
    return _release_node(node)


# --- the deadline -----------------------------------------------------------------------------------------------
def _with_deadline(progress: Progress) -> Progress:
    """The forced end of the drain, recorded and reported once: deletion plus the claim's termination grace period."""
    claim = progress.claim
    grace, since = claim.spec.termination_grace_period, claim.metadata.deletion_timestamp
    if grace is None or since is None or _has_deadline(claim):
        return progress
    deadline = since + durations.parse(grace)
    noted = progress.with_claim(with_annotations(claim, {labels.TERMINATION_TIMESTAMP: rfc3339(deadline)}))
    return noted.also(Plan(events=(_expiring(claim, deadline),)))


def _has_deadline(claim: NodeClaim) -> bool:
    """Whether a deadline is written down. A text that is no time is replaced, or the claim could never be deleted."""
    try:
        return deadline_of(claim) is not None
    except ValueError:
        return False


def _expiring(value: Node | NodeClaim, deadline: datetime) -> Event:
    words = f"all pods will be deleted by {rfc3339(deadline)}"
    return warning(value, "TerminationGracePeriodExpiring", words).standing()


# --- nodes ------------------------------------------------------------------------------------------------------
def _registered_nodes(view: View, claim: NodeClaim) -> tuple[Node, ...]:
    """The nodes that have to be removed first: those that registered, unless another claim shares them."""
    nodes = view.nodes_of(claim)
    if len(view.claims.get(claim.status.provider_id, ())) > 1 or not nodes or _of_others(view, claim):
        return ()
    if claim.is_true("Registered"):
        return nodes
    return tuple(node for node in nodes if labels.TERMINATION_FINALIZER in node.metadata.finalizers)


def _of_others(view: View, claim: NodeClaim) -> bool:
    """Whether the node is another instance's than the one that was launched for the claim."""
    instance = view.snapshot.instances.get(claim.assigned_instance)
    return is_strayed(view, claim) if instance is None else instance.live and is_of_another(view, claim, instance)


def _end_nodes(progress: Progress, nodes: tuple[Node, ...]) -> Progress:
    """Deletion of the nodes, then their stages together, until every node has no finalizer of ours."""
    view, claim = progress.view, progress.claim
    going = tuple(node for node in nodes if node.metadata.deleting)
    reason = Reason("Terminating", f"node claim {claim.name} is being deleted")
    for node in (node for node in nodes if not node.metadata.deleting):
        progress = progress.also(_begin_end(node, reason))
    held = tuple(node for node in going if labels.TERMINATION_FINALIZER in node.metadata.finalizers)
    lost = tuple(node for node in held if _lost(view, node))
    for node in lost:
        progress = progress.also(_release_node(node, Source.INSTANCES))
    held = tuple(node for node in held if node not in lost)
    if held and len(going) == len(nodes):
        return _stages(progress, held)
    return progress.also(Plan(next_due=view.snapshot.now + _NODE_WAIT))


def _begin_end(node: Node, reason: Reason) -> Plan:
    """The Node's deletion. One from which another client removed our finalizer gets it back first, or its pods would
    not be drained."""
    if labels.TERMINATION_FINALIZER in node.metadata.finalizers:
        return act(deletion(node, reason, Source.NODE_CLAIMS))
    held = with_metadata(node, finalizers=(*node.metadata.finalizers, labels.TERMINATION_FINALIZER))
    return act(*changed(node, held, "HoldNode", reason))


def _lost(view: View, node: Node) -> bool:
    """Another client terminated the instance, and the kubelet with it: nothing is left to drain."""
    if node.ready or not node.spec.provider_id or view.instance(node.spec.provider_id) is not None:
        return False
    deleted, claim = node.metadata.deletion_timestamp, view.claim_of(node)
    return view.listed_after(deleted if claim is None else shown_from(claim, deleted, view.now))


def _stages(progress: Progress, nodes: tuple[Node, ...]) -> Progress:
    """Taint, drain, volumes, instance, finalizer: the first that is not finished."""
    claim = progress.claim
    deadline = deadline_of(claim)
    if deadline is not None:
        progress = progress.also(Plan(events=tuple(_expiring(node, deadline) for node in nodes)))
    untainted = [(node, tainted) for node in nodes if (tainted := _tainted(node)) != node]
    if untainted:
        reason = Reason("Terminating", f"node claim {claim.name} is being deleted")
        patches = [changed(node, tainted, "TaintNode", reason) for node, tainted in untainted]
        return progress.also(act(*(patch for some in patches for patch in some)))
    if claim.is_true("InstanceTerminating"):
        return _instance_stage(progress, nodes)
    progress, drained = _drain_stage(progress, nodes, deadline)
    if drained:
        progress, detached = _volume_stage(progress, nodes, deadline)
        if detached:
            return _instance_stage(progress, nodes)
    return progress


def _tainted(node: Node) -> Node:
    """With the disruption taint (a former one with another effect replaced), and out of load balancers."""
    taints = node.spec.taints
    if DISRUPTED not in [replace(taint, time_added=None) for taint in taints]:
        taints = (*(t for t in taints if t.key != DISRUPTED.key), Taint(key=DISRUPTED.key, effect=DISRUPTED.effect))
        node = replace(node, spec=replace(node.spec, taints=taints))
    if labels.EXCLUDE_BALANCERS not in node.metadata.labels:
        node = with_metadata(node, labels={**node.metadata.labels, **_EXCLUDED})
    return node


def _drain_stage(progress: Progress, nodes: tuple[Node, ...], deadline: datetime | None) -> tuple[Progress, bool]:
    view, claim = progress.view, progress.claim
    known = claim.condition("Drained")
    cause = claim.condition("DisruptionReason")
    why = cause.reason if cause is not None and cause.status == TRUE else "Forceful Termination"
    waits = [wait for node in nodes if (wait := drain(view, node, deadline, why)) is not None]
    words = f"drain is forced at {rfc3339(deadline)}" if deadline is not None else ""
    if waits:
        said = failed_evictions(view, nodes) or ("Draining", words)
        return progress.condition("Drained", UNKNOWN, *said).also(joined(waits)), False
    if known is not None and known.status == TRUE:
        return progress, True
    settled = (since(claim, "Drained", view.now) or view.now) + view.snapshot.settings.min_drain_time
    if view.snapshot.now < settled:
        return progress.condition("Drained", UNKNOWN, "Draining", words).also(Plan(next_due=settled)), False
    return progress.condition("Drained", TRUE), True


def _volume_stage(progress: Progress, nodes: tuple[Node, ...], deadline: datetime | None) -> tuple[Progress, bool]:
    view = progress.view
    pending = [(node, names) for node in nodes if (names := attached(view, node))]
    if not pending:
        return progress.condition("VolumesDetached", TRUE), True
    if deadline is not None and view.snapshot.now >= deadline:
        return progress.condition("VolumesDetached", FALSE, "TerminationGracePeriodElapsed"), True
    waits = joined(_volumes_pending(view, node, names, deadline) for node, names in pending)
    return progress.condition("VolumesDetached", UNKNOWN, "AwaitingVolumeDetachment").also(waits), False


def _volumes_pending(view: View, node: Node, names: list[str], deadline: datetime | None = None) -> Plan:
    more = ", …" if len(names) > 5 else ""
    words = f"waiting for {len(names)} volumes to be detached: {', '.join(names[:5])}{more}"
    due = view.snapshot.now + _NODE_WAIT
    event = normal(node, "AwaitingVolumeDetachment", words).standing()
    return Plan(events=(event,), next_due=due if deadline is None else min(due, deadline))


def _instance_stage(progress: Progress, nodes: tuple[Node, ...]) -> Progress:
    progress, gone = terminate(progress)
    if not gone:
        return progress
    return progress.also(joined(_release_node(node, Source.INSTANCES) for node in nodes))


def _release_node(node: Node, *sources: Source) -> Plan:
    reason = Reason("Terminated", f"node {node.name} is empty, and its instance is terminated or not managed by Kerf")
    return act(*changed(node, without_finalizer(node, labels.TERMINATION_FINALIZER), "ReleaseNode", reason, *sources))
