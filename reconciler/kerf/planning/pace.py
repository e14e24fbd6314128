"""The pace of a simulation: growing steps while nothing changes, except at the times at which a budget changes or the
soak time of a canary ends.

The controller retries a pod without a place every few seconds. Without a change the result stays the same, and a plan
covers a day.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from kerf.disruption.candidates.canary import Canary
from kerf.model import kinds
from kerf.model.annotations import read
from kerf.model.plan import Plan
from kerf.sandbox.calm import AT_LEAST_EVERY, CALM, Stillness
from kerf.sandbox.world import World
from kerf_api import approval, labels
from kerf_api.v1 import budgets
from kerf_api.v1.nodepool import NodePool

#: The first step, and the divisor of the time without a change for later steps.
_FIRST_STEP: Final = timedelta(minutes=1)
_SHARE: Final = 10


class Pace:
    """The time of the next reconcile, computed after each reconcile of the controller."""

    def __init__(self, world: World, soak: timedelta = timedelta(0)) -> None:
        """`soak` is the soak time of canaries without annotations."""
        self._world, self._stillness, self._soak = world, Stillness(world), soak

    def until(self, plan: Plan, due: datetime | None) -> datetime | None:
        """Return a later time than `due` for the next reconcile while nothing changes; None while something changes."""
        now, lasted = self._world.clock.now(), self._stillness.lasted(disturbed=bool(plan.actions))
        if lasted < CALM or due is None:
            return None
        step = now + max(_FIRST_STEP, lasted / _SHARE)
        times = [max(step, plan.next_due or step), now + AT_LEAST_EVERY, *self.turns(now)]
        return max(due, min(times))

    def turns(self, now: datetime) -> Iterator[datetime]:
        """Return the times at which a budget window of a NodePool starts or ends, or the soak time of a canary ends."""
        for record in self._world.server.records(kinds.NODE_POOL):
            pool: NodePool = record.value
            yield from self._soaked(pool, now)
            for budget in pool.spec.disruption.budgets:
                try:
                    turn = budgets.changes(budget, now)
                except ValueError:  # such a budget allows nothing, at any time
                    continue
                if turn is not None and turn > now:
                    yield turn

    def _soaked(self, pool: NodePool, now: datetime) -> Iterator[datetime]:
        """Return the end of the soak time, and the time by which the disruption of other nodes has started."""
        canary = read(pool.metadata.annotations, labels.CANARY, Canary)
        if canary is None or canary.since is None:
            return
        record = self._world.server.find(kinds.NODE_CLASS, "", pool.class_name)
        of_class = record.value.metadata.annotations if record is not None else {}
        end = canary.since + approval.soak_of(pool.metadata.annotations, of_class, self._soak)
        yield from (at for at in (end, end + CALM) if at > now)
