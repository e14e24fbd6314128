"""How long pods wait: for a first decision about them, to be bound, to run; those that wait now, and those that did.

A row for each pod that does not run yet, and nothing about any other. Rows follow the pods; a standby
keeps them too, so that a new leader knows since when pods wait. What was decided about them before is not known to him:
they count as seen when he began to lead. Source: operations reference §2.4 and scheduling reference §8.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import nsmallest

from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import CreateNodeClaim, Nomination, Plan, Refusal
from kerf.model.snapshot import Snapshot
from kerf.ports import Clock
from kerf.telemetry.catalogue.names import METRICS
from kerf.telemetry.precedence import GiveWay, at_once, in_steps
from kerf.telemetry.series.exposition import head, line
from kerf.telemetry.series.metrics import Metrics

_PENDING = ("Pending", "")
_RAN = ("Running", "Succeeded")
_REGISTERING = "NodeRegistrationHealthy"
#: Of so many pods, those that wait longest, there is a series each; in a storm of pods those say enough.
MOST = 400
_NEVER = datetime.max.replace(tzinfo=UTC)
#: Pods whose lines are written in one step: about a millisecond.
_STEP = 200


@dataclass(slots=True)
class _Wait:
    """A pod that does not run yet. `asking`: it wants a node; `seen` since when this leader knows that.

    `decided`: what to do for it was decided once. `served` is when a place was first found for it in a NodePool whose
    nodes register. `unanswered` is the scheduler that has neither bound nor refused it; empty otherwise.
    """

    namespace: str
    name: str
    created: datetime | None
    asking: bool = False
    bound: bool = False
    seen: datetime | None = None
    decided: bool = False
    served: datetime | None = None
    unanswered: str = ""


class PodTimes:
    """`text` belongs to any thread, the rest to the loop's. With `everything` no pod that waits is left out."""

    def __init__(self, metrics: Metrics, clock: Clock, *, everything: bool = False) -> None:
        self._metrics, self._clock, self._everything = metrics, clock, everything
        self._waits: dict[str, _Wait] = {}
        self._leading = False

    # --- pods ---------------------------------------------------------------------------------------------------
    def see(self, old: Pod | None, new: Pod | None, *, telling: bool) -> None:
        """A pod before (None: it was not there) and after (None: it is gone); the leader reports."""
        if telling != self._leading:
            self._lead(telling, self._clock.now())
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._waits.pop(old.metadata.uid, None)
        if new is None:
            return
        if new.status.phase not in _PENDING:
            wait = self._waits.pop(new.metadata.uid, None)
            if wait is not None and new.status.phase in _RAN and telling:
                self._bound(wait, new)
                self._started(wait, new)
            return
        meta = new.metadata
        wait = self._waits.get(meta.uid)
        if wait is None:
            bound = bool(new.spec.node_name)
            wait = self._waits[meta.uid] = _Wait(meta.namespace, meta.name, meta.creation_timestamp, bound=bound)
        if new.spec.node_name and not wait.bound:
            if telling:
                self._bound(wait, new)
            wait.bound = True
        wait.asking = pods.provisionable(new)
        wait.unanswered = new.spec.scheduler_name if pods.unanswered(new) else ""
        if wait.asking and wait.seen is None and telling:
            wait.seen = self._clock.now()

    def _bound(self, wait: _Wait, pod: Pod) -> None:
        if wait.bound:
            return
        at = self._since(pod, "PodScheduled")
        _observe(self._metrics.pods_bound.observe, wait.created, at)
        _observe(self._metrics.pods_provisioned_bound.observe, wait.served, at)

    def _started(self, wait: _Wait, pod: Pod) -> None:
        at = self._since(pod, "Ready")
        _observe(self._metrics.pods_started.observe, wait.created, at)
        _observe(self._metrics.pods_provisioned_started.observe, wait.served, at)

    def _since(self, pod: Pod, condition: str) -> datetime:
        """Since when the condition is true, if it says so; else this is new."""
        found = next((c for c in pod.status.conditions if c.type == condition and c.status == "True"), None)
        told = found.last_transition_time if found is not None else None
        return told if told is not None else self._clock.now()

    # --- decisions ----------------------------------------------------------------------------------------------
    def decided(self, plan: Plan, snapshot: Snapshot, safely: Callable[..., None]) -> None:
        """Take in the decisions of a leader's plan about pods that are not bound. `safely` runs each by itself."""
        if not self._leading:
            self._lead(True, snapshot.now)
        if not plan.provisioned and plan.try_at is None:
            return
        pool_of = {a.claim.name: a.claim.pool_name for a in plan.actions if isinstance(a, CreateNodeClaim)}
        for nomination in (one for one in plan.nominations if not one.over):
            safely(self._nominated, nomination, snapshot, pool_of)
        for refusal in plan.refusals:
            safely(self._refused, refusal, snapshot)

    def _nominated(self, nomination: Nomination, snapshot: Snapshot, pool_of: Mapping[str, str]) -> None:
        wait = self._decide(nomination.pod_uid, snapshot.now)
        if wait is not None and wait.served is None:
            state = snapshot.state_nodes.get(nomination.target)
            pool = state.pool_name if state is not None else pool_of.get(nomination.target, "")
            wait.served = snapshot.now if _registers(snapshot, pool) else None

    def _refused(self, refusal: Refusal, snapshot: Snapshot) -> None:
        kind, _, key = refusal.subject.partition("/")
        pod = snapshot.pods.get(key) if kind == "pod" else None
        wait = self._decide(pod.metadata.uid, snapshot.now) if pod is not None else None
        if wait is not None:
            wait.served = None

    def _decide(self, uid: str, now: datetime) -> _Wait | None:
        """The pod's row, if it is one that is decided about; its first decision is measured."""
        wait = self._waits.get(uid)
        if wait is None or wait.bound:
            return None
        if not wait.decided:
            wait.decided = True
            _observe(self._metrics.pods_decided.observe, wait.seen, now)
        return wait

    def _lead(self, leading: bool, now: datetime) -> None:
        """From now on this process leads, or does no more: what was decided is another's."""
        self._leading = leading
        for wait in self._waits.values():
            wait.seen, wait.decided, wait.served = (now if leading and wait.asking else None), False, None

    # --- those that wait ----------------------------------------------------------------------------------------
    def silent_schedulers(self, patience: timedelta) -> frozenset[str]:
        """The schedulers that have neither bound nor refused a pod for so long."""
        latest = self._clock.now() - patience
        waits = (wait for wait in self._waits.values() if wait.unanswered)
        return frozenset(wait.unanswered for wait in waits if wait.created is not None and wait.created <= latest)

    def text(self, give_way: GiveWay = at_once) -> bytes:
        """A series for each pod that waits for something, in Prometheus' text format."""
        now, waits = self._clock.now(), list(self._waits.values())
        if not self._everything and len(waits) > MOST:
            waits = nsmallest(MOST, waits, key=lambda wait: wait.created or _NEVER)
        return "".join(part for row in _WAITS.items() for part in _written(*row, waits, now, give_way)).encode()


