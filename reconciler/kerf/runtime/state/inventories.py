"""Launch templates and instance profiles as they were listed last, and when each was used last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kerf.model.aws.inventory import PROFILE, TEMPLATE, Inventory, Resource
from kerf_api.v1.ec2nodeclass import EC2NodeClass


@dataclass(slots=True)
class _Shelf:
    """One kind. `since` is when it was listed first: uses before that are unknown."""

    since: datetime | None = None
    resources: dict[str, Resource] = field(default_factory=dict)
    used: dict[str, datetime] = field(default_factory=dict)
    deleted: int = 0
    told: Inventory | None = None

    def inventory(self) -> Inventory:
        if self.told is None:
            used = {name: self._last_used(one) for name, one in self.resources.items()}
            rows = sorted(self.resources.values(), key=lambda one: (used[one.name], one.name))
            self.told = Inventory(tuple(rows), used, self.deleted)
        return self.told

    def _last_used(self, one: Resource) -> datetime:
        known = (self.since, self.used.get(one.name))
        return max((one.created, *(at for at in known if at is not None)))


class Inventories:
    """By kind. One thread uses it."""

    def __init__(self) -> None:
        self._shelves = {kind: _Shelf() for kind in (PROFILE, TEMPLATE)}

    def set_back(self, by: timedelta) -> None:
        """The clock was set back by so much: uses stay as long ago as they were."""
        for shelf in self._shelves.values():
            shelf.since = shelf.since - by if shelf.since is not None else None
            shelf.used = {name: used - by for name, used in shelf.used.items()}
            shelf.told = None

    def listed(self, kind: str, resources: Iterable[Resource], at: datetime) -> None:
        """All that there are, as of `at`. What was used before and is not among them is gone, and forgotten."""
        shelf = self._shelves[kind]
        shelf.since = shelf.since or at
        shelf.resources = {one.name: one for one in resources}
        shelf.used = {name: used for name, used in shelf.used.items() if name in shelf.resources or used >= at}
        shelf.deleted, shelf.told = 0, None

    def use(self, kind: str, names: Iterable[str], at: datetime) -> None:
        """Something needs, or needed until now, what is called so (empty: nothing)."""
        shelf = self._shelves[kind]
        shelf.used.update(dict.fromkeys(filter(None, names), at))
        shelf.told = None

    def noticed(self, old: EC2NodeClass | None, new: EC2NodeClass | None, now: datetime) -> None:
        """Of a class that names another profile than before, or that is gone, the old one was needed until now."""
        names = [one.status.instance_profile if one is not None else "" for one in (old, new)]
        if names[0] != names[1]:
            self.use(PROFILE, names, now)

    def deleted(self, resource: Resource) -> None:
        shelf = self._shelves[resource.kind]
        if shelf.resources.pop(resource.name, None) is not None:
            shelf.deleted += 1
        shelf.told = None

    def told(self) -> Mapping[str, Inventory]:
        """Those that were listed."""
        return {kind: shelf.inventory() for kind, shelf in self._shelves.items() if shelf.since is not None}
