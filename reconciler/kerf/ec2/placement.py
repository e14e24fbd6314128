"""Placement groups: which types one takes, what its machines' labels may be, and which partition a launch asks for.

A class selects one group or none. Source: AWS provider reference §2.4, §4.6 and §4.7.
"""

from __future__ import annotations

from collections.abc import Iterable

from kerf.model.aws.cloud import PARTITIONED, InstanceTypeInfo, PlacementGroup
from kerf_api import labels
from kerf_api.requirements import DOES_NOT_EXIST, IN, Requirement, Requirements, requirement
from kerf_api.v1.nodeclaim import NodeClaim

LABELS = (labels.PLACEMENT_GROUP, labels.PLACEMENT_PARTITION)


def takes(group: PlacementGroup, info: InstanceTypeInfo) -> bool:
    """Whether machines of the type can be in the group."""
    return group.strategy in info.placement_strategies


def rows(group: PlacementGroup) -> Iterable[Requirement]:
    """What the labels of its machines may be; those of a group without partitions have no label for one."""
    yield requirement(labels.PLACEMENT_GROUP, IN, (group.id,))
    if group.strategy == PARTITIONED:
        yield requirement(labels.PLACEMENT_PARTITION, IN, _partitions(group))
    else:
        yield requirement(labels.PLACEMENT_PARTITION, DOES_NOT_EXIST, ())


def partition(group: PlacementGroup, wanted: Requirements) -> int:
    """The first partition that will do for who asks for some; 0 for who does not care, and EC2 evens them out."""
    asked = wanted.get(labels.PLACEMENT_PARTITION)
    if asked is None or group.strategy != PARTITIONED:
        return 0
    return next((int(number) for number in _partitions(group) if asked.has(number)), 0)


def is_awaited(claim: NodeClaim) -> bool:
    """Whether the claim's label does not show yet in which partition its machine is."""
    own = claim.metadata.labels
    return bool(own.get(labels.PLACEMENT_GROUP)) and own.get(labels.PLACEMENT_PARTITION) == ""


def _partitions(group: PlacementGroup) -> list[str]:
    return [str(number) for number in range(1, group.partitions + 1)]
