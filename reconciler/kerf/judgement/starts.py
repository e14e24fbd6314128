"""The nodes that start: how many, the oldest, and how long earlier starts of the cluster took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from kerf.model.claims import seconds_between, since
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
        if claim.metadata.deleting or not claim.is_true("Launched"):
            continue
        if claim.is_true("Initialized"):
            if (known := seconds_between(claim, "Launched", "Initialized")) is not None:
                took.append(known)
        elif (launched := since(claim, "Launched", now) or claim.metadata.creation_timestamp) is not None:
            begun.append((launched, claim.name))
    if not begun:
        return None
    earliest, oldest = min(begun)
    seconds = round(max((now - earliest).total_seconds(), 0.0), 1)
    return Starting(len(begun), oldest, seconds, median(took) if took else None, max(took, default=None))
