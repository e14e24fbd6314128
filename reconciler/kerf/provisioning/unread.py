"""Nodes that a bug of ours keeps from being read: for five minutes no node is bought for pods that they may hold.

The nodes are refused in each pass, with the error. After five minutes a new node is made for such a pod. The same
holds when the pod alone has waited so long: a restart begins the time of a node again, but not the time of a pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import INTERNAL_ERROR, Reason, Refusal
from kerf.model.snapshot import Snapshot, StateNode
from kerf.pods.requirements import accepted_by_node, tolerates_all
from kerf.provisioning.boundary import Problems
from kerf.scheduling.solve import PodRefusal, Solution
from kerf_api import labels
from kerf_api.requirements import Requirements
from kerf_api.resources import Resources

PATIENCE: Final = timedelta(minutes=5)


def unread_since(snapshot: Snapshot, solution: Solution) -> dict[str, datetime]:
    """The start of the time in which each of the unread nodes could not be read, by key."""
    return {key: snapshot.unread_since.get(key, snapshot.now) for key in sorted(solution.unread)}


def unread_refusals(snapshot: Snapshot, solution: Solution) -> Iterator[Refusal]:
    for key, reason in sorted(solution.unread.items()):
        yield Refusal(f"node/{_name(snapshot, key)}", Reason(INTERNAL_ERROR, f"reading it failed: {reason.text}"))


def kept_waiting(snapshot: Snapshot, solution: Solution, asked: Mapping[str, Pod]) -> Problems:
    """The pods of planned nodes that unread nodes may hold for now, all together, with the reason to wait.

    `asked` are the pods of the solution by key.
    """
    now = snapshot.now
    ends = {key: since + PATIENCE for key, since in unread_since(snapshot, solution).items() if now < since + PATIENCE}
    left = {key: _allocatable(snapshot.state_nodes[key]) for key in ends}
    waiting: dict[str, PodRefusal] = {}
    for pod in (asked[key] for node in solution.new_nodes if ends for key in node.pods):
        own, requests = _waits_since(snapshot, pod) + PATIENCE, pods.requests(pod)
        may_hold = (key for key in ends if own > now and _may_hold(snapshot.state_nodes[key], left[key], pod, requests))
        found = next(may_hold, None)
        if found is None:
            continue
        free = left[found]
        left[found] = None if free is None else free - requests
        end = f"a node is made for it at {min(own, ends[found]):%H:%M:%S} UTC at the latest"
        text = f"node {_name(snapshot, found)} may have it and cannot be read; {end}"
        waiting[pod.key] = PodRefusal(INTERNAL_ERROR, text)
    return waiting


def _name(snapshot: Snapshot, key: str) -> str:
    return snapshot.state_nodes[key].name or key


def _waits_since(snapshot: Snapshot, pod: Pod) -> datetime:
    """The time since which a pending pod has been unschedulable; now for any other pod."""
    known = [c.last_transition_time for c in pod.status.conditions if c.type == "PodScheduled"]
    since = next(iter(known), None) or pod.metadata.creation_timestamp
    return since if since is not None and pod.key in snapshot.pods.pending else snapshot.now


def _allocatable(state: StateNode) -> Resources | None:
    """None when it is not known."""
    try:
        return state.allocatable or None
    except Exception:
        return None


def _may_hold(state: StateNode, left: Resources | None, pod: Pod, requests: Resources) -> bool:
    """Whether nothing of the node that can be read speaks against the pod."""
    if left is not None and any(amount > left[name] for name, amount in requests.items()):
        return False
    try:
        hard = [taint for taint in state.taints if taint.effect != "PreferNoSchedule"]
        if not tolerates_all(pod.spec.tolerations, hard):
            return False
        return accepted_by_node(pod, Requirements.of_labels({**state.labels, labels.NAME_FIELD: state.name}))
    except Exception:
        return True
