"""A world in which nothing happens is passed through in growing steps, but for the times at which a budget changes.

A pod without a place is tried again every few seconds, for as long as it waits. That brings nothing while nothing
changes, and a plan looks a day ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from kerf.model import kinds
from kerf.model.plan import Plan
from kerf.sandbox.calm import AT_LEAST_EVERY, CALM, Stillness
from kerf.sandbox.world import World
from kerf_api.v1 import budgets
from kerf_api.v1.nodepool import NodePool

#: The first step, and the share of the time without a change that a later one has.
_FIRST_STEP: Final = timedelta(minutes=1)
_SHARE: Final = 10


class Pace:
    """Asked after each look of the controller."""

    def __init__(self, world: World) -> None:
        self._world, self._stillness = world, Stillness(world)

    def until(self, plan: Plan, due: datetime | None) -> datetime | None:
        """When to look again instead of at `due`, where nothing happens; None where something does."""
        now, lasted = self._world.clock.now(), self._stillness.lasted(disturbed=bool(plan.actions))
        if lasted < CALM or due is None:
            return None
        step = now + max(_FIRST_STEP, lasted / _SHARE)
        times = [max(step, plan.next_due or step), now + AT_LEAST_EVERY, *self.turns(now)]
        return max(due, min(times))

    def turns(self, now: datetime) -> Iterator[datetime]:
        """When a budget of a NodePool begins to hold, or no longer does."""
        for record in self._world.server.records(kinds.NODE_POOL):
            pool: NodePool = record.value
            for budget in pool.spec.disruption.budgets:
                try:
                    turn = budgets.changes(budget, now)
                except ValueError:  # such a budget allows nothing, at any time
                    continue
                if turn is not None and turn > now:
                    yield turn
