"""Launches without capacity, and the weather that caused them: stock-outs and quotas."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from kerf.model.aws.cloud import FleetError, FleetRequest, FleetResult
from kerf.planning.clouds import SnapshotCloud
from kerf.sandbox.aws.cloud import SandboxCloud
from kerf.simulating.scenario import Offerings

#: The errors of CreateFleet.
STOCK: Final = frozenset({"InsufficientInstanceCapacity", "UnfulfillableCapacity"})
QUOTA: Final = frozenset({"MaxSpotInstanceCountExceeded", "VcpuLimitExceeded"})


@dataclass(slots=True)
class Shortage:
    """Weather that makes launches fail. `refused` counts the offerings that launches could not have because of it.

    Attributes:
        codes: the errors of CreateFleet that it causes.
        of: the offerings without capacity.
        until: its end; None for the end of the run.
    """

    path: str
    codes: frozenset[str]
    of: Offerings
    until: datetime | None = None
    refused: int = 0

    def causes(self, error: FleetError, capacity_type: str, now: datetime) -> bool:
        """Whether a launch may have had this error because of the shortage."""
        given = ((self.of.instance_types, error.instance_type), (self.of.zones, error.zone))
        rows = (*given, (self.of.capacity_types, capacity_type))
        lasts = self.until is None or now < self.until
        return lasts and error.code in self.codes and all(not some or one in some for some, one in rows)


@dataclass(slots=True)
class Shortages:
    """The shortages of a run so far. `now` is the clock of the world."""

    now: Callable[[], datetime]
    all: list[Shortage] = field(default_factory=list)

    def note(self, capacity_type: str, errors: Iterable[FleetError]) -> None:
        """Count the errors of a launch."""
        now = self.now()
        for error in errors:
            for shortage in self.all:
                shortage.refused += shortage.causes(error, capacity_type, now)


class Noting(SandboxCloud):
    """A cloud that notes the errors of its launches, once it has `shortages`."""

    shortages: Shortages | None = None

    def create_fleet(self, request: FleetRequest, may_act: Callable[[], bool] = lambda: True) -> FleetResult:
        """See `Cloud`."""
        found = super().create_fleet(request, may_act)
        if self.shortages is not None:
            self.shortages.note(request.capacity_type, found.errors)
        return found


class NotingSnapshotCloud(Noting, SnapshotCloud):
    """The same with the facts of a snapshot."""
