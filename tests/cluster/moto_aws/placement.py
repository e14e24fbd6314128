"""Placement groups, of which moto has none.

Source: EC2 API reference, DescribePlacementGroups; EC2 user guide, "Placement strategies" and "Placement group rules".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from moto.ec2.exceptions import EC2ClientError

#: So many instances of a group of strategy spread may run in a zone.
SPREAD_LIMIT = 7


class Group(msgspec.Struct):
    """`partitions` of strategy partition."""

    id: str
    name: str
    strategy: str
    partitions: int = 0
    state: str = "available"


def rows(
    known: Mapping[str, Group], ids: Sequence[str], names: Sequence[str], filters: Mapping[str, Sequence[str]]
) -> list[dict[str, Any]]:
    """Raises InvalidPlacementGroup.Unknown for an ID or a name that nobody has."""
    unknown = [*(set(ids) - known.keys()), *(set(names) - {one.name for one in known.values()})]
    if unknown:
        raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{min(unknown)}' is unknown.")
    found = [one for one in known.values() if (not ids or one.id in ids) and (not names or one.name in names)]
    return [_row(one) for one in found if all(_value(one, key) in values for key, values in filters.items())]


def _value(one: Group, filter_name: str) -> str:
    return {"state": one.state, "strategy": one.strategy, "group-name": one.name}[filter_name]


def _row(one: Group) -> dict[str, Any]:
    row = {"GroupId": one.id, "GroupName": one.name, "State": one.state, "Strategy": one.strategy}
    return {**row, "PartitionCount": one.partitions} if one.partitions else row


def room(known: Mapping[str, Group], placed: Mapping[str, Any], zone: str, instances: Iterable[Any]) -> int:
    """How many more instances may be launched there by a launch template's Placement."""
    group = known.get(placed.get("GroupId", ""))
    if group is None or group.strategy != "spread":
        return 1_000
    return SPREAD_LIMIT - len(_members(group.id, zone, instances))


def put(known: Mapping[str, Group], placed: Mapping[str, Any], instance: Any, instances: Iterable[Any]) -> None:
    """The instance is where its template's Placement says; which partition EC2 takes, when none is named."""
    group = known.get(placed.get("GroupId", ""))
    if group is None:
        return
    taken = Counter(one.placement.partition_number for one in _members(group.id, instance.availability_zone, instances))
    instance.placement.group_id = group.id
    numbers = range(1, group.partitions + 1)
    fewest = min(numbers, key=lambda number: (taken[number], number), default=0)
    instance.placement.partition_number = int(placed.get("PartitionNumber") or fewest)


def _members(group_id: str, zone: str, instances: Iterable[Any]) -> list[Any]:
    return [
        one
        for one in instances
        if getattr(one.placement, "group_id", "") == group_id
        and one.availability_zone == zone
        and one.state in ("pending", "running")
    ]