def _observe(observe: Callable[[float], object], since: datetime | None, at: datetime) -> None:
    if since is not None:
        observe(max((at - since).total_seconds(), 0.0))


def _registers(snapshot: Snapshot, pool_name: str) -> bool:
    """Whether nodes of the pool are known to register."""
    pool = snapshot.node_pools.get(pool_name)
    return pool is not None and any(c.type == _REGISTERING and c.status == "True" for c in pool.status.conditions)


#: Metrics of those that wait, and since when a pod does (None: it does not wait for this).
_WAITS: dict[str, Callable[[_Wait], datetime | None]] = {
    "karpenter_pods_unstarted_time_seconds": lambda w: w.created,
    "karpenter_pods_unbound_time_seconds": lambda w: None if w.bound else w.created,
    "karpenter_pods_provisioning_unstarted_time_seconds": lambda w: w.served,
    "karpenter_pods_provisioning_unbound_time_seconds": lambda w: None if w.bound else w.served,
    "karpenter_pods_provisioning_scheduling_undecided_time_seconds": lambda w: (
        None if w.bound or w.decided or not w.asking else w.seen
    ),
}


def _written(
    name: str,
    since: Callable[[_Wait], datetime | None],
    waits: list[_Wait],
    now: datetime,
    give_way: GiveWay,
) -> Iterator[str]:
    yield head(name, METRICS[name].about)
    for wait in in_steps(waits, give_way, _STEP):
        if (begun := since(wait)) is not None:
            seconds = max((now - begun).total_seconds(), 0.0)
            yield line(name, (("name", wait.name), ("namespace", wait.namespace)), seconds)
