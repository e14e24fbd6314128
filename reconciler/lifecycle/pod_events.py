"""When pods last came to a node or left it: what `consolidateAfter` counts from.

The time is read off the pods that the snapshot has, so that a restart and a lagging watch give the same answer.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.lifecycle.progress import Progress
from reconciler.model.objects import Pod

#: Events closer together than this are one: a burst of pods costs one write.
_GRAIN = timedelta(seconds=10)


def note_pod_events(progress: Progress) -> Progress:
    """`status.lastPodEventTime` moved to the newest event, when that is 10 s or more after the one known."""
    node, known = progress.node, progress.claim.status.last_pod_event_time
    if node is None or not progress.claim.is_true("Initialized"):
        return progress
    now = progress.view.now
    times = (_event(pod, now) for pod in progress.view.snapshot.pods.on(node.name))
    newest = max((time for time in times if time is not None), default=None)
    if newest is None or (known is not None and newest - known < _GRAIN):
        return progress
    return progress.with_status(last_pod_event_time=newest)


def _event(pod: Pod, now: datetime) -> datetime | None:
    """When the pod was bound, or began to go, whichever is later. A deletion is known by its end, maybe ahead."""
    bound = pod.status.start_time
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.last_transition_time is not None:
            bound = condition.last_transition_time
    leaving = pod.metadata.deletion_timestamp
    times = [min(time, now) for time in (bound, leaving) if time is not None]
    return max(times, default=None)
