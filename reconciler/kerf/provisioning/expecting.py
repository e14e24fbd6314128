"""The end of an expectation: a pod is expected on a node, is not bound there, and nothing changes there.

Kerf and the kube-scheduler then read a rule differently. The pod is expected there no more: it holds up neither drift
nor consolidation of the node, and one other node is tried. As soon as pods come to the node or go, it counts again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from kerf.model import kinds
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import Event, Nomination
from kerf.model.snapshot import Snapshot, StateNode
from kerf.scheduling.placing.pod_parts import label_keys

#: Time for the kube-scheduler to bind a pod to an initialized node on which it is expected.
BINDS: Final = timedelta(minutes=5)
NOT_BOUND: Final = "NotBound"


def over(snapshot: Snapshot) -> Mapping[str, tuple[Nomination, ...]]:
    """By UID of pods, the expectations that are over; `since` is when each of them ended."""
    found: dict[str, tuple[Nomination, ...]] = {}
    waiting = {pod.metadata.uid: pod for pod in snapshot.pods.pending.values()} if snapshot.nominations else {}
    joins = any(not state.initialized and not state.deleting for state in snapshot.state_nodes.values())
    for one in snapshot.nominations:
        pod, state = waiting.get(one.pod_uid), snapshot.state_nodes.get(one.target)
        if pod is None or state is None or not state.initialized:
            continue
        ended = _ended(one, pod, state, snapshot.now, joins)
        if ended is not None:
            found[one.pod_uid] = (*found.get(one.pod_uid, ()), replace(one, since=ended, over=True))
    return found


def events_of(snapshot: Snapshot) -> Iterator[Event]:
    """On each pod whose expectation ends now, that it does."""
    known = {(one.pod_uid, one.target) for one in snapshot.nominations if one.over}
    ended = [one for rows in over(snapshot).values() for one in rows if (one.pod_uid, one.target) not in known]
    pods = {pod.metadata.uid: pod for pod in snapshot.pods.pending.values()} if ended else {}
    for one in ended:
        pod, name = pods[one.pod_uid], snapshot.state_nodes[one.target].name
        words = f"node {name}: expected there, and not bound for {BINDS.seconds // 60} minutes: expected there no more"
        yield Event(kinds.ref(pod), one.pod_uid, "Warning", NOT_BOUND, words, dedupe=f"{one.pod_uid}/{one.target}")


def _ended(one: Nomination, pod: Pod, state: StateNode, now: datetime, joins: bool) -> datetime | None:
    """When an expectation ended; None while it stands."""
    changes = [at for at in _changes(state) if at is not None]
    if one.over:
        return one.since if one.since is not None and all(at <= one.since for at in changes) else None
    if one.since is None or now < max((one.since, *changes)) + BINDS:
        return None
    return None if joins and _depends_on_others(pod) else now


def _changes(state: StateNode) -> Iterator[datetime | None]:
    """The latest changes of a node that are known: its initialization, and pods that were added or removed."""
    claim = state.claim
    if claim is not None:
        initialized = claim.condition("Initialized")
        yield initialized.last_transition_time if initialized is not None else None
        yield claim.status.last_pod_event_time


def _depends_on_others(pod: Pod) -> bool:
    """Whether nodes that are to come may be what it waits for."""
    return bool(pod.spec.topology_spread_constraints) or bool(label_keys(pod))
