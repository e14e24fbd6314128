"""EC2's warnings: what a message of the interruption queue says will happen to which instances.

Source: AWS provider reference §8.1 (EventBridge events of EC2 and AWS Health).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kerf.model.aws.interruptions import Interruption, InterruptionKind, Message
from kerf_api import bounds

_KINDS = {
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"): InterruptionKind.SPOT_INTERRUPTED,
    ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"): (
        InterruptionKind.CAPACITY_RESERVATION_INTERRUPTED
    ),
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"): InterruptionKind.REBALANCE_RECOMMENDATION,
    ("aws.health", "AWS Health Event"): InterruptionKind.SCHEDULED_CHANGE,
}
_STATE_CHANGE = ("aws.ec2", "EC2 Instance State-change Notification")
_STATES = {
    "stopping": InterruptionKind.INSTANCE_STOPPED,
    "stopped": InterruptionKind.INSTANCE_STOPPED,
    "shutting-down": InterruptionKind.INSTANCE_TERMINATED,
    "terminated": InterruptionKind.INSTANCE_TERMINATED,
}


def parse(message: Message) -> Interruption | None:
    """The interruption a message announces; None when it announces none or cannot be read."""
    try:
        body = json.loads(message.body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or body.get("version") != "0":
        return None
    detail = body.get("detail")
    kind = _kind(str(body.get("source")), str(body.get("detail-type")), detail if isinstance(detail, dict) else {})
    if kind is None or not isinstance(detail, dict):
        return None
    ids = _instance_ids(kind, detail)
    return Interruption(kind, ids, message, _time(body.get("time"))) if ids else None


def _kind(source: str, detail_type: str, detail: Mapping[str, Any]) -> InterruptionKind | None:
    """The kind of an event; None for one that changes nothing."""
    if (source, detail_type) == _STATE_CHANGE:
        return _STATES.get(str(detail.get("state")).lower())
    kind = _KINDS.get((source, detail_type))
    if kind is InterruptionKind.SCHEDULED_CHANGE:
        concerns_us = detail.get("service") == "EC2" and detail.get("eventTypeCategory") == "scheduledChange"
        return kind if concerns_us else None
    return kind


def _instance_ids(kind: InterruptionKind, detail: Mapping[str, Any]) -> tuple[str, ...]:
    if kind is not InterruptionKind.SCHEDULED_CHANGE:
        named = detail.get("instance-id")
        return (named,) if isinstance(named, str) and named else ()
    entities = detail.get("affectedEntities")
    rows = entities if isinstance(entities, list) else []
    values = {row.get("entityValue") for row in rows if isinstance(row, dict)}
    return tuple(sorted(value for value in values if isinstance(value, str) and value))


def _time(text: object) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        return bounds.instant(datetime.fromisoformat(text))
    except ValueError:
        return None
