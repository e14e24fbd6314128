"""When pods last came to a node, ended there or were deleted: what `consolidateAfter` counts from.

The time is read off the pods that the snapshot has, so that a restart and a lagging watch give the same answer. A pod
that ends by itself is marked so in its conditions, none of which changes afterwards. Source: disruption reference §1.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from kerf.lifecycle.nodeclaim.progress import Progress
from kerf.model.instants import is_ahead
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import Plan

#: Events closer together than this are one: a burst of pods costs one write.
_GRAIN = timedelta(seconds=10)


def note_pod_events(progress: Progress) -> Progress:
    """`status.lastPodEventTime` moved to the newest event, when that is 10 s or more after the one known."""
    node, known = progress.node, progress.claim.status.last_pod_event_time
    if node is None or not progress.claim.is_true("Initialized"):
        return progress
    newest = _newest(progress.view.snapshot.pods.on(node.name))
    if newest is None:
        return progress
    seen = min(newest, progress.view.now)
    if known is None or is_ahead(known, progress.view.now) or seen - known >= _GRAIN:
        return progress.with_status(last_pod_event_time=seen)
    return progress.also(Plan(next_due=known + _GRAIN)) if newest - known >= _GRAIN else progress


def _newest(found: Iterable[Pod]) -> datetime | None:
    """The latest event of pods that a node is not simply given, as those of DaemonSets are."""
    times = [time for pod in found if not pods.of_daemon_set(pod) for time in _times(pod)]
    return max((time for time in times if time is not None), default=None)


def _times(pod: Pod) -> Iterator[datetime | None]:
    """When it came, when it ended by itself, and when it was deleted."""
    yield pod.status.start_time or _bound(pod)
    if pods.terminal(pod):
        yield max((c.last_transition_time for c in pod.status.conditions if c.last_transition_time), default=None)
    if pod.metadata.deletion_timestamp is not None:
        yield pod.metadata.deletion_timestamp - timedelta(seconds=pod.metadata.deletion_grace_period_seconds or 0)


def _bound(pod: Pod) -> datetime | None:
    """For a pod that no kubelet has taken up yet."""
    return next((c.last_transition_time for c in pod.status.conditions if c.type == "PodScheduled"), None)
