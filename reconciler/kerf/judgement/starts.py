"""The nodes that start: how many, the oldest, and how long earlier starts of the cluster took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from kerf.model.claims import seconds_between
from kerf_api.v1.conditions import TRUE
from kerf_api.v1.nodeclaim import NodeClaim


@dataclass(frozen=True, slots=True)
class Starting:
    """Nodes that are launched and not initialized.

    Attributes:
        nodes: their number.
        oldest: the name of the NodeClaim that was launched first.
        seconds: since its launch.
        usual_seconds: the median from launch to initialization of the nodes of the cluster; None without one.
        longest_seconds: the longest of these.
    """

    nodes: int
    oldest: str
    seconds: float
    usual_seconds: float | None
    longest_seconds: float | None


def starting(claims: Iterable[NodeClaim], now: datetime) -> Starting | None:
    """Return the nodes that start at this time; None without any."""
    begun: list[tuple[datetime, str]] = []
    took: list[float] = []
    for claim in claims:
        launched, ended = _since(claim, "Launched"), _since(claim, "Initialized")
        if launched is None or claim.metadata.deleting:
            continue
        if ended is None:
            begun.append((launched, claim.name))
        elif (known := seconds_between(claim, "Launched", "Initialized")) is not None:
            took.append(known)
    if not begun:
        return None
    since, oldest = min(begun)
    seconds = round(max((now - since).total_seconds(), 0.0), 1)
    return Starting(len(begun), oldest, seconds, median(took) if took else None, max(took, default=None))


def _since(claim: NodeClaim, type_: str) -> datetime | None:
    """Return since when a condition is True."""
    condition = claim.condition(type_)
    if condition is None or condition.status != TRUE:
        return None
    return condition.last_transition_time or claim.metadata.creation_timestamp
