"""The NodeClaims of a solution. A planned node of which none can be made costs no other node.

If one of its pods is the cause, only this pod is refused. Otherwise its NodePool is left out, and the pods are solved
again: another NodePool may serve them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from kerf.model.boundaries import broken
from kerf.model.plan import CreateNodeClaim, Reason
from kerf.model.snapshot import Snapshot
from kerf.provisioning.boundary import Problems
from kerf.scheduling.answers.nodeclaims import pod_mark, to_claim, uid_of
from kerf.scheduling.placing.pod_shapes import PodShapes
from kerf.scheduling.solve import NewNode, PodRefusal, Solution
from kerf_api import labels
from kerf_api.texts import counted

#: Solves in one pass that leave out one more NodePool each.
_SOLVES: Final = 3
#: So many shapes of pods stand on a NodeClaim.
_MOST_SHAPES: Final = 50


def creatable(
    snapshot: Snapshot, solution: Solution, solved: Callable[[Problems], Solution]
) -> tuple[Solution, tuple[CreateNodeClaim, ...]]:
    """A solution, and the creations of its new nodes in their order. `solved` solves without some NodePools."""
    without: dict[str, PodRefusal] = {}
    for _ in range(_SOLVES):
        tried = _Tried.of(snapshot, solution)
        if not tried.problems:
            break
        without |= tried.problems
        solution = solved(without)
    else:
        tried = _Tried.of(snapshot, solution)
    return tried.served(solution), tried.creations


def creatable_part(snapshot: Snapshot, solution: Solution) -> tuple[Solution, tuple[CreateNodeClaim, ...]]:
    """The part of a solution whose NodeClaims can be made, and the creations of its new nodes in their order."""
    tried = _Tried.of(snapshot, solution)
    return tried.served(solution), tried.creations


def creations_of(snapshot: Snapshot, solution: Solution) -> tuple[CreateNodeClaim, ...]:
    """The creations of the new nodes, as far as they can be made."""
    return _Tried.of(snapshot, solution).creations


@dataclass(frozen=True, slots=True)
class _Tried:
    """The new nodes with their creations; the pods that have none; the NodePools of which no NodeClaim can be made."""

    made: tuple[tuple[NewNode, CreateNodeClaim], ...]
    refused: Problems
    problems: Problems

    @classmethod
    def of(cls, snapshot: Snapshot, solution: Solution) -> _Tried:
        made = list[tuple[NewNode, CreateNodeClaim]]()
        refused, problems = dict[str, PodRefusal](), dict[str, PodRefusal]()
        shapes = PodShapes(snapshot)
        for planned in solution.new_nodes:
            node, creation = planned, _creation(snapshot, planned, shapes)
            if isinstance(creation, PodRefusal):  # one of its pods may be the cause
                failed = _failing(snapshot, planned)
                node = replace(planned, pods=tuple(key for key in planned.pods if key not in failed))
                creation = _creation(snapshot, node, shapes) if failed and node.pods else creation
                refused |= failed
            if not isinstance(creation, PodRefusal):
                made.append((node, creation))
            elif node.pods:
                problems.setdefault(node.pool, creation)
                refused |= dict.fromkeys(node.pods, creation)
        return cls(tuple(made), refused, problems)

    @property
    def creations(self) -> tuple[CreateNodeClaim, ...]:
        """In the order of the new nodes."""
        return tuple(made for _, made in self.made)

    def served(self, solution: Solution) -> Solution:
        """The part of the solution that comes about."""
        if not self.refused:
            return solution
        return replace(
            solution,
            new_nodes=tuple(node for node, _ in self.made),
            unplaced={**solution.unplaced, **self.refused},
            pool_problems={**solution.pool_problems, **self.problems},
            order=tuple(key for key in solution.order if key not in self.refused),
            bound=None,
        )


def _creation(snapshot: Snapshot, node: NewNode, shapes: PodShapes) -> CreateNodeClaim | PodRefusal:
    try:
        known = {shapes.of(snapshot.pods[key]) for key in node.pods if key in snapshot.pods} - {""}
        notes = {labels.PLANNED_SHAPES: ",".join(sorted(known)[:_MOST_SHAPES])} if known else {}
        claim = to_claim(snapshot, node, salt="provisioned", annotations=notes)
        return CreateNodeClaim(reason=Reason("Provisioned", _purpose(snapshot, node)), claim=claim)
    except Exception as error:
        reason = broken(error)
        return PodRefusal(reason.code, f"making a NodeClaim of NodePool {node.pool} failed: {reason.text}")


def _failing(snapshot: Snapshot, node: NewNode) -> dict[str, PodRefusal]:
    """The pods of a node that no NodeClaim can name."""
    failed: dict[str, PodRefusal] = {}
    for key in node.pods:
        try:
            pod_mark(uid_of(snapshot, key))
        except Exception as error:
            reason = broken(error)
            failed[key] = PodRefusal(reason.code, f"naming it in a NodeClaim failed: {reason.text}")
    return failed


def _purpose(snapshot: Snapshot, node: NewNode) -> str:
    real = sum(key in snapshot.pods for key in node.pods)
    rest = len(node.pods) - real
    text = f"for {counted(real, 'pod')} without a node" if real or not rest else "for expected pods"
    return f"{text} and reserves capacity for {counted(rest, 'pod')} of CapacityBuffers" if rest else text
