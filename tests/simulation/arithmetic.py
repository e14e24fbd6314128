"""The rules by which the invariants judge, written out once more: what a budget allows, which pods a node has to be rid
of, and what sickness ends it at once.

None of it is the controller's own arithmetic: a mistake there would blind both. Sources: disruption reference §1.3,
§2.2 and §5.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

from kerf.model.aws.cloud import InstanceTypeInfo
from kerf.model.kubernetes.objects import Node, Pod
from kerf_api import labels
from kerf_api.v1.nodepool import Budget
from tests.simulation.hours import holds

#: A pod that is still there so long after it should have ended holds up nobody.
_STUCK = timedelta(minutes=1)
#: So much of a type's memory the node has at least, in per cent: what the estimate leaves, rounded down.
_MEMORY_SHOWN = 91


# --- budgets and limits -------------------------------------------------------------------------------------------
def allowed(budgets: Iterable[Budget], nodes: int, reason: str, now: datetime) -> int:
    """How many of so many nodes may be away for a reason: the strictest budget counts, and one that cannot be read
    lets nobody go."""
    numbers = [nodes]
    for budget in budgets:
        try:
            number = _number(budget.nodes, nodes)
            held = budget.schedule is None or holds(budget.schedule, budget.duration or "", now)
        except ValueError:
            return 0
        if held and (budget.reasons is None or reason in budget.reasons):
            numbers.append(number)
    return min(numbers)


def _number(text: str, nodes: int) -> int:
    """A number, or a share that is rounded up."""
    if not re.fullmatch(r"\d+%?", text, re.ASCII):
        raise ValueError(f"{text!r} is neither a number nor a share")
    if not text.endswith("%"):
        return int(text)
    hundredths = int(text[:-1]) * nodes
    return hundredths // 100 + (hundredths % 100 > 0)


def size(info: InstanceTypeInfo) -> dict[str, int]:
    """What a node of the type takes of its pool's limits, in their units: milli-cores, bytes, nodes."""
    return {"cpu": info.vcpus * 1000, "memory": info.memory_mib * 2**20 * _MEMORY_SHOWN // 100, "nodes": 1}


# --- pods ---------------------------------------------------------------------------------------------------------
def ended(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def at_work(pod: Pod) -> bool:
    return not ended(pod) and pod.metadata.deletion_timestamp is None


def wants_a_place(pod: Pod) -> bool:
    """Whether the pod, or the one that will take its place, has to run elsewhere when its node goes."""
    owners = _owners(pod)
    if owners & {"apps/v1 DaemonSet", "v1 Node"}:
        return False
    return at_work(pod) or (pod.metadata.deletion_timestamp is not None and "apps/v1 StatefulSet" in owners)


def holds_up_a_drain(pod: Pod, now: datetime) -> bool:
    """Whether the pod has to leave before its node's instance may end."""
    since = pod.metadata.deletion_timestamp
    stuck = since is not None and now > since + _STUCK
    return not ended(pod) and not stuck and "v1 Node" not in _owners(pod) and not _stays(pod)


def _owners(pod: Pod) -> set[str]:
    return {f"{owner.api_version} {owner.kind}" for owner in pod.metadata.owner_references}


def _stays(pod: Pod) -> bool:
    """Whether the pod bears the taint of a node that is being drained."""
    return any(
        one.effect in ("", "NoSchedule")
        and one.key in (("", labels.DISRUPTED_TAINT) if one.operator == "Exists" else (labels.DISRUPTED_TAINT,))
        and (one.operator == "Exists" or not one.value)
        for one in pod.spec.tolerations
    )


# --- nodes --------------------------------------------------------------------------------------------------------
#: For so many minutes a node may be so.
_BORNE = {
    ("Ready", "False"): 30,
    ("Ready", "Unknown"): 30,
    ("AcceleratedHardwareReady", "False"): 10,
    ("StorageReady", "False"): 30,
    ("NetworkingReady", "False"): 30,
    ("KernelReady", "False"): 30,
    ("ContainerRuntimeReady", "False"): 30,
}


def beyond_bearing(node: Node, now: datetime) -> bool:
    """Whether the node has been sick for so long that it may be ended without its pods being asked."""
    return any(
        now >= row.last_transition_time + timedelta(minutes=_BORNE[row.type, row.status])
        for row in node.status.conditions
        if (row.type, row.status) in _BORNE and row.last_transition_time is not None
    )
