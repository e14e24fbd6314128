"""What a pass means for CapacityBuffers: their conditions, where their pods would be, and what real pods hear of it.

A buffer's status is worked out in every plan and written where it differs; whether there is room for its pods is known
only after a pass. Virtual pods are never nominated and have no events; what keeps them out is a refusal about their
buffer. Source: scheduling reference §1.10, API reference §10.6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from kerf.model import kinds
from kerf.model.boundaries import MALFORMED, Boundary
from kerf.model.kubernetes.objects import Pod
from kerf.model.memory import Turn
from kerf.model.plan import NOTHING, CreateNodeClaim, PatchObject, Plan, Reason, Refusal, joined
from kerf.model.snapshot import Snapshot
from kerf.pods.buffer_pods import PROVISIONING, Resolution, resolutions
from kerf.scheduling.solve import PodRefusal, Solution
from kerf_api.texts import counted
from kerf_api.v1 import conditions
from kerf_api.v1.capacitybuffer import CapacityBuffer, CapacityBufferStatus
from kerf_api.v1.conditions import FALSE, TRUE
from kerf_api.v1.meta import Condition, encode

T = TypeVar("T")

READY_FOR_PROVISIONING = "ReadyForProvisioning"
#: A condition's status, reason and message.
Verdict = tuple[str, str, str]
_YIELDED = PodRefusal("YieldedToPods", "pending pods need all the capacity that NodePools may still add")


def reports(turn: Turn, solution: Solution | None = None) -> Plan:
    """The buffers' statuses, as far as they differ; what a pass found out is in its `solution`."""
    snapshot, boundary = turn.snapshot, Boundary()
    plans = [
        boundary.run(f"capacitybuffer/{key}", partial(_report, snapshot, key, resolution, solution), NOTHING)
        for key, resolution in resolutions(turn).items()
    ]
    return joined((*plans, Plan(refusals=(*boundary.refusals, *_unreadable(snapshot)))))


def _report(snapshot: Snapshot, key: str, resolution: Resolution, solution: Solution | None) -> Plan:
    buffer, problem = snapshot.capacity_buffers[key], _problem(resolution, solution)
    return Plan(
        actions=tuple(_written(buffer, _status(snapshot, buffer, resolution, solution))),
        refusals=(Refusal(f"capacitybuffer/{key}", problem),) if problem is not None else (),
    )


def buffered(turn: Turn, solution: Solution, creations: Iterable[CreateNodeClaim]) -> Plan:
    """After a pass: the statuses, and for how many virtual pods there is room on each node that exists or is created.

    `creations` are those of the new nodes, in their order: such a node may be up before the next pass.
    """
    homes = dict(solution.placed)
    for node, creation in zip(solution.new_nodes, creations, strict=True):
        homes |= dict.fromkeys(node.pods, creation.claim.name)
    kept = Counter(target for key, target in sorted(homes.items()) if key not in turn.snapshot.pods)
    return replace(reports(turn, solution), buffer_pods=dict(kept))


def real_part(snapshot: Snapshot, solution: Solution) -> Solution:
    """The solution with real pods only; the new nodes are the same, though some may have no real pod."""

    def real(table: Mapping[str, T]) -> dict[str, T]:
        return {key: value for key, value in table.items() if key in snapshot.pods}

    return replace(
        solution,
        placed=real(solution.placed),
        unplaced=real(solution.unplaced),
        new_nodes=tuple(
            replace(node, pods=tuple(key for key in node.pods if key in snapshot.pods)) for node in solution.new_nodes
        ),
        order=tuple(key for key in solution.order if key in snapshot.pods),
    )


def without_room(solution: Solution, virtual: Iterable[Pod]) -> Solution:
    """The solution for real pods, in which no virtual one has a place."""
    return replace(solution, unplaced={**solution.unplaced, **{pod.key: _YIELDED for pod in virtual}})


