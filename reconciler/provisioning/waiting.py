"""Pods that wait for others to terminate: no node is bought because of a pod that is gone before the node is there.

The kube-scheduler counts a pod that terminates until it is gone. So a pass is solved with such pods, and again without
those that are gone in time. A pod that has a place only without them waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from reconciler.model import pods
from reconciler.model.objects import Pod
from reconciler.model.snapshot import Snapshot
from reconciler.scheduling.solution import PodRefusal, Solution
from reconciler.scheduling.world import Ground

#: A node takes about so long from its NodeClaim to its first pod: EC2 starts the instance, the kubelet gets ready.
LAUNCH: Final = timedelta(minutes=1)
#: The code of the refusal.
TERMINATING: Final = "WaitsForTerminatingPods"
_SHOWN = 3


def ending(pod: Pod, now: datetime) -> bool:
    """Whether a pod that terminates is gone before a new node is there; one that is stuck may stay for ever."""
    end = pod.metadata.deletion_timestamp
    return end is not None and end - LAUNCH <= now and not pods.stuck_terminating(pod, now)


def in_the_way(snapshot: Snapshot, asked: Sequence[Pod], ground: Ground) -> tuple[Pod, ...]:
    """Pods that are gone soon and count for some of those that are asked about: on a node that takes pods, or anywhere
    when it is about affinity."""
    soon = [pod for pod in ground.terminating if ending(pod, snapshot.now)]
    if not soon:
        return ()
    moving, related = {pod.key for pod in asked}, any(map(_related, asked))
    return tuple(
        pod
        for pod in soon
        if pod.key not in moving and (related or _related(pod) or pod.spec.node_name in ground.places.at_node)
    )


def patiently(
    snapshot: Snapshot, asked: Sequence[Pod], ground: Ground, solved: Callable[[Sequence[Pod], bool], Solution]
) -> Solution:
    """The solution, in which pods wait for those that are gone soon.

    `solved` gives the solution without some pods; the flag asks for work on a cheaper answer.
    """
    gone = in_the_way(snapshot, asked, ground)
    now = solved((), not gone)
    if not gone or not (now.new_nodes or now.unplaced):
        return now
    then = solved(gone, True)
    if now.placed.keys() - then.placed.keys():
        return solved((), True)
    virtual = {pod.key for pod in asked if pods.virtual(pod)}
    waiting = {key: node for key, node in then.placed.items() if key not in now.placed and key not in virtual}
    refused = {key: _refusal(snapshot, gone, node) for key, node in waiting.items()}
    return replace(
        then,
        placed={key: now.placed.get(key, node) for key, node in then.placed.items() if key not in waiting},
        unplaced={**then.unplaced, **refused},
        order=tuple(key for key in then.order if key not in waiting),
    )


def _related(pod: Pod) -> bool:
    """Whether it has required affinity or anti-affinity to other pods."""
    return any(_terms(pod))


def _terms(pod: Pod) -> Iterator[bool]:
    affinity = pod.spec.affinity
    for one in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ():
        yield one is not None and bool(one.required)


def _refusal(snapshot: Snapshot, gone: Sequence[Pod], target: str) -> PodRefusal:
    state = snapshot.state_nodes[target]
    here = [pod for pod in gone if pod.spec.node_name == state.name] or list(gone)
    names = ", ".join(pod.key for pod in here[:_SHOWN]) + (f" and {len(here) - _SHOWN} more" if here[_SHOWN:] else "")
    end = max(pod.metadata.deletion_timestamp for pod in here if pod.metadata.deletion_timestamp is not None)
    text = f"waits for a place on node {state.name}: pods that terminate there are gone by {end:%H:%M:%S} UTC, before a"
    return PodRefusal(TERMINATING, f"{text} new node is ready ({names})")
