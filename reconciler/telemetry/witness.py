"""What objects tell by how they change: log lines, counters and events for the steps in a node's life.

Told of every object before and after; a change shows once, whether our own write or the watch brought it.
"""

from __future__ import annotations

import re
from typing import Any

from api import labels
from api.v1.meta import Condition
from api.v1.nodeclaim import NodeClaim
from reconciler.model import kinds
from reconciler.model.kinds import Kind, Ref
from reconciler.model.objects import Node
from reconciler.model.plan import Event
from reconciler.ports import Clock
from reconciler.telemetry import lines
from reconciler.telemetry.events import EventWriter
from reconciler.telemetry.logs import Logger
from reconciler.telemetry.metrics import Metrics
from reconciler.telemetry.pod_times import PodTimes
from reconciler.telemetry.turns import Turns

_WITH_CONDITIONS = {
    "NodeClaim": "nodeclaim",
    "NodePool": "nodepool",
    "EC2NodeClass": "ec2nodeclass",
    "CapacityBuffer": "capacitybuffer",
}
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def snake_case(text: str) -> str:
    """`SpotInterrupted` as metrics spell it: `spot_interrupted`. NodeClass and NodeClaim are one word there."""
    whole = text.replace("NodeClass", "Nodeclass").replace("NodeClaim", "Nodeclaim")
    return _WORD.sub("_", whole).lower()


class Witness:
    """See the module."""

    def __init__(
        self, log: Logger, metrics: Metrics, events: EventWriter, clock: Clock, turns: Turns, pods: PodTimes
    ) -> None:
        self._log, self._metrics, self._events, self._clock = log, metrics, events, clock
        self._turns, self._pods = turns, pods

    def __call__(self, kind: Kind, old: Any | None, new: Any | None, *, telling: bool = True) -> None:
        """An object was seen: before (None: it was not there) and after (None: it is not there any more).

        Without `telling` only gauges follow: another replica leads, and tells.
        """
        if telling and new is not None and new.metadata.unreadable and (old is None or not old.metadata.unreadable):
            self._unreadable(kind, new)
        if kind is kinds.POD:
            if new is not None:
                self._turns.saw_pod(new.metadata.resource_version)
            self._pods.see(old, new, telling=telling)
            return
        if kind.name in _WITH_CONDITIONS:
            seen: Any = old if new is None else new
            self._metrics.conditions.see(_WITH_CONDITIONS[kind.name], seen.metadata, new)
            if telling and old is not None and new is not None:
                self._conditions(kind, old, new)
        if not telling:
            return
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

    def _conditions(self, kind: Kind, old: Any, new: Any) -> None:
        if old.status.conditions is new.status.conditions:
            return
        before = {c.type: c for c in old.status.conditions}
        for condition in new.status.conditions:
            was = before.get(condition.type)
            before_it = was.status if was is not None else "Unknown" if _appears_done(kind, condition) else ""
            if before_it not in ("", condition.status):
                self._transition(kind, new, before_it, condition)

    def _transition(self, kind: Kind, value: Any, was: str, now: Condition) -> None:
        self._metrics.transitions[_WITH_CONDITIONS[kind.name]].labels(now.type, now.status, now.reason).inc()
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
        lines.deleted(self._log, claim)

    def _node(self, old: Node | None, new: Node | None) -> None:
        if new is None and old is not None and labels.NODEPOOL in old.metadata.labels:
            self._metrics.nodes_terminated.labels(*_where(old)).inc()
        elif new is not None and old is not None and new.registered and not old.registered:
            self._metrics.nodes_created.labels(*_where(new)).inc()


def _appears_done(kind: Kind, condition: Condition) -> bool:
    """A claim's steps may be taken before anybody wrote that they were awaited."""
    return kind is kinds.NODE_CLAIM and condition.type in lines.STEPS and condition.status == "True"


def _deadline(claim: NodeClaim) -> str:
    return claim.metadata.annotations.get(labels.TERMINATION_TIMESTAMP, "")


def _where(node: Node) -> tuple[str, str]:
    own = node.metadata.labels
    return own.get(labels.NODEPOOL, ""), own.get(labels.ZONE, "")
