"""What came of a life, as values. Money is in millionths of a dollar per hour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A node that is there or comes: `name` is that of its NodeClaim; `pods` those that do not belong to DaemonSets."""

    name: str
    nodepool: str
    instance_type: str
    zone: str
    capacity_type: str
    price: int
    pods: int


@dataclass(frozen=True, slots=True)
class Departure:
    """A node of the snapshot that goes: from when its disruption started until its instance ended (None: not yet).

    An estimate knows neither time.
    """

    node: PlannedNode
    reason: str
    started: datetime | None
    ended: datetime | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that is evicted: `namespace/name`, and the NodeClaim that it leaves."""

    at: datetime
    pod: str
    node: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod without a place, and why."""

    pod: str
    reason: str


@dataclass(frozen=True, slots=True)
class Held:
    """A node that should go and does not: the reason that it should, and what holds it."""

    node: str
    reason: str
    blocker: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """One life of a snapshot.

    Attributes:
        began: the time of the snapshot.
        ended: the last change before everything was at rest, or the horizon.
        at_rest: nothing more would happen; False: the horizon came first.
        departures: nodes of the snapshot that went, by the time their disruption started.
        arrivals: nodes that came and stayed.
        passing: nodes that came and went again.
        moves: evictions, in order.
        waiting: pods without a place at the end, by name.
        held: nodes that should have gone and were still there at the end.
        cost: of all nodes at the end, by NodePool.
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
