"""Placement groups in memory. Source: EC2 user guide, "Placement strategies" and "Placement group rules"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kerf.model.aws.cloud import PARTITIONED, FleetError, LaunchTemplate, PlacementGroup
from kerf.sandbox.aws.machines import Machine
from kerf_api.v1.ec2nodeclass import PlacementGroupSelector

#: So many machines of a group of strategy spread may run in a zone.
SPREAD_LIMIT = 7


class PlacementGroups:
    """`machines` are all that ever were."""

    def __init__(self, machines: Iterable[Machine]) -> None:
        self._machines = machines
        self._groups: dict[str, PlacementGroup] = {}

    def add(self, group: PlacementGroup) -> None:
        self._groups[group.id] = group

    def remove(self, id_: str) -> None:
        del self._groups[id_]

    def find(self, selector: PlacementGroupSelector | None) -> PlacementGroup | None:
        """The group of this ID, or of this name."""
        if selector is None or selector.id:
            return None if selector is None else self._groups.get(selector.id or "")
        return next((group for group in self._groups.values() if group.name == selector.name), None)

    def fault(self, id_: str, kind: str, zone: str) -> FleetError | None:
        """Why no machine of this type can be launched into the group there."""
        group = self._groups.get(id_)
        if group is None:
            return FleetError("InvalidPlacementGroup.Unknown", f"The Placement Group '{id_}' is unknown", kind, zone)
        if group.strategy != "spread" or len(self._members(id_, zone)) < SPREAD_LIMIT:
            return None
        text = "You have reached the limit of instances in this spread placement group"
        return FleetError("InstanceLimitExceeded", text, kind, zone, True)

    def partition(self, template: LaunchTemplate, zone: str) -> int:
        """The one that is asked for, else that with fewest machines; 0 in a group without partitions."""
        group = self._groups.get(template.placement_group)
        if group is None or group.strategy != PARTITIONED:
            return 0
        taken = Counter(machine.partition for machine in self._members(group.id, zone))
        return template.partition or min(range(1, group.partitions + 1), key=lambda number: (taken[number], number))

    def _members(self, id_: str, zone: str) -> list[Machine]:
        return [
            machine
            for machine in self._machines
            if (machine.placement_group, machine.zone) == (id_, zone) and machine.state in ("pending", "running")
        ]
