"""Replacements that came up other than planned: the pods that are to move there could not run.

A replacement is looked at when it is initialized, before the node that it replaces is drained. It has too little of a
resource for the pods that it was planned for; or, once a taint has had time to go, a taint that the NodePool does not
declare keeps them off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.memory import Step
from kerf.model.snapshot import Snapshot
from kerf.scheduling.mismatch.evidence import TAINT_GOES, WATCHED, true_since, usable_node
from kerf.scheduling.offerings.learned import differences, foreign_taints, lacking
from kerf_api import labels
from kerf_api.resources import Resources
from kerf_api.v1.nodeclaim import NodeClaim


@dataclass(frozen=True, slots=True)
class Misfit:
    """A replacement that cannot run the pods of the nodes that it replaces. `verdict` is the instant from which that is
    certain; None: it is."""

    claim: NodeClaim
    node: Node
    verdict: datetime | None

    @property
    def text(self) -> str:
        found = [str(one) for one in differences(self.claim, self.node) if not one.field.startswith("label ")]
        return f"node {self.node.name} is other than planned: {'; '.join(found)}"


def _misfit(snapshot: Snapshot, name: str) -> tuple[Misfit | None, datetime | None]:
    claim = snapshot.node_claims[name]
    replaced = claim.metadata.annotations.get(labels.REPLACES, "")
    initialized = true_since(claim, "Initialized")
    if not replaced or initialized is None or not claim.managed or claim.metadata.deleting:
        return None, None
    node, ends = usable_node(snapshot, claim), initialized + WATCHED
    if node is None or ends <= snapshot.now:
        return None, ends if ends > snapshot.now else None
    if _is_short(claim, node):
        return Misfit(claim, node, None), ends
    moved = tuple(_moved(snapshot, replaced.split(",")))
    foreign = foreign_taints(claim, node)
    if all(pods.tolerates(pod, taint) for taint in foreign for pod in moved):
        return None, ends
    verdict = initialized + TAINT_GOES
    return (Misfit(claim, node, verdict), verdict) if verdict > snapshot.now else (Misfit(claim, node, None), ends)


def _is_short(claim: NodeClaim, node: Node) -> bool:
    """Whether the node has too little for all that it was planned for, DaemonSets included."""
    try:
        return bool(lacking(claim, node)) and not claim.requests().fits(Resources.parse(node.status.allocatable))
    except ValueError:  # nothing follows from amounts that are not readable
        return False


def _moved(snapshot: Snapshot, names: list[str]) -> Iterator[Pod]:
    for name in names:
        replaced = snapshot.node_claims.get(name)
        for node in snapshot.nodes_by_provider.get(replaced.status.provider_id, ()) if replaced is not None else ():
            yield from (pod for pod in snapshot.pods.on(node.name) if pods.reschedulable(pod))


#: Of a NodeClaim that replaces others.
MISFITS: Final[Step[Snapshot, Misfit | None]] = Step(
    "replacements other than planned", "node_claims", _misfit, speaks=lambda found: found is not None
)
