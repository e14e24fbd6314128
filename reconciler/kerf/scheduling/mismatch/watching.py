"""Nodes that joined a short while ago, while pods that they were made for do not run there.

A node is watched from the time it joins until its pods are bound. What keeps pods off it and is no difference from the
plan is its hindrance: it is cordoned, not ready, disrupted or deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kerf.model.claims import marks_of, planned_pods, probed_by, true_since
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Node
from kerf.model.memory import Step, Turn
from kerf.model.snapshot import Snapshot
from kerf.scheduling.answers.nodeclaims import pod_mark
from kerf.scheduling.offerings.learned import differences, foreign_taints
from kerf.scheduling.placing.pod_shapes import PodShapes
from kerf_api import labels
from kerf_api.v1.meta import Taint
from kerf_api.v1.nodeclaim import NodeClaim

#: Time for the kube-scheduler to bind the pods of a node that is initialized.
SETTLES: Final = timedelta(minutes=1)
#: Time for a taint to go that the NodePool does not declare.
TAINT_GOES: Final = timedelta(minutes=4, seconds=50)
#: A node is kept for so long after its verdict: the verdict has to be recorded.
RECORDED: Final = timedelta(seconds=10)
#: A node is no longer watched this long after its initialization, or after its registration if it is not initialized.
WATCHED: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Watched:
    """A node that joined a short while ago, and that lacks pods it was made for or has a taint that removes them.

    `missing` are their marks, `evicted` those of them that a taint may have removed. `shapes` are those of pods of
    which others may come in their place, `probes` those of pods that an earlier node did not help; `foreign` the taints
    that the NodePool does not declare; `hindrance` what keeps pods off that is no difference from the plan; `verdict`
    the instant from which missing pods are evidence.
    """

    claim: NodeClaim
    node: Node
    initialized: bool
    missing: frozenset[str]
    shapes: frozenset[str]
    probes: frozenset[str]
    foreign: tuple[Taint, ...]
    evicted: frozenset[str]
    hindrance: str
    verdict: datetime


def watched(turn: Turn) -> tuple[Mapping[str, Watched], datetime | None]:
    """The watched nodes by the names of their NodeClaims, and the instant at which that may change by itself."""
    asked = turn.all(WATCH, turn.noted)
    return asked.spoken, asked.due


# --- one node ---------------------------------------------------------------------------------------------------
def _watch(snapshot: Snapshot, name: str) -> tuple[Watched | None, datetime | None]:
    claim = snapshot.node_claims[name]
    initialized, node = true_since(claim, "Initialized"), node_of(snapshot, claim)
    begun = initialized or true_since(claim, "Registered") or (node.metadata.creation_timestamp if node else None)
    if not claim.managed or claim.metadata.deleting or begun is None or begun + WATCHED <= snapshot.now:
        return None, None
    planned = planned_pods(claim)
    there = snapshot.pods.on(node.name) if node is not None else ()
    missing = planned - {pod_mark(pod.metadata.uid) for pod in there if not pods.rejected(pod)}
    foreign = foreign_taints(claim, node) if node is not None else ()
    left = missing.union(pod_mark(pod.metadata.uid) for pod in there if pods.terminating(pod)) & planned
    evicted = left if any(taint.effect == "NoExecute" for taint in foreign) else frozenset()
    if node is None or not (missing or evicted):
        return None, begun + WATCHED
    hindered = hindrance(claim, node)
    if initialized is None:
        verdict = begun + WATCHED
    elif hindered:
        verdict = initialized
    else:
        verdict = _verdict(begun, snapshot.node_changed_at.get(node.name), foreign)
    until = min(instant for instant in (verdict, verdict + RECORDED, begun + WATCHED) if instant > snapshot.now)
    found = Watched(
        claim,
        node,
        initialized=initialized is not None,
        missing=missing,
        shapes=_shapes(snapshot, claim, node),
        probes=probed_by(claim),
        foreign=foreign,
        evicted=evicted,
        hindrance=hindered,
        verdict=verdict,
    )
    return found, until


def _shapes(snapshot: Snapshot, claim: NodeClaim, node: Node) -> frozenset[str]:
    """The shapes of the planned pods if the node differs from its plan, else of those that its kubelet rejected."""
    try:
        if differences(claim, node):
            return marks_of(claim, labels.PLANNED_SHAPES)
    except ValueError:  # nothing follows from amounts that are not readable
        return frozenset()
    planned, known = planned_pods(claim), PodShapes(snapshot)
    found = (pod for pod in snapshot.pods.on(node.name) if pods.rejected(pod))
    return frozenset(known.of(pod) for pod in found if pod_mark(pod.metadata.uid) in planned) - {""}


def _verdict(since: datetime, changed: datetime | None, foreign: Sequence[Taint]) -> datetime:
    """For an initialized node; each change gives the kube-scheduler time again, within bounds."""
    if foreign:
        return since + TAINT_GOES
    settled = since + SETTLES if changed is None else max(since, changed) + SETTLES
    return min(settled, since + TAINT_GOES + SETTLES)


def node_of(snapshot: Snapshot, claim: NodeClaim) -> Node | None:
    """The claim's Node; None without one, or while there are several."""
    found = snapshot.nodes_by_provider.get(claim.status.provider_id, ())
    return found[0] if len(found) == 1 else None


def hindrance(claim: NodeClaim, node: Node) -> str:
    """What keeps pods off a Node and is no difference from the plan; empty when nothing does."""
    if node.metadata.deleting:
        return "it is being deleted"
    if labels.COMMAND in claim.metadata.annotations or any(t.key == labels.DISRUPTED_TAINT for t in node.spec.taints):
        return "it is being disrupted"
    if node.spec.unschedulable:
        return "it is cordoned"
    return "it is not ready" if claim.is_true("Initialized") and not node.ready else ""


WATCH: Step[Snapshot, Watched] = Step(
    "watched nodes",
    "node_claims",
    _watch,  # type: ignore[arg-type]
    speaks=lambda found: found is not None,
)
