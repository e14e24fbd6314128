"""The placement group that a node class selects. Source: EC2 API reference, DescribePlacementGroups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kerf.aws.requests.answers import Ask
from kerf.aws.requests.errors import translated
from kerf.model.aws.cloud import PlacementGroup
from kerf.ports import AlreadyGone
from kerf_api.v1.ec2nodeclass import PlacementGroupSelector

_AVAILABLE: Final = {"Name": "state", "Values": ["available"]}


def read_placement_group(ec2: Any, selector: PlacementGroupSelector | None, ask: Ask) -> PlacementGroup | None:
    """The group of this ID or name; None when there is none, or it is on its way in or out."""
    if selector is None:
        return None
    named: dict[str, Any] = {"GroupIds": [selector.id]} if selector.id else {"GroupNames": [selector.name or ""]}
    rows = ask(("describe_placement_groups", repr(named)), lambda: _describe(ec2, named))
    return _group(rows[0]) if rows else None


def _describe(ec2: Any, named: Mapping[str, Any]) -> list[Any]:
    try:
        with translated("ec2:DescribePlacementGroups"):
            return list(ec2.describe_placement_groups(**named, Filters=[_AVAILABLE])["PlacementGroups"])
    except AlreadyGone:
        return []


def _group(row: dict[str, Any]) -> PlacementGroup:
    return PlacementGroup(
        id=row["GroupId"],
        name=row.get("GroupName", ""),
        strategy=row.get("Strategy", ""),
        partitions=row.get("PartitionCount") or 0,
    )
