"""The result of a simulation, as values. Money is in millionths of a dollar per hour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """An existing or planned node: `name` is that of its NodeClaim; `pods` counts pods except those of DaemonSets."""

    name: str
    nodepool: str
    instance_type: str
    zone: str
    capacity_type: str
    price: int
    pods: int


@dataclass(frozen=True, slots=True)
class Departure:
    """A node of the snapshot that is removed: the start of its disruption, the end of its instance (None: not yet).

    Both times are None in an estimate.
    """

    node: PlannedNode
    reason: str
    started: datetime | None
    ended: datetime | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """An evicted pod: `namespace/name`, and the NodeClaim of its node."""

    at: datetime
    pod: str
    node: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod without a place, with the reason."""

    pod: str
    reason: str


@dataclass(frozen=True, slots=True)
class Held:
    """A node that should be disrupted and is not: the reason for the disruption, and its blocker."""

    node: str
    reason: str
    blocker: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one simulation of a snapshot.

    Attributes:
        began: the time of the snapshot.
        ended: the time of the last change, or the horizon.
        at_rest: True when no more changes follow; False when the simulation stopped at the horizon.
        departures: removed nodes of the snapshot, by the start of their disruption.
        arrivals: new nodes that exist at the end.
        passing: new nodes that were removed before the end.
        moves: evictions, in order.
        waiting: pods without a place at the end, by name.
        held: nodes that should have been disrupted and still exist at the end.
        cost: cost of all nodes at the end, by NodePool.
        simulated: False for an estimate, which has neither an order nor a duration.
    """

    began: datetime
    ended: datetime
    at_rest: bool
    departures: tuple[Departure, ...] = ()
    arrivals: tuple[PlannedNode, ...] = ()
    passing: tuple[PlannedNode, ...] = ()
    moves: tuple[Move, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    held: tuple[Held, ...] = ()
    cost: Mapping[str, int] = field(default_factory=dict)
    simulated: bool = True

    @property
    def duration(self) -> timedelta:
        return self.ended - self.began

    @property
    def total(self) -> int:
        return sum(self.cost.values())
