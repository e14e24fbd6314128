"""EventBridge events of EC2 and AWS Health as they arrive in an interruption queue.

Source: EC2 user guide, "Spot Instance interruption notices", "EC2 instance rebalance recommendations", "Monitor
instance state changes"; AWS Health user guide, "Amazon EventBridge event schema".
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from .settings import ACCOUNT

KINDS = {
    "spot": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "stopping": ("aws.ec2", "EC2 Instance State-change Notification"),
    "terminated": ("aws.ec2", "EC2 Instance State-change Notification"),
    "scheduled": ("aws.health", "AWS Health Event"),
}


def interruption_body(kind: str, instance_id: str, region: str) -> str:
    """The body of a message of one of KINDS about one instance."""
    source, detail_type = KINDS[kind]
    return json.dumps(
        {
            "version": "0",
            "id": f"{kind}-{instance_id}",
            "source": source,
            "detail-type": detail_type,
            "account": ACCOUNT,
            "region": region,
            "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "resources": [f"arn:aws:ec2:{region}:{ACCOUNT}:instance/{instance_id}"],
            "detail": _detail(kind, instance_id),
        }
    )


def _detail(kind: str, instance_id: str) -> dict[str, Any]:
    if kind == "scheduled":
        entities = [{"entityValue": instance_id}]
        return {"service": "EC2", "eventTypeCategory": "scheduledChange", "affectedEntities": entities}
    if kind in ("stopping", "terminated"):
        return {"instance-id": instance_id, "state": kind}
    return {"instance-id": instance_id, "instance-action": "terminate"}
