"""Evidence that a node is other than planned: Kerf made it for a pod, and the pod cannot run there.

A node is watched from the time it joins until its pods are bound. The verdict comes when the node is initialized and
the kube-scheduler has had time to try the pods since the node last changed, or later while a taint keeps them off that
the NodePool does not declare: such a taint may go. It is no evidence that other pods took the capacity, that pods of
the same shape run on the node or on a newer one, or that the node is cordoned, not ready, disrupted or deleted. Where
nothing but that keeps a pod off, the node is unused: this bounds how fast more nodes follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from kerf.model.claims import true_since
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.memory import Step, Turn
from kerf.model.snapshot import Snapshot
from kerf.pods.buffer_pods import RESOLUTIONS, Resolution, virtual_pods
from kerf.scheduling.answers.nodeclaims import pod_mark
from kerf.scheduling.mismatch.capacity import Capacity, fits
from kerf.scheduling.mismatch.watching import RECORDED, WATCH, Watched, watched
from kerf.scheduling.placing.classes import age
from kerf.scheduling.placing.pod_shapes import PodShapes


@dataclass(frozen=True, slots=True)
class Verdict:
    """A pod waits although its node is there; `undecided` until the instant of the verdict.

    `unused` says what keeps the pod off when it is no evidence that the node is other than planned.
    """

    watched: Watched
    pod: Pod
    shape: str
    undecided: bool
    unused: str = ""


def verdicts(turn: Turn, found: Mapping[str, Watched]) -> Sequence[Verdict]:
    """The pods that wait although a watched node was made for them, in order of the nodes and pods."""
    asked = (*waiting_pods(turn.snapshot), *virtual_pods(turn)) if found else ()
    if not asked:
        return ()
    snapshot, shapes = turn.snapshot, PodShapes(turn.snapshot)
    marks = {mark for one in found.values() for mark in one.missing}
    promises = snapshot.promises
    waiting, promised = dict[str, Pod](), dict[str, list[Pod]]()
    for pod in asked:
        mark, target = pod_mark(pod.metadata.uid), promises.get(pod.metadata.uid, "")
        if mark in marks:
            waiting[mark] = pod
        if target in found:
            promised.setdefault(target, []).append(pod)
    of_shape = _by_shape(shapes, _followers(snapshot, found, waiting))
    hosts = cache(lambda: newest_hosts(turn))
    return tuple(
        verdict
        for name in sorted(found)
        for verdict in _judged(
            turn,
            found[name],
            shapes,
            hosts,
            _made_for(found[name], waiting, of_shape),
            promised.get(name, ()),
        )
    )


def displaced(turn: Turn, since: datetime, which: Callable[[Pod], bool] | None = None) -> bool:
    """Whether a pod waits that is expected nowhere else, while other pods took its capacity on the nodes that were made
    for it: all of them are initialized, one of them since then. `which` says of which pods it is asked; None: of all.
    """
    snapshot = turn.snapshot
    opened = {name: one for name, one in watched(turn)[0].items() if one.initialized and not one.hindrance}
    fresh = {name for name, one in opened.items() if (at := true_since(one.claim, "Initialized")) and at >= since}
    if not fresh:
        return False
    waiting = {pod.metadata.uid: pod for pod in snapshot.pods.pending.values()}
    asked = waiting if which is None else {uid: pod for uid, pod in waiting.items() if which(pod)}
    promises, promised = snapshot.promises, dict[str, list[Pod]]()
    for uid, target in promises.items():
        if uid in waiting:
            promised.setdefault(target, []).append(waiting[uid])
    lost = dict[str, list[str]]()
    for name, one in opened.items():
        for mark in one.missing:
            lost.setdefault(mark, []).append(name)
    here = cache(lambda name: Capacity.of(turn, opened[name], promised.get(name, ())))
    for uid, pod in asked.items():
        names = lost.get(pod_mark(uid), [])
        target = promises.get(uid, "")
        if fresh.isdisjoint(names) or (target in snapshot.state_nodes and target not in names):
            continue
        if all((capacity := here(name)) is not None and capacity.taken(pod) for name in names):
            return True
    return False


def waiting_pods(snapshot: Snapshot) -> Iterator[Pod]:
    """Pods that the kube-scheduler has refused and that are not bound, nominated ones included."""
    yield from snapshot.pods.pending.values()
    for expected in snapshot.pods.nominated.values():
        yield from (pod for pod in expected.values() if pods.active(pod) and _is_refused(pod))


def kept_until(turn: Turn, claim_name: str) -> datetime | None:
    """The instant until which a node is kept because pods that it was made for may still run there; else None."""
    one = turn.one(WATCH, turn.noted, claim_name)
    if one is None or turn.snapshot.now >= one.verdict + RECORDED:
        return None
    waiting, known = (*waiting_pods(turn.noted), *_of_buffers(turn)), one.probes | one.shapes
    waits = any(pod_mark(pod.metadata.uid) in one.missing for pod in waiting)
    if not waits and known:
        shapes = PodShapes(turn.noted)
        waits = any(shapes.of(pod) in known for pod in waiting)
    return one.verdict + RECORDED if waits else None


def _of_buffers(turn: Turn) -> Iterator[Pod]:
    if turn.snapshot.settings.gates.capacity_buffer:
        for key in turn.noted.capacity_buffers:
            found: Resolution | None = turn.one(RESOLUTIONS, turn.noted, key)
            yield from found.pods if found is not None else ()


def newest_hosts(turn: Turn) -> Mapping[str, datetime]:
    """By shape, the creation of the newest NodeClaim whose Node runs a pod of the shape."""
    snapshot, found = turn.snapshot, dict[str, datetime]()
    for claim in snapshot.node_claims.values():
        created = claim.metadata.creation_timestamp
        if created is None:
            continue
        for node in snapshot.nodes_by_provider.get(claim.status.provider_id, ()):
            for shape in turn.one(SHAPES, turn.noted, node.name):
                found[shape] = max(found.get(shape, created), created)
    return found


# --- the pods ---------------------------------------------------------------------------------------------------
def _followers(snapshot: Snapshot, found: Mapping[str, Watched], waiting: Mapping[str, Pod]) -> Iterator[Pod]:
    """The waiting pods that may have come in place of others: where no node is a further attempt, those created since
    the first of the nodes was planned that lack pods which do not wait."""
    if any(one.probes for one in found.values()):
        yield from waiting_pods(snapshot)
        return
    lacking = (one for one in found.values() if one.initialized and one.shapes and one.missing - waiting.keys())
    since = min((at for one in lacking if (at := one.claim.metadata.creation_timestamp) is not None), default=None)
    if since is not None:
        yield from (pod for pod in waiting_pods(snapshot) if _is_later(pod, since))


def _is_later(pod: Pod, since: datetime) -> bool:
    created = pod.metadata.creation_timestamp
    return created is None or created >= since


def _by_shape(shapes: PodShapes, followers: Iterable[Pod]) -> Mapping[str, Sequence[Pod]]:
    found: dict[str, list[Pod]] = {}
    for pod in followers:
        found.setdefault(shapes.of(pod), []).append(pod)
    return found


def _made_for(one: Watched, waiting: Mapping[str, Pod], of_shape: Mapping[str, Sequence[Pod]]) -> Sequence[Pod]:
    """The waiting pods that a node was made for, and those that came in their place: as many as it lacks, and of a
    further attempt all of its shapes."""
    own = {pod.key: pod for mark in one.missing if (pod := waiting.get(mark)) is not None}
    left = len(one.missing) - len(own) if one.initialized else 0
    since = one.claim.metadata.creation_timestamp
    later = (pod for shape in one.shapes for pod in of_shape.get(shape, ()) if since is None or _is_later(pod, since))
    others = {pod.key: pod for pod in later} if left else {}
    own |= {pod.key: pod for pod in sorted((others[key] for key in others.keys() - own), key=age)[:left]}
    own |= {pod.key: pod for shape in one.probes for pod in of_shape.get(shape, ())}
    return [own[key] for key in sorted(own)]


def _judged(
    turn: Turn,
    one: Watched,
    shapes: PodShapes,
    hosts: Callable[[], Mapping[str, datetime]],
    found: Sequence[Pod],
    promised: Sequence[Pod],
) -> Iterator[Verdict]:
    """`found` are the waiting pods that the node was made for, `promised` those that are expected there."""
    created = one.claim.metadata.creation_timestamp
    if not found or created is None:
        return
    capacity = Capacity.of(turn, one, promised)
    if capacity is None:  # nothing follows from amounts that are not readable
        return
    for pod in found:
        unused = one.hindrance or ("other pods use its capacity" if capacity.taken(pod) else "")
        if pods.virtual(pod) and not one.hindrance and (unused or fits(pod, one, capacity.running)):
            continue  # others may use what a buffer keeps
        shape = shapes.of(pod)
        if shape and not (shape in hosts() and hosts()[shape] >= created):
            undecided = not one.initialized or (not unused and turn.snapshot.now < one.verdict)
            yield Verdict(one, pod, shape, undecided, unused)


def _is_refused(pod: Pod) -> bool:
    return any(c.type == "PodScheduled" and c.reason == "Unschedulable" for c in pod.status.conditions)


def _shapes(snapshot: Snapshot, name: str) -> tuple[frozenset[str], None]:
    """The shapes of the pods that a Node's kubelet runs, or is about to, daemon pods aside."""
    known = PodShapes(snapshot)
    there = (pod for pod in snapshot.pods.on(name) if pods.active(pod) and not pods.of_daemon_set(pod))
    return frozenset(known.of(pod) for pod in there if pods.admitted(pod)), None


SHAPES: Step[Snapshot, frozenset[str]] = Step("shapes on nodes", "nodes", _shapes, speaks=lambda _: False)
