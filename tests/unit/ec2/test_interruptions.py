"""Messages of the interruption queue."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from kerf.ec2.interruptions import parse
from kerf.model.aws.interruptions import Message


def message(body: Any) -> Message:
    return Message("m-1", "receipt", body if isinstance(body, str) else json.dumps(body))


def event(source: str, kind: str, **detail: Any) -> dict[str, Any]:
    return {
        "version": "0",
        "id": "1",
        "source": source,
        "detail-type": kind,
        "time": "2026-11-20T12:00:00Z",
        "detail": detail,
    }


SPOT = event("aws.ec2", "EC2 Spot Instance Interruption Warning", **{"instance-id": "i-1"})
STATE = "EC2 Instance State-change Notification"


def health(**changes: Any) -> dict[str, Any]:
    entities = [{"entityValue": "i-2"}, {"entityValue": "i-1"}, {}, {"entityValue": 3}]
    detail = {"service": "EC2", "eventTypeCategory": "scheduledChange", "affectedEntities": entities, **changes}
    return event("aws.health", "AWS Health Event", **detail)


def state(name: str) -> dict[str, Any]:
    return event("aws.ec2", STATE, **{"instance-id": "i-1", "state": name})


@pytest.mark.parametrize(
    ("body", "kind", "ids"),
    [
        (SPOT, "spot_interrupted", ("i-1",)),
        (
            event("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning", **{"instance-id": "i-1"}),
            "capacity_reservation_interrupted",
            ("i-1",),
        ),
        (
            event("aws.ec2", "EC2 Instance Rebalance Recommendation", **{"instance-id": "i-1"}),
            "rebalance_recommendation",
            ("i-1",),
        ),
        (health(), "scheduled_change", ("i-1", "i-2")),
        (state("stopping"), "instance_stopped", ("i-1",)),
        (state("Stopped"), "instance_stopped", ("i-1",)),
        (state("shutting-down"), "instance_terminated", ("i-1",)),
        (state("TERMINATED"), "instance_terminated", ("i-1",)),
    ],
)
def test_what_is_announced(body: dict[str, Any], kind: str, ids: tuple[str, ...]) -> None:
    found = parse(message(body))
    assert found is not None
    assert (found.kind, found.instance_ids) == (kind, ids)
    assert found.at == datetime(2026, 11, 20, 12, tzinfo=UTC)
    assert found.message == message(body)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "not json",
        "null",
        "[]",
        '"text"',
        "[" * 100_000,
        {},
        {**SPOT, "version": "1"},
        {**SPOT, "version": 0},
        {**SPOT, "source": "aws.s3"},
        {**SPOT, "detail-type": "Something Else"},
        {**SPOT, "detail": None},
        {**SPOT, "detail": []},
        {**SPOT, "detail": {}},
        {**SPOT, "detail": {"instance-id": 7}},
        {**SPOT, "source": ["aws.ec2"]},
        state("running"),
        state("pending"),
        health(service="RDS"),
        health(eventTypeCategory="issue"),
        health(affectedEntities=None),
        health(affectedEntities=[]),
        health(affectedEntities="i-1"),
    ],
)
def test_what_announces_nothing(body: Any) -> None:
    assert parse(message(body)) is None


@pytest.mark.parametrize("time", [None, 5, "yesterday"])
def test_an_unreadable_time_is_no_reason_to_ignore_a_warning(time: Any) -> None:
    found = parse(message({**SPOT, "time": time}))
    assert found is not None
    assert found.at is None


def test_a_time_without_a_zone_is_utc() -> None:
    found = parse(message({**SPOT, "time": "2026-11-20T12:00:00"}))
    assert found is not None
    assert found.at == datetime(2026, 11, 20, 12, tzinfo=UTC)
