"""All telemetry of the runtime in one place: what was planned, done, seen, and what went wrong."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from kerf.disruption.forced import interruption
from kerf.judgement.troubles import PATIENCE
from kerf.model import kinds, overlays
from kerf.model.aws.accounts import Measured
from kerf.model.failures import PROPOSE, STUCK
from kerf.model.kubernetes.objects import Node
from kerf.model.plan import (
    INTERNAL_ERROR,
    Action,
    CreateNodeClaim,
    DeleteMessage,
    DeleteObject,
    DeleteUnused,
    Event,
    EvictPod,
    PatchObject,
    Plan,
    Purchase,
    Refusal,
)
from kerf.model.snapshot import Snapshot
from kerf.ports import Clock, Kube, SeveralBudgets
from kerf.telemetry.events import EventWriter
from kerf.telemetry.log import disrupting, lines
from kerf.telemetry.log.logs import Logger, about, named, shortened, silent
from kerf.telemetry.object_changes import ObjectChanges
from kerf.telemetry.reconciling import identities, reconcile_id, reconciling
from kerf.telemetry.series import trouble_counts
from kerf.telemetry.series.metrics import LOOP, SOLVER, Labels, Metrics
from kerf.telemetry.series.series import ObjectSeries
from kerf.telemetry.series.spelling import camel_case, resource_type, snake_case, units
from kerf.telemetry.troubles import Troubles
from kerf.telemetry.turns import Turns
from kerf_api import labels
from kerf_api.resources import Resources
from kerf_api.v1.budgets import REASONS
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

#: HTTP status of an eviction, by how it went.
_CODES = {
    "ok": "200",
    "invalid": "400",
    "forbidden": "403",
    "gone": "404",
    "conflict": "409",
    "blocked": "429",
    "throttled": "429",
    "unavailable": "500",
}
_GAUGES_EVERY_SECONDS = 5.0
#: Pods of nodes that are removed have another pass well before this, for as long as they have no place.
_NEXT_PASS = timedelta(seconds=30)
#: Ways for an action to end that were wanted: it is so now.
FINE = frozenset({"ok", "gone", "exists"})
#: Ways for an action to end that are no failure and need no line in the log.
_QUIET = FINE | {"conflict", "blocked", "world_changed"}
_STUCK_TOLD_SECONDS = 600
_EVENT_LENGTH = 1000
#: Pods that are refused before any placement is tried.
_NOT_TRIED = frozenset({"OptedOut", "InvalidPod"})
#: Pods that are put off: the next pass knows more.
_NEXT_TIME = frozenset({"Deferred"})
#: Refusals that do not end by themselves: an operator must act, so they have a line in the log.
_TO_MEND = frozenset(
    {"DeletionHeld", "GarbageCollectionHalted", "Malformed", INTERNAL_ERROR, overlays.CONFLICT, overlays.INVALID}
)
#: What Kerf cannot do yet.
_TO_KNOW = frozenset({"ResourceClaims"})
#: What has lines of its own, or none.
_NOT_LOGGED = frozenset({"OptedOut"}) | _NEXT_TIME | _TO_MEND | _TO_KNOW
#: So many answers are logged in one look.
_MOST_ANSWERS = 50
#: Of what is not there any more there is no number left.
_HELD = ("kerf_garbage_collection_held", "kerf_deletion_held", "kerf_node_mismatches", "kerf_changes_awaiting_approval")
#: So many pods are named in a line.
_MOST_PODS = 50
#: So many of a batch.
_MOST_BATCHED = 5
_LATEST_FAILURES = "kerf_latest_failed_action_timestamp_seconds"
_WHY_CREATED = frozenset({"drifted", "underutilized"})


class Telemetry(Troubles):
    """See the module. Only the loop's thread calls it, except where noted.

    `process` distinguishes the IDs of its reconciles from those of others. `turns_kept`: so many, for who profiles.
    Without `single_objects` there is no series about one pod, nor (with its resources) one node.
    """

    def __init__(
        self,
        log: Logger,
        metrics: Metrics,
        events: EventWriter,
        clock: Clock,
        *,
        turns_kept: int = 0,
        single_objects: bool = True,
        process: str = "",
    ) -> None:
        super().__init__(log, metrics)
        self.events = events
        self.turns = Turns(turns_kept)
        self.series = ObjectSeries(metrics, clock, single_objects=single_objects)
        self.object_changed = ObjectChanges(log, metrics, events, clock, self.turns, self.series)
        self._clock, self._looks = clock, identities(process)
        #: The latest failure of each kind, and the look that had decided it.
        self._failures: dict[tuple[str, str], tuple[str, float]] = {}
        self._gauged = self._began = 0.0
        self._stands_until = datetime.min.replace(tzinfo=UTC)

    @classmethod
    def quiet(cls, kube: Kube, clock: Clock) -> Telemetry:
        """No logs, metrics of its own, events written at once: for the sandbox and for tests."""
        return cls(silent(), Metrics(), EventWriter(kube, clock), clock)

    def look(self) -> AbstractContextManager[None]:
        """Begins a look: lines and events within it have its ID."""
        return reconciling(next(self._looks))

    @contextmanager
    def tick(self) -> Iterator[None]:
        """Times one look."""
        self._began = self.metrics.unfinished.began = time.perf_counter()
        self.metrics.workers.set(1)
        self.broken = False
        try:
            yield
        finally:
            self.metrics.unfinished.began = None
            self.metrics.workers.set(0)
        took = time.perf_counter() - self._began
        self.metrics.ticks.observe(took)
        self.metrics.reconcile_seconds.labels(LOOP).observe(took)
        self.metrics.reconciled.labels(LOOP, "error" if self.broken else "success").inc()
        self.turns.decided(took)

    def planned(self, plan: Plan, snapshot: Snapshot) -> None:
        """Report a plan in numbers. Gauges of NodePools are counted only every few seconds.

        A failure about one pod, node or gauge is reported and costs no other.
        """
        gauges = self.metrics.gauges
        if plan.provisioned:
            self.metrics.scheduling.labels("provisioner").observe(time.perf_counter() - self._began)
        self.safely(self.series.pods.decided, plan, snapshot, self.safely)
        self.safely(self.series.seen, snapshot)
        for name in _HELD:
            gauges.replace(name, {})
        self.safely(self._scheduled, plan, snapshot)
        self.safely(gauges.of_plan, plan.gauges)
        if plan.purchase is not None:
            self.safely(self._bought, plan.purchase, snapshot)
        for measured in plan.measured:
            self.safely(self._saved, measured)
        for refusal in plan.refusals:
            if refusal.reason.code in _TO_MEND | _TO_KNOW:
                self.safely(self._refused, refusal)
        self.safely(self._unplaced, plan.refusals)
        codes = Counter(refusal.reason.code for refusal in plan.refusals)
        gauges.replace("kerf_refusals", {(("code", code),): float(count) for code, count in codes.items()})
        if time.monotonic() - self._gauged >= _GAUGES_EVERY_SECONDS:
            self._gauged = time.monotonic()
            self.safely(self._counted, snapshot)

    def _counted(self, snapshot: Snapshot) -> None:
        gauges = self.metrics.gauges
        gauges.replace("karpenter_cluster_state_node_count", {(): float(len(snapshot.state_nodes))})
        gauges.replace("karpenter_cluster_state_synced", {(): 1.0})
        self.metrics.unsynced.synced = True
        gauges.replace("karpenter_scheduler_queue_depth", {SOLVER: float(len(snapshot.pods.pending))})
        pools = list(snapshot.node_pools.values())
        gauges.replace("karpenter_nodepools_limit", _series(pools, lambda pool: pool.spec.limits or {}))
        gauges.replace("karpenter_nodepools_usage", _series(pools, lambda pool: pool.status.resources))
        silent_schedulers = self.series.pods.silent_schedulers(PATIENCE)
        gauges.replace(trouble_counts.NAME, trouble_counts.counts(snapshot, silent_schedulers))

    def _scheduled(self, plan: Plan, snapshot: Snapshot) -> None:
        """The outcome of the latest pass; it stands until the next, or until no pod waits for one."""
        if not plan.provisioned and (snapshot.pods.pending or snapshot.now < self._stands_until):
            return
        refused = [r for r in plan.refusals if r.subject.startswith("pod/")]
        ignored = sum(refusal.reason.code in _NOT_TRIED for refusal in refused)
        failed = sum(refusal.reason.code not in _NOT_TRIED | _NEXT_TIME for refusal in refused)
        gauges = self.metrics.gauges
        gauges.replace("karpenter_scheduler_ignored_pods_count", {(): float(ignored)})
        gauges.replace("karpenter_scheduler_unschedulable_pods_count", {SOLVER[:1]: float(failed)})
        for name in ("karpenter_scheduler_pending_pods_by_effective_zone_count", "kerf_refused_pods"):
            gauges.replace(name, {})
        bound = any(r.subject.removeprefix("pod/") not in snapshot.pods.pending for r in refused)
        self._stands_until = snapshot.now + _NEXT_PASS if bound else snapshot.now

    def _bought(self, purchase: Purchase, snapshot: Snapshot) -> None:
        """The latest purchase stands until the next; of what is not known of it there is no number."""
        cost, bound = purchase.price / 1e6, None if purchase.bound is None else purchase.bound / 1e6
        known = {"cost_usd_per_hour": cost, "cost_bound_usd_per_hour": bound, "cost_ratio": purchase.cost_ratio}
        for name, number in known.items():
            self.metrics.gauges.replace(f"kerf_scheduling_{name}", {} if number is None else {(): number})
        told = {name: "unknown" if number is None else round(number, 4) for name, number in known.items()}
        batch = shortened(tuple(snapshot.pods.pending), _MOST_BATCHED)
        took = timedelta(seconds=round(time.perf_counter() - self._began, 3))
        self.log.info("found provisionable pod(s)", **about("provisioner"), Pods=batch, duration=took)
        numbers = {"nodeclaims": purchase.nodes, "pods": purchase.pods, **told}
        self.log.info("computed new nodeclaim(s) to fit pod(s)", **about("provisioner"), **numbers)

    def _saved(self, measured: Measured) -> None:
        """What consolidation brought a NodePool, beside what it had promised."""
        counters = self.metrics
        counters.promised.labels(measured.pool).inc(max(0, measured.promised) / 1e6)
        came = counters.realised if measured.realised >= 0 else counters.lost
        came.labels(measured.pool).inc(abs(measured.realised) / 1e6)

    def _refused(self, refusal: Refusal) -> None:
        """A line for each object; of what is no trouble one for all of a code."""
        said, code = {"object": refusal.subject, "reason": str(refusal.reason)}, refusal.reason.code
        if code in _TO_MEND:
            self.trouble("refused", f"{refusal.subject} {code}", None, same=True, **said)
        elif self._repeats.news(f"refused {code}", "") is not None:
            self.log.info("refused", **said)

    def _unplaced(self, refusals: Iterable[Refusal]) -> None:
        """A line for each answer that pods without a place got, with how many got it; not one for each pod."""
        answers: dict[str, list[str]] = {}
        for refusal in refusals:
            if refusal.subject.startswith("pod/") and refusal.reason.code not in _NOT_LOGGED and refusal.reason.text:
                answers.setdefault(refusal.reason.text, []).append(refusal.subject.removeprefix("pod/"))
        for text, keys in list(answers.items())[:_MOST_ANSWERS]:
            quiet = self._repeats.news("could not schedule pod", text)
            if quiet is not None:
                namespace, _, name = min(keys).partition("/")
                context = about("provisioner")
                more = {"pods": len(keys), **({"repeated": quiet} if quiet else {})}
                self.log.error("could not schedule pod", **context, Pod=named(name, namespace), error=text, **more)

    def done(self, action: Action, outcome: str, value: Any, error: Exception | None, known: Any | None) -> None:
        """How an action went; `known` is the object it was about, as it was known before."""
        verb = action.verb if isinstance(action, PatchObject) else type(action).__name__
        self.metrics.actions.labels(verb, outcome).inc()
        self.log.debug("action ended", action=verb, object=action.lane, outcome=outcome, reason=str(action.reason))
        if isinstance(action, EvictPod):
            several = isinstance(error, SeveralBudgets)
            self.metrics.evictions.labels("500" if several else _CODES.get(outcome, outcome)).inc()
        self.series.markets.done(action, value, error if outcome not in FINE else None)
        if outcome == "ok":
            self._came_off(action, verb, known)
        elif outcome not in _QUIET:
            self._failed(action, verb, outcome, error, known)

    def _failed(self, action: Action, verb: str, outcome: str, error: Exception | None, known: Any | None) -> None:
        """A permission that is missing is missing for all objects: that is one trouble, not one for each."""
        self._failures[verb, outcome] = reconcile_id(), self._clock.now().timestamp()
        self.metrics.gauges.replace(_LATEST_FAILURES, _by_look(self._failures))
        fields: dict[str, Any] = {
            "action": verb,
            "object": action.lane,
            "outcome": outcome,
            "reason": str(action.reason),
        }
        if outcome == "forbidden":
            self.trouble("action failed", f"{verb} forbidden", error, same=True, **fields)
        else:
            self.trouble("action failed", action.key, error, **fields)
        if outcome in STUCK and known is not None:  # another attempt does not fix it
            words = f"{verb} failed: {error}"
            self.events.write(
                Event(
                    ref=kinds.ref(known),
                    uid=known.metadata.uid,
                    type="Warning",
                    reason=f"Failed{verb}",
                    message=words[:_EVENT_LENGTH],
                    dedupe_seconds=_STUCK_TOLD_SECONDS,
                )
            )

    def fields_dropped(self, kind: str, fields: Iterable[str]) -> None:
        """The served definition lacks a field: once for the kind, however many objects and values there are."""
        for name in fields:
            self.metrics.not_kept.labels(kind, name).inc()
            about_it = {"kind": kind, "field": name, "fix": "upgrade the chart kerf-crd"}
            self.trouble("a field was not saved", f"{kind} {name}", None, same=True, **about_it)

    def _came_off(self, action: Action, verb: str, known: Any | None) -> None:
        if isinstance(action, CreateNodeClaim):
            self._created(action)
        elif isinstance(action, EvictPod):
            self.metrics.pods_drained.labels(action.reason.code).inc()
            words = f"Evicted pod: {action.reason}"
            self.events.write(Event(action.ref, action.uid, "Normal", "Evicted", words, dedupe=str(action.ref)))
        elif isinstance(action, DeleteObject) and action.ref.kind == "NodeClaim":
            self._ended(action, known)
        elif isinstance(action, DeleteUnused):
            self.log.info("deleted what nothing needs", kind=action.resource.kind, name=action.resource.name)
        elif isinstance(action, DeleteMessage):
            self.metrics.deleted_messages.inc()
        elif verb == "StartCommand" and isinstance(action, PatchObject) and known is not None:
            self._started(action, known)
        elif verb == "RollBackCommand" and isinstance(action, PatchObject) and known is not None:
            self._rolled_back(action, known)
        elif verb == "TaintNode" and isinstance(known, Node) and not _tainted(known):
            lines.tainted(self.log, known)

    def _started(self, action: PatchObject, claim: NodeClaim) -> None:
        """Nodes are going to be disrupted."""
        fields, reason = disrupting.fields(claim, action.patch), action.reason.code
        if reason in REASONS:  # expiration is no decision of ours
            kind = disrupting.consolidation_type(disrupting.written(action.patch))
            decision = fields["decision"], reason.lower(), kind
            self.metrics.decisions.labels(*decision).inc()
            self.metrics.decisions_by_pool.labels(*decision, claim.pool_name).inc()
        self.log.info("disrupting node(s)", **about("disruption"), **fields)

    def _rolled_back(self, action: PatchObject, claim: NodeClaim) -> None:
        """Nodes are not going to be disrupted after all."""
        if kind := disrupting.given_up(claim, action.patch):
            self.metrics.failed_validations.labels(kind).inc()
        if (failed := disrupting.failed(claim, action.patch)) is not None:
            self.metrics.failed_replacements.labels(*failed.labels).inc(failed.replacements)

    def _ended(self, action: DeleteObject, claim: NodeClaim | None) -> None:
        """A NodeClaim was deleted, and pods will move."""
        own = claim.metadata.labels if claim is not None else {}
        where = own.get(labels.NODEPOOL, ""), own.get(labels.CAPACITY_TYPE, "")
        how = snake_case(action.policy), disrupting.termination_mode(claim)
        self.metrics.disrupted.labels(snake_case(action.reason.code), *where, *how).inc()
        if action.condition:
            image = claim.status.image_id if claim is not None else ""
            self.metrics.unhealthy_disrupted.labels(snake_case(action.condition), *where, image).inc()
        moved: dict[str, Any] = {}
        if action.moved is not None:
            initiated = self.metrics.pods_disrupted.labels(snake_case(action.reason.code), *where, *how)
            initiated.inc(len(action.moved))
            moved = {"pod-count": len(action.moved), "pods": list(action.moved[:_MOST_PODS])}
        if action.reason.code in interruption.CODES:
            node = claim.status.node_name if claim is not None else ""
            lines.interrupted(self.log, snake_case(action.reason.code), action.ref.name, node)
        self.log.info("deleting nodeclaim", NodeClaim=named(action.ref.name), reason=str(action.reason), **moved)

    def _created(self, action: CreateNodeClaim) -> None:
        claim, code = action.claim, action.reason.code.lower()
        reason = code if code in _WHY_CREATED else "provisioned"
        relaxed = claim.metadata.annotations.get(labels.MIN_VALUES_RELAXED, "false")
        self.metrics.created.labels(reason, claim.pool_name, relaxed).inc()
        lines.created(self.log, claim, "provisioner" if reason == "provisioned" else "disruption")

    def received(self, message_type: str, sent: datetime | None) -> None:
        """A message of the interruption queue, and when it was put there."""
        self.metrics.received.labels(message_type).inc()
        if sent is not None:
            self.metrics.message_age.observe(max((self._clock.now() - sent).total_seconds(), 0.0))

    def proposed(self, seconds: float) -> None:
        """A pass of consolidation over all nodes took so long. Any thread may call it."""
        self.part_tried(PROPOSE, None)
        self.metrics.proposing.labels("underutilized", "").observe(seconds)

    def impaired(self, category: str) -> None:
        """EC2 finds something with an instance of ours, newly."""
        self.metrics.unhealthy_instances.labels(camel_case(category)).inc()

    def close(self) -> None:
        self.events.close()


def _series(pools: list[NodePool], read: Any) -> dict[tuple[tuple[str, str], ...], float]:
    found: dict[tuple[tuple[str, str], ...], float] = {}
    for pool in pools:
        try:
            amounts = Resources.parse(read(pool))
        except Exception:  # provisioning refuses the NodePool
            continue
        for name, value in amounts.items():
            found[("nodepool", pool.name), ("resource_type", resource_type(name))] = value / units(name)
    return found


def _by_look(failures: Mapping[tuple[str, str], tuple[str, float]]) -> dict[Labels, float]:
    names = "action", "outcome", "reconcile_id"
    return {tuple(zip(names, (*what, look), strict=True)): at for what, (look, at) in failures.items()}


def _tainted(node: Node) -> bool:
    return any(t.key == labels.DISRUPTED_TAINT for t in node.spec.taints)
