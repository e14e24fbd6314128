"""A NodePool whose consolidation has cost more than it saved is left alone for a while, longer each time.

That stands in an annotation of the pool, so that the slow half, `kerf why node` and who leads next know of it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from kerf.disruption.candidates.candidates import Blocker
from kerf.model.annotations import read
from kerf.model.backoff import Steps
from kerf.model.instants import Instant, is_ahead
from kerf.scheduling.offerings.prices import dollars
from kerf_api import labels
from kerf_api.v1.meta import Value
from kerf_api.v1.nodepool import NodePool

#: The first pause and the longest; it doubles with each loss.
PAUSES: Final = Steps(timedelta(minutes=10), timedelta(hours=12))
#: A loss so long after the end of the pause before begins again.
FORGOTTEN_AFTER: Final = timedelta(days=1)


class Pause(Value, frozen=True, kw_only=True):
    """The last loss, in millionths of a dollar per hour, and how many there have been, one soon after the other."""

    at: Instant
    lost: int
    count: int = 1

    def until(self, pool: str) -> datetime:
        return self.at + PAUSES.after(max(1, self.count), pool)


def pause_of(pool: NodePool, now: datetime) -> Pause | None:
    """The pause that the pool's annotation holds; None when there is none, it cannot be read or it is ahead of now."""
    found = read(pool.metadata.annotations, labels.CONSOLIDATION_PAUSE, Pause)
    return None if found is None or is_ahead(found.at, now) else found


def after(pool: NodePool, at: datetime, lost: int) -> Pause:
    """The pause that follows from one more loss."""
    before = pause_of(pool, at)
    in_a_row = before is not None and at - before.until(pool.name) < FORGOTTEN_AFTER
    return Pause(at=at, lost=lost, count=before.count + 1 if before is not None and in_a_row else 1)


def paused(pool: NodePool, now: datetime) -> Blocker | None:
    """That no node in use of the pool is consolidated now, and until when."""
    found = pause_of(pool, now)
    if found is None or found.until(pool.name) <= now:
        return None
    text = f"consolidation of NodePool {pool.name} is paused: its recent moves cost {dollars(found.lost)} an hour"
    return Blocker("ConsolidationPaused", f"{text} more than they saved", until=found.until(pool.name))