# --- the status ---------------------------------------------------------------------------------------------------
def _status(
    snapshot: Snapshot, buffer: CapacityBuffer, resolution: Resolution, solution: Solution | None
) -> CapacityBufferStatus:
    known = buffer.status.conditions
    ready: Verdict = (TRUE if resolution.ready else FALSE, resolution.reason, resolution.message)
    known = _put(snapshot, buffer, known, READY_FOR_PROVISIONING, ready)
    verdict = _room(snapshot, resolution, solution)
    if verdict is not None:
        known = _put(snapshot, buffer, known, PROVISIONING, verdict)
    return CapacityBufferStatus(
        pod_template_ref=buffer.spec.pod_template_ref if resolution.ready else None,
        pod_template_generation=resolution.template_generation,
        replicas=len(resolution.pods),
        provisioning_strategy=buffer.spec.provisioning_strategy,
        conditions=known,
    )


def _put(
    snapshot: Snapshot, buffer: CapacityBuffer, known: tuple[Condition, ...], type_: str, verdict: Verdict
) -> tuple[Condition, ...]:
    status, reason, message = verdict
    generation, now = buffer.metadata.generation, snapshot.now.replace(microsecond=0)
    return conditions.put(known, type_, status, reason, generation=generation, now=now, message=message)


def _room(snapshot: Snapshot, resolution: Resolution, solution: Solution | None) -> Verdict | None:
    """Whether all pods of the buffer would fit on nodes that are up; None while no pass has said so."""
    if not resolution.ready:
        return FALSE, "NotReadyForProvisioning", ""
    if not resolution.pods:
        return FALSE, "BufferEmpty", ""
    if solution is None:
        return None
    states = snapshot.state_nodes
    targets = (solution.placed.get(pod.key) for pod in resolution.pods)
    up = sum(target is not None and states[target].initialized for target in targets)
    if up == len(resolution.pods):
        return TRUE, "FitsExistingCapacity", ""
    return (
        FALSE,
        "RequiresNewCapacity",
        f"no capacity yet for {len(resolution.pods) - up:,} of {counted(len(resolution.pods), 'pod')}",
    )


def _written(buffer: CapacityBuffer, after: CapacityBufferStatus) -> list[PatchObject]:
    before = buffer.status
    if before == after:
        return []
    gone = dict.fromkeys(encode(before).keys() - encode(after).keys())
    full = {"replicas": after.replicas, "conditions": conditions.in_full(after.conditions)}
    ready = conditions.get(after.conditions, READY_FOR_PROVISIONING)
    room = conditions.get(after.conditions, PROVISIONING)
    said = ", ".join(f"{c.type} {c.status} ({c.reason})" for c in (ready, room) if c is not None)
    return [
        PatchObject(
            reason=Reason("CapacityBuffer", f"{counted(after.replicas or 0, 'pod')}: {said}"),
            verb="SetStatus",
            ref=kinds.ref(buffer),
            patch={"status": {**gone, **encode(after), **full}},
            subresource="status",
            resource_version=buffer.metadata.resource_version,
        )
    ]


# --- refusals -----------------------------------------------------------------------------------------------------
def _problem(resolution: Resolution, solution: Solution | None) -> Reason | None:
    """Why a buffer has no pods, or the first of them no place."""
    if not resolution.ready:
        return Reason(resolution.reason, resolution.message)
    lost = [] if solution is None else [p.key for p in resolution.pods if p.key in solution.unplaced]
    if solution is None or not lost:
        return None
    why = solution.unplaced[lost[0]]
    return Reason(why.code, f"no capacity for {len(lost)} of {counted(len(resolution.pods), 'pod')}: {why}")


def _unreadable(snapshot: Snapshot) -> Iterable[Refusal]:
    if not snapshot.settings.gates.capacity_buffer:
        return
    for key, buffer in sorted(snapshot.capacity_buffers.items()):
        if buffer.metadata.unreadable:
            yield Refusal(f"capacitybuffer/{key}", Reason(MALFORMED, buffer.metadata.unreadable))
