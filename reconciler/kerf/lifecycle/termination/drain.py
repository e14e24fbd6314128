"""Emptying a Node: which pods are evicted now, which wait for them, and how far the deadline bends the rules.

Pods leave through the Eviction API in four waves: plain pods, daemons, critical pods, critical daemons. The next wave
starts when the one before is gone. With a deadline a pod is deleted just early enough to end in time, whatever
PodDisruptionBudgets and do-not-disrupt say; its grace is what is left, never less than a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from kerf.lifecycle.view import View
from kerf.model import kinds
from kerf.model.changes.pdbs import Pdbs, why_held
from kerf.model.failures import EVICTION_FAILED, eviction
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.plan import Event, EvictPod, Plan, Reason, Source, joined
from kerf.model.writes import deletion, normal, warning
from kerf_api.texts import counted

#: How long a drain sleeps when nothing wakes it earlier.
_LOOK_AGAIN = timedelta(seconds=10)
_SECOND = timedelta(seconds=1)
#: Of two instants that differ the later one is at least so much later.
_INSTANT = timedelta(microseconds=1)


def waiting_pods(view: View, node: Node) -> list[Pod]:
    """What still holds up the drain, sorted by key."""
    found = (pod for pod in view.snapshot.pods.on(node.name) if pods.waits_for_eviction(pod, view.snapshot.now))
    return sorted(found, key=lambda pod: pod.key)


def drain(view: View, node: Node, deadline: datetime | None, cause: str) -> Plan | None:
    """The next evictions and forced deletions; None when the node is empty.

    `cause` is why the node is removed (for the pods' events).
    """
    waiting, now = waiting_pods(view, node), view.snapshot.now
    if not waiting:
        return None
    rest = [pod for pod in waiting if not must_go(pod, now, deadline)]
    wave = min((wave_of(pod) for pod in rest), default=0)
    evictions = tuple(_evict(pod, node, cause) for pod in rest if wave_of(pod) == wave and _may_evict(view, pod))
    verb = "is" if len(waiting) == 1 else "are"
    held_up = warning(node, "FailedDraining", f"{counted(len(waiting), 'pod')} {verb} waiting to be evicted").standing()
    told = (held_up, *_refused(view, [pod for pod in rest if wave_of(pod) == wave], node))
    plan = Plan(actions=evictions, events=told, next_due=_due(view, waiting, deadline))
    if deadline is None:
        return plan
    return joined((_force([pod for pod in waiting if must_go(pod, now, deadline)], node, now, deadline), plan))


def failed_evictions(view: View, nodes: Iterable[Node]) -> tuple[str, str] | None:
    """Return reason and message of the condition of a drain whose evictions the API server refuses; None without."""
    known = view.snapshot.failures
    found = [one for node in nodes for pod in waiting_pods(view, node) if (one := eviction(known, pod.key)) is not None]
    if not found:
        return None
    first = min(found, key=lambda one: one.object)
    more = f", and {len(found) - 1} more" if found[1:] else ""
    return EVICTION_FAILED, f"{first.object}{more}: {first.text}"


def must_go(pod: Pod, now: datetime, deadline: datetime | None) -> bool:
    """Whether the pod has to be deleted by force, or its end brought forward, to be gone by the deadline."""
    if deadline is None:
        return False
    if pod.metadata.deletion_timestamp is not None:
        return pod.metadata.deletion_timestamp > max(deadline, now + _SECOND)
    forced = forced_at(pod, deadline)
    return forced is not None and now >= forced


def forced_at(pod: Pod, deadline: datetime | None) -> datetime | None:
    """When the pod is deleted despite all blockers, so that its grace is over by the drain's deadline."""
    grace = pod.spec.termination_grace_period_seconds
    return None if deadline is None or grace is None else deadline - timedelta(seconds=grace)


def wave_of(pod: Pod) -> int:
    """0 to 3: a wave begins when the ones before it are gone."""
    return 2 * pods.critical(pod) + pods.of_daemon_set(pod)


def _may_evict(view: View, pod: Pod) -> bool:
    return pods.evictable(pod, view.snapshot.now) and not _was_refused(view, pod)


def _was_refused(view: View, pod: Pod) -> bool:
    """Whether its eviction was refused so lately that it is not asked for again yet."""
    wait = view.snapshot.not_before.get(f"eviction/{pod.key}")
    return wait is not None and wait > view.snapshot.now


def _refused(view: View, wave: Iterable[Pod], node: Node) -> Iterator[Event]:
    """Of each pod whose eviction was refused, which PodDisruptionBudgets block it."""
    pdbs = Pdbs(view.snapshot.pdb_selectors, view.snapshot.pdb_budgets)
    for pod in wave:
        holding = pdbs.blocking(pod, view.snapshot.now) if _was_refused(view, pod) else ()
        if holding:
            yield replace(warning(node, "FailedDraining", why_held(pod, holding)), dedupe=pod.key)


def _evict(pod: Pod, node: Node, cause: str) -> EvictPod:
    return EvictPod(
        reason=Reason(cause, f"node {node.name} is drained"),
        sources=frozenset({Source.PODS, Source.NODES}),
        ref=kinds.ref(pod),
        uid=pod.metadata.uid,
        node_name=node.name,
    )


def _force(forced: Iterable[Pod], node: Node, now: datetime, deadline: datetime) -> Plan:
    """Deletion with the seconds that are left, and its announcement."""
    seconds = max(1, int((deadline - now).total_seconds()))
    reason = Reason("TerminationGracePeriodElapsed", f"the termination grace period of node {node.name} ends")
    words = f"deleted with {seconds} s of grace: its node's termination grace period ends"
    targets = tuple(forced)
    return Plan(
        actions=tuple(deletion(pod, reason, Source.PODS, Source.NODES, grace_seconds=seconds) for pod in targets),
        events=tuple(normal(pod, "Disrupted", words) for pod in targets),
    )


def _due(view: View, waiting: Iterable[Pod], deadline: datetime | None) -> datetime:
    """The earliest instant at which something changes by itself."""
    now = view.snapshot.now
    dues = [now + _LOOK_AGAIN]
    for pod in waiting:
        dues += _turning_points(view, pod, deadline)
    return min(due for due in dues if due > now)


def _turning_points(view: View, pod: Pod, deadline: datetime | None) -> list[datetime]:
    points = []
    if pod.metadata.deletion_timestamp is not None:
        points.append(pod.metadata.deletion_timestamp + pods.STUCK_AFTER + _INSTANT)
    elif (forced := forced_at(pod, deadline)) is not None:
        points.append(forced)
    points += pods.protection_ends(pod)
    wait = view.snapshot.not_before.get(f"eviction/{pod.key}")
    return points if wait is None else [*points, wait]
