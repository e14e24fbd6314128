"""The observations of one run, as values. Money is in millionths of a dollar per hour."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from kerf.planning.outcomes import Move


@dataclass(slots=True)
class PodLife:
    """One pod that does not belong to a DaemonSet.

    Attributes:
        workload: `namespace/name` of its Deployment or other controller; its own without one.
        started: the time at which it ran; None if it never did.
        stopped: the time at which it stopped: its deletion, its end, or the failure of its instance.
        zone: the zone of its node, once it runs.
        reason: the last reason that it had no node.
        lost: it stopped with its instance.
    """

    key: str
    workload: str
    created: datetime
    started: datetime | None = None
    stopped: datetime | None = None
    zone: str = ""
    reason: str = ""
    lost: bool = False


@dataclass(slots=True)
class NodeLife:
    """One NodeClaim.

    Attributes:
        created: the time of its creation; that of the start for those of a snapshot.
        instance_type: empty until its instance is launched.
        ending: the time at which its deletion started, with its `reason`.
        gone: the time of its removal.
        drifted: it has drifted at the end; `had_drifted`: at any time.
        blocker: the reason that it stayed until the end.
    """

    name: str
    node_pool: str
    instance_type: str
    zone: str
    capacity_type: str
    created: datetime
    ending: datetime | None = None
    reason: str = ""
    gone: datetime | None = None
    drifted: bool = False
    had_drifted: bool = False
    blocker: str = ""


@dataclass(frozen=True, slots=True)
class Level:
    """The number of running instances and their price from a time on."""

    at: datetime
    nodes: int
    price: int


@dataclass(slots=True)
class Observed:
    """One run from `began` to `ended`; assertions apply from `measured` on."""

    began: datetime
    measured: datetime
    ended: datetime
    pods: list[PodLife] = field(default_factory=list)
    nodes: list[NodeLife] = field(default_factory=list)
    levels: list[Level] = field(default_factory=list)
    evictions: list[Move] = field(default_factory=list)
    #: The messages of launches without capacity, with their number.
    failures: Counter[str] = field(default_factory=Counter)
    #: The names of all NodePools that existed.
    pools: set[str] = field(default_factory=set)

    @property
    def measured_levels(self) -> list[Level]:
        """The levels from the end of the warm-up on, the one that was in effect then included."""
        before = [one for one in self.levels if one.at <= self.measured]
        return [*before[-1:], *(one for one in self.levels if one.at > self.measured)]
