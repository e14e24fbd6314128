"""Pods that wait for others to terminate: no node is bought because of a pod that is gone before the node is there.

The kube-scheduler counts a pod that terminates until it is gone. So a pass is solved with such pods, and again without
those that are gone in time. A pod that has a place only without them waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, Protocol

from kerf.model.changes.indexes import bound_to
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import Nomination
from kerf.model.snapshot import Snapshot
from kerf.scheduling.answers.solution import PodRefusal, Solution
from kerf.scheduling.context import SolveContext, context_of
from kerf_api.texts import shortened

#: A node takes about so long from its NodeClaim to its first pod: EC2 starts the instance, the kubelet gets ready.
LAUNCH: Final = timedelta(minutes=1)
#: The code of the refusal.
TERMINATING: Final = "WaitsForTerminatingPods"
_SHOWN = 3


def ending(pod: Pod, now: datetime) -> bool:
    """Whether a pod that terminates is gone before a new node is there; one that is stuck may stay for ever."""
    end = pod.metadata.deletion_timestamp
    return end is not None and end - LAUNCH <= now and not pods.stuck_terminating(pod, now)


def in_the_way(snapshot: Snapshot, asked: Sequence[Pod], context: SolveContext) -> tuple[Pod, ...]:
    """Pods that are gone soon and count for some of those that are asked about: on a node that takes pods, or anywhere
    when it is about affinity."""
    soon = [pod for pod in context.terminating if ending(pod, snapshot.now)]
    if not soon:
        return ()
    moving, related = {pod.key for pod in asked}, any(map(_related, asked))
    return tuple(
        pod
        for pod in soon
        if pod.key not in moving and (related or _related(pod) or pod.spec.node_name in context.places.at_node)
    )


class Solved(Protocol):
    """Gives the solution for some pods, without those that are `gone`; `improved`: with work on a cheaper answer."""

    def __call__(
        self, snapshot: Snapshot, asked: Sequence[Pod], context: SolveContext, gone: Sequence[Pod], /, *, improved: bool
    ) -> Solution: ...


def patiently(snapshot: Snapshot, asked: Sequence[Pod], context: SolveContext, solved: Solved) -> Solution:
    """The solution, in which pods wait for those that are gone soon."""
    gone = in_the_way(snapshot, asked, context)
    now = solved(snapshot, asked, context, (), improved=not gone)
    if not gone or not (now.new_nodes or now.unplaced):
        return now
    then = solved(snapshot, asked, context, gone, improved=True)
    if now.placed.items() - then.placed.items():
        then = solved(_promised(snapshot, asked, now), asked, context, gone, improved=True)
    if not now.placed.items() - then.placed.items():
        return _waiting(snapshot, asked, gone, now, then)
    if not now.new_nodes or not snapshot.settings.ignore_dra_requests:
        return solved(snapshot, asked, context, (), improved=True)
    return _after_binding(snapshot, asked, context, gone, now, solved)


def _promised(snapshot: Snapshot, asked: Iterable[Pod], now: Solution) -> Snapshot:
    """The snapshot in which the pods of a solution are expected at their places, in its order."""
    uids = {pod.key: pod.metadata.uid for pod in asked}
    own = [Nomination(uids[key], now.placed[key], snapshot.now) for key in now.order if key in now.placed]
    others = {uids[key] for key in now.placed}
    return replace(snapshot, nominations=(*own, *(one for one in snapshot.nominations if one.pod_uid not in others)))


def _waiting(snapshot: Snapshot, asked: Iterable[Pod], gone: Sequence[Pod], now: Solution, then: Solution) -> Solution:
    """The solution `then`, when pods are gone: pods that have their place only then wait for it; others keep theirs."""
    virtual = {pod.key for pod in asked if pods.virtual(pod)}
    waiting = {key: node for key, node in then.placed.items() if now.placed.get(key) != node and key not in virtual}
    refused = {key: _refusal(snapshot, gone, node) for key, node in waiting.items()}
    return replace(
        then,
        placed={key: node for key, node in then.placed.items() if key not in waiting},
        unplaced={**then.unplaced, **refused},
        order=tuple(key for key in then.order if key not in waiting),
    )


def _after_binding(
    snapshot: Snapshot, asked: Sequence[Pod], context: SolveContext, gone: Sequence[Pod], now: Solution, solved: Solved
) -> Solution:
    """The solution where some pods have a place only while others terminate, such as those that must be near these.

    The kube-scheduler binds them at once. New nodes are for a time when they run and the others are gone.
    """
    names = {key: state.node.name for key, state in snapshot.state_nodes.items() if state.node is not None}
    first, promised = [pod for pod in asked if _binds(pod, now.placed, names)], _promised(snapshot, asked, now)
    # some may have their places only beside pods on the new nodes of `now`
    alone = solved(promised, first, replace(context, pools=()), (), improved=False).placed
    homes = {pod.key: names[now.placed[pod.key]] for pod in first if alone.get(pod.key) == now.placed[pod.key]}
    later = replace(promised, pods=bound_to(snapshot.pods, homes))
    rest = [pod for pod in asked if pod.key not in homes]
    fresh = replace(context_of(later), pools=context.pools, problems=context.problems)
    then = solved(later, rest, fresh, gone, improved=True)
    found = _waiting(snapshot, rest, gone, now, then)
    return replace(
        found,
        placed=dict(sorted({**found.placed, **{key: now.placed[key] for key in homes}}.items())),
        order=_merged(now.order, homes, found.order),
        zones=now.zones,
    )


def _merged(order: Sequence[str], homes: Mapping[str, str], rest: Sequence[str]) -> tuple[str, ...]:
    """The rest of the pods in their order, with those that have homes between them as in the other order."""
    merged, done = list[str](), 0
    places = {key: place for place, key in enumerate(rest, 1)}
    for key in order:
        if key in homes:
            merged.append(key)
        elif places.get(key, 0) > done:
            merged += rest[done : places[key]]
            done = places[key]
    return (*merged, *rest[done:])


def _binds(pod: Pod, placed: Mapping[str, str], names: Mapping[str, str]) -> bool:
    return not pods.virtual(pod) and placed.get(pod.key) in names


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
    names = shortened([pod.key for pod in here], _SHOWN)
    end = max(pod.metadata.deletion_timestamp for pod in here if pod.metadata.deletion_timestamp is not None)
    text = (
        f"waits for a place on node {state.name}: pods that terminate there are deleted by {end:%H:%M:%S} UTC, before a"
    )
    return PodRefusal(TERMINATING, f"{text} new node is ready ({names})", target=target)
