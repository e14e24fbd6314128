"""Replacements that came up other than planned: the pods that are to move there could not run.

A replacement is looked at when it is initialized, before the node that it replaces is drained. Its allocatable, its
attachable volumes and the DaemonSet pods there leave too little for the pods that it was planned for; or, once that has
had time to go, a taint that the NodePool does not declare, a missing label or a cordon keeps them off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kerf.model.claims import planned_pods, true_since
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.memory import Step
from kerf.model.snapshot import Snapshot
from kerf.pods.requirements import accepted_by_node, asked_labels, selector_requirements
from kerf.pods.volumes import attachments
from kerf.scheduling.answers.nodeclaims import pod_mark
from kerf.scheduling.mismatch.watching import TAINT_GOES, WATCHED, hindrance, node_of
from kerf.scheduling.offerings import learned
from kerf_api import labels
from kerf_api.resources import Resources, total
from kerf_api.v1.nodeclaim import NodeClaim

_LOOK_AGAIN: Final = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Misfit:
    """A replacement that cannot run the pods of the nodes that it replaces, with the `causes`. `verdict` is the instant
    from which that is certain; None: it is."""

    claim: NodeClaim
    node: Node
    causes: tuple[str, ...]
    verdict: datetime | None

    @property
    def text(self) -> str:
        return f"node {self.node.name} is other than planned: {'; '.join(self.causes)}"


def _misfit(snapshot: Snapshot, name: str) -> tuple[Misfit | None, datetime | None]:
    claim = snapshot.node_claims[name]
    replaced = claim.metadata.annotations.get(labels.REPLACES, "")
    initialized = true_since(claim, "Initialized")
    if not replaced or initialized is None or not claim.managed or claim.metadata.deleting:
        return None, None
    node, ends = node_of(snapshot, claim), initialized + WATCHED
    if node is None or node.metadata.deleting or ends <= snapshot.now:
        return None, ends if ends > snapshot.now else None
    coming = tuple(_coming(snapshot, claim, replaced.split(",")))
    lasting = tuple(_lasting(snapshot, claim, node, coming)) if coming else ()
    passing = tuple(_passing(claim, node, coming)) if coming else ()
    if not lasting and not passing:
        return None, ends
    changed = snapshot.node_changed_at.get(node.name, initialized)
    verdict = max(initialized, changed) + TAINT_GOES
    if not lasting and not node.ready:  # its kubelet may be back at any time, and the command ends without that
        verdict = max(verdict, snapshot.now + _LOOK_AGAIN)
    if lasting or verdict <= snapshot.now:
        return Misfit(claim, node, lasting + passing, None), ends
    return Misfit(claim, node, passing, verdict), verdict


def _coming(snapshot: Snapshot, claim: NodeClaim, names: Sequence[str]) -> Iterator[Pod]:
    """The pods of the replaced nodes that the plan moves to this one."""
    planned = planned_pods(claim)
    for name in names:
        replaced = snapshot.node_claims.get(name)
        for node in snapshot.nodes_by_provider.get(replaced.status.provider_id, ()) if replaced is not None else ():
            yield from (
                pod
                for pod in snapshot.pods.on(node.name)
                if pods.reschedulable(pod) and pod_mark(pod.metadata.uid) in planned
            )


# --- what stays as it is ----------------------------------------------------------------------------------------
def _lasting(snapshot: Snapshot, claim: NodeClaim, node: Node, coming: Sequence[Pod]) -> Iterator[str]:
    yield from _too_small(snapshot, claim, node, coming)
    csi = snapshot.csi_nodes.get(node.name)
    for driver, most in sorted(csi.attachable.items()) if csi is not None else ():
        wanted = len({key for pod in coming for name, key in attachments(snapshot, pod) if name == driver})
        if wanted > most:
            yield f"it attaches {most} volumes of {driver}, and {wanted} are to move there"


def _too_small(snapshot: Snapshot, claim: NodeClaim, node: Node, coming: Sequence[Pod]) -> Iterator[str]:
    """Nothing follows from amounts that are not readable."""
    daemons = [
        pod
        for pod in snapshot.pods.on(node.name)
        if pods.active(pod) and (pods.of_daemon_set(pod) or pods.of_node(pod))
    ]
    try:
        has = Resources.parse(node.status.allocatable)
        needed = total(pods.requests(pod) for pod in (*coming, *daemons))
        whole = len(coming) == len(planned_pods(claim)) and bool(learned.lacking(claim, node))
        if not needed.fits(has) or (whole and not claim.requests().fits(has)):
            yield from (str(one) for one in learned.differences(claim, node) if one.field.startswith("allocatable "))
            yield from _shortages(needed, has)
    except ValueError:
        return


def _shortages(needed: Resources, has: Resources) -> Iterator[str]:
    for name in sorted(needed.keys()):
        if needed[name] > has[name]:
            wanted, there = (Resources({name: amounts[name]}).texts()[name] for amounts in (needed, has))
            yield f"its DaemonSets and the pods that are to move there need {name} {wanted} of {there}"


# --- what may go by itself --------------------------------------------------------------------------------------
def _passing(claim: NodeClaim, node: Node, coming: Sequence[Pod]) -> Iterator[str]:
    if text := hindrance(claim, node):
        yield text
    for taint in learned.foreign_taints(claim, node):
        if not all(pods.tolerates(pod, taint) for pod in coming):
            yield str(learned.undeclared(taint))
    own = selector_requirements(node.metadata.labels)
    astray = [pod for pod in coming if not accepted_by_node(pod, own)]
    asked = {key for pod in astray for key in asked_labels(pod)}
    absent = [key for key in learned.missing_labels(claim, node) if key in asked]
    yield from (str(learned.missing(claim, key)) for key in absent)
    if astray and not absent:
        yield f"its labels do not match what {pods.named(astray[0])} requires"


#: Of a NodeClaim that replaces others.
MISFITS: Final[Step[Snapshot, Misfit | None]] = Step(
    "replacements other than planned", "node_claims", _misfit, speaks=lambda found: found is not None
)
