"""What ails instances, as DescribeInstanceStatus tells it. Source: EC2 API reference, InstanceStatus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec


class Ailment(msgspec.Struct, frozen=True):
    """`what` is `instance` or `system` (a check that has failed for so many seconds), or the code of an event.

    Its times count from when it was told (`at`): they are the same in every answer.
    """

    instance_id: str
    what: str
    seconds: float = 0.0
    description: str = ""
    at: datetime = msgspec.field(default_factory=lambda: datetime.now(UTC))


def rows(ailments: Sequence[Ailment], running: Mapping[str, str], filters: Mapping[str, Sequence[str]]) -> list[Any]:
    """The rows of instances (ID and zone) that run and pass the filters."""
    found = [_row(name, zone, [one for one in ailments if one.instance_id == name]) for name, zone in running.items()]
    return [row for row in found if all(_passes(row, name, values) for name, values in filters.items())]


def _row(instance_id: str, zone: str, ailments: Sequence[Ailment]) -> dict[str, Any]:
    checks = {one.what: one for one in ailments if one.what in ("instance", "system")}
    return {
        "InstanceId": instance_id,
        "AvailabilityZone": zone,
        "InstanceState": {"Code": 16, "Name": "running"},
        "InstanceStatus": _check(checks.get("instance")),
        "SystemStatus": _check(checks.get("system")),
        "Events": [_event(one) for one in ailments if one.what not in checks],
    }


def _check(failing: Ailment | None) -> dict[str, Any]:
    if failing is None:
        return {"Status": "ok", "Details": [{"Name": "reachability", "Status": "passed"}]}
    since = _after(failing, -failing.seconds)
    return {
        "Status": "impaired",
        "Details": [{"Name": "reachability", "Status": "failed", "ImpairedSince": since}],
    }


def _event(one: Ailment) -> dict[str, str]:
    text = one.description or "The instance is running on degraded hardware"
    day = _after(one, 86_400)
    return {"Code": one.what, "Description": text, "NotBefore": day, "InstanceEventId": "instance-event-1"}


def _after(one: Ailment, seconds: float) -> str:
    return (one.at + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _passes(row: Mapping[str, Any], name: str, values: Sequence[str]) -> bool:
    found = {
        "instance-status.status": [row["InstanceStatus"]["Status"]],
        "system-status.status": [row["SystemStatus"]["Status"]],
        "event.code": [event["Code"] for event in row["Events"]],
    }
    return not set(values).isdisjoint(found[name])
