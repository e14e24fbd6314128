"""The rules by which the invariants judge, written out once more: what a budget allows, and which pods a node has to
be rid of.

None of it is the controller's own arithmetic: a mistake there would blind both. Sources: disruption reference §1.3
and §2.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from api import labels
from api.v1.nodepool import Budget
from reconciler.model.cloud import InstanceTypeInfo
from reconciler.model.objects import Pod

#: A pod that is still there so long after it should have ended holds up nobody.
_STUCK = timedelta(minutes=1)
#: So much of a type's memory the node has at least, in per cent: what the estimate leaves, rounded down.
_MEMORY_SHOWN = 91


# --- budgets and limits -------------------------------------------------------------------------------------------
def allowed(budgets: Iterable[Budget], nodes: int, reason: str) -> int:
    """How many of so many nodes may be away for a reason: the strictest budget counts. No budget here has hours."""
    numbers = [nodes]
    for budget in budgets:
        assert budget.schedule is None
        if budget.reasons is None or reason in budget.reasons:
            numbers.append(_number(budget.nodes, nodes))
    return min(numbers)


def _number(text: str, nodes: int) -> int:
    """A number, or a share that is rounded up."""
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
