"""When pods last came to a node or left it: what `consolidateAfter` counts from.

The time is read off the pods that the snapshot has, so that a restart and a lagging watch give the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    newest = _newest(progress.view.snapshot.pods.on(node.name), progress.view.now)
    if newest is None or (known is not None and newest - known < _GRAIN):
        return progress
    return progress.with_status(last_pod_event_time=newest)


def _newest(found: Iterable[Pod], now: datetime) -> datetime | None:
    """The latest arrival or departure. A departure is known by its end, which may be ahead: it counts from now."""
    newest: datetime | None = None
    for pod in found:
        time = pod.metadata.deletion_timestamp or pod.status.start_time or _bound(pod)
        if time is not None and (newest is None or time > newest):
            newest = time
    return newest if newest is None or newest < now else now


def _bound(pod: Pod) -> datetime | None:
    """For a pod that no kubelet has taken up yet."""
    return next((c.last_transition_time for c in pod.status.conditions if c.type == "PodScheduled"), None)
