"""EC2's warnings: what a message of the interruption queue says will happen to which instances.

Source: AWS provider reference §8.1 (EventBridge events of EC2 and AWS Health).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kerf.model.aws.cloud import Interruption, Message
from kerf_api import bounds

_KINDS = {
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"): "spot_interrupted",
    ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"): "capacity_reservation_interrupted",
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"): "rebalance_recommendation",
    ("aws.ec2", "EC2 Instance State-change Notification"): "state_change",
    ("aws.health", "AWS Health Event"): "scheduled_change",
}
_STATES = {
    "stopping": "instance_stopped",
    "stopped": "instance_stopped",
    "shutting-down": "instance_terminated",
    "terminated": "instance_terminated",
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
    ids = _instance_ids(kind, detail) if isinstance(detail, dict) else ()
    return Interruption(kind, ids, message, _time(body.get("time"))) if kind and ids else None


def _kind(source: str, detail_type: str, detail: Mapping[str, Any]) -> str:
    """The kind of an event; empty for one that changes nothing."""
    kind = _KINDS.get((source, detail_type), "")
    if kind == "state_change":
        return _STATES.get(str(detail.get("state")).lower(), "")
    if kind == "scheduled_change":
        concerns_us = detail.get("service") == "EC2" and detail.get("eventTypeCategory") == "scheduledChange"
        return kind if concerns_us else ""
    return kind


def _instance_ids(kind: str, detail: Mapping[str, Any]) -> tuple[str, ...]:
    if kind != "scheduled_change":
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
