"""Capacity reservations, of which moto has none.

Source: EC2 API reference, DescribeCapacityReservations; EC2 user guide, "On-Demand Capacity Reservations".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from .settings import ACCOUNT


class Reserved(msgspec.Struct):
    """`total` machines of a type in a zone, for who names the reservation."""

    id: str
    instance_type: str
    zone: str
    total: int
    tags: dict[str, str] = {}
    owner: str = ACCOUNT
    criteria: str = "targeted"


def target(data: Mapping[str, Any]) -> str:
    """The reservation that a launch template's data name; empty when they name none."""
    asked = data.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
    return str(asked.get("CapacityReservationId", ""))


def left(one: Reserved, instances: Iterable[Any]) -> int:
    """How many machines may still be launched into it."""
    held = (i for i in instances if getattr(i, "capacity_reservation_id", None) == one.id)
    return one.total - sum(instance.state in ("pending", "running") for instance in held)


def rows(
    known: Iterable[Reserved], instances: Sequence[Any], filters: Mapping[str, Sequence[str]]
) -> list[dict[str, Any]]:
    return [_row(one, left(one, instances)) for one in known if _passes(one, filters)]


def _row(one: Reserved, free: int) -> dict[str, Any]:
    return {
        "CapacityReservationId": one.id,
        "OwnerId": one.owner,
        "InstanceType": one.instance_type,
        "AvailabilityZone": one.zone,
        "TotalInstanceCount": one.total,
        "AvailableInstanceCount": free,
        "State": "active",
        "EndDateType": "unlimited",
        "InstanceMatchCriteria": one.criteria,
        "ReservationType": "default",
        "Tags": [{"Key": key, "Value": value} for key, value in one.tags.items()],
    }


def _passes(one: Reserved, filters: Mapping[str, Sequence[str]]) -> bool:
    own = {
        "state": "active",
        "owner-id": one.owner,
        "instance-match-criteria": one.criteria,
        **{f"tag:{key}": value for key, value in one.tags.items()},
    }
    keys = set(filters.get("tag-key", one.tags)) & one.tags.keys() or not filters.get("tag-key")
    return bool(keys) and all(own.get(name) in values for name, values in filters.items() if name != "tag-key")
