"""Telemetry from changes of objects: log lines, counters and events for the steps in a node's life.

It gets every object before and after; a change shows once, whether our own write or the watch brought it.
"""

from __future__ import annotations

from typing import Any

from kerf.model import kinds
from kerf.model.kinds import Kind, Ref
from kerf.model.kubernetes.objects import Node
from kerf.model.plan import Event
from kerf.ports import Clock
from kerf.telemetry.events import EventWriter
from kerf.telemetry.log import lines
from kerf.telemetry.log.logs import Logger
from kerf.telemetry.series.metrics import Metrics
from kerf.telemetry.series.series import WITH_CONDITIONS, ObjectSeries
from kerf.telemetry.turns import Turns
from kerf_api import labels
from kerf_api.foreign import own_pool
from kerf_api.v1.meta import Condition, ObjectMeta
from kerf_api.v1.nodeclaim import NodeClaim


class ObjectChanges:
    """See the module."""

    def __init__(
        self, log: Logger, metrics: Metrics, events: EventWriter, clock: Clock, turns: Turns, series: ObjectSeries
    ) -> None:
        self._log, self._metrics, self._events, self._clock = log, metrics, events, clock
        self._turns, self._series = turns, series

    def __call__(self, kind: Kind, old: Any | None, new: Any | None, *, telling: bool = True) -> None:
        """An object was seen: before (None: it was not there) and after (None: it is not there any more).

        Without `telling` only gauges follow: another replica leads, and reports.
        """
        if telling and new is not None and new.metadata.unreadable and (old is None or not old.metadata.unreadable):
            self._unreadable(kind, new)
        self._series.see(kind, old, new)
        if kind is kinds.POD:
            if new is not None:
                self._turns.saw_pod(new.metadata.resource_version)
            self._series.pods.see(old, new, telling=telling)
            return
        if not telling:
            return
        if kind.name in WITH_CONDITIONS and old is not None:
            self._conditions(kind, old, new)
        if kind is kinds.NODE_CLAIM and new is None and old is not None:
            self._claim_gone(old)
        elif (
            kind is kinds.NODE_CLAIM
            and old is not None
            and new is not None
            and _deadline(new) not in ("", _deadline(old))
        ):
            lines.annotated(self._log, new)
        elif kind is kinds.NODE:
            self._node(old, new)

    def _unreadable(self, kind: Kind, value: Any) -> None:
        words = f"cannot be read, and is left alone: {value.metadata.unreadable}"
        self._events.write(Event(Ref.of(kind, value), value.metadata.uid, "Warning", "Unreadable", words))

    def _conditions(self, kind: Kind, old: Any, new: Any | None) -> None:
        """What has changed about an object, or that it is gone; nodes that are not ours are ignored."""
        if kind is kinds.NODE and not own_pool(old.metadata.labels):
            return
        if new is None:
            if old.metadata.deletion_timestamp is not None:
                took = (self._clock.now() - old.metadata.deletion_timestamp).total_seconds()
                self._metrics.ends[WITH_CONDITIONS[kind.name]].observe(max(took, 0.0))
            return
        if old.status.conditions is new.status.conditions:
            return
        before = {c.type: c for c in old.status.conditions}
        for condition in new.status.conditions:
            was = before.get(condition.type)
            before_it = was.status if was is not None else "Unknown" if _appears_done(kind, condition) else ""
            if before_it not in ("", condition.status):
                self._transition(kind, new, before_it, was, condition)

    def _transition(self, kind: Kind, value: Any, was: str, before: Any | None, now: Any) -> None:
        name = WITH_CONDITIONS[kind.name]
        self._metrics.transitions[name].labels(now.type, now.status, now.reason).inc()
        since = before.last_transition_time if before is not None else value.metadata.creation_timestamp
        if since is not None:
            until = now.last_transition_time or self._clock.now()
            self._metrics.transition[name].labels(now.type, now.status).observe(
                max((until - since).total_seconds(), 0.0)
            )
        if kind is kinds.NODE:  # Kubernetes itself writes events about those
            return
        text = f"Status condition transitioned, Type: {now.type}, Status: {was} -> {now.status}"
        text += f", Reason: {now.reason}" + (f", Message: {now.message}" if now.message else "")
        ref = Ref.of(kind, value)
        self._events.write(Event(ref, value.metadata.uid, "Normal", now.type, text, dedupe=text, dedupe_seconds=1))
        if kind is kinds.NODE_CLAIM and now.status == "True" and now.type == "Drained":
            self._metrics.drained.labels(value.pool_name).inc()
        if kind is kinds.NODE_CLAIM and now.status == "True" and now.type in lines.STEPS:
            lines.step(self._log, now.type, value)

    def _claim_gone(self, claim: NodeClaim) -> None:
        own, since = claim.metadata.labels, claim.metadata.deletion_timestamp
        pool = claim.pool_name
        self._metrics.terminated.labels(pool, own.get(labels.CAPACITY_TYPE, ""), own.get(labels.ZONE, "")).inc()
        if since is not None:
            took = (self._clock.now() - since).total_seconds()
            self._metrics.termination.labels(pool).observe(max(took, 0.0))
        asked = claim.condition("InstanceTerminating")
        if asked is not None and asked.status == "True" and asked.last_transition_time is not None:
            took = (self._clock.now() - asked.last_transition_time).total_seconds()
            self._metrics.instance_termination.labels(pool).observe(max(took, 0.0))
        lines.deleted(self._log, claim)

    def _node(self, old: Node | None, new: Node | None) -> None:
        if new is None and old is not None and (pool := own_pool(old.metadata.labels)):
            self._metrics.nodes_terminated.labels(*_where(old)).inc()
            self._node_gone(old.metadata, pool)
        elif new is not None and old is not None and new.registered and not old.registered and _is_own(new):
            self._metrics.nodes_created.labels(*_where(new)).inc()

    def _node_gone(self, meta: ObjectMeta, pool: str) -> None:
        now = self._clock.now()
        if meta.deletion_timestamp is not None:
            took = (now - meta.deletion_timestamp).total_seconds()
            self._metrics.node_termination.observe(max(took, 0.0), pool)
        if meta.creation_timestamp is not None:
            self._metrics.node_lifetime.labels(pool).observe(max((now - meta.creation_timestamp).total_seconds(), 0.0))


def _is_own(node: Node) -> bool:
    """Whether it is no node of another controller's NodePool."""
    return labels.NODEPOOL not in node.metadata.labels or bool(own_pool(node.metadata.labels))


def _appears_done(kind: Kind, condition: Condition) -> bool:
    """A claim's steps may be taken before anybody wrote that they were awaited."""
    return kind is kinds.NODE_CLAIM and condition.type in lines.STEPS and condition.status == "True"


def _deadline(claim: NodeClaim) -> str:
    return claim.metadata.annotations.get(labels.TERMINATION_TIMESTAMP, "")


def _where(node: Node) -> tuple[str, str]:
    own = node.metadata.labels
    return own.get(labels.NODEPOOL, ""), own.get(labels.ZONE, "")
