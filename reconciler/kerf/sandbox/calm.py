"""A calm world is passed through quickly: nothing has changed for some minutes, nothing is to be done, no pod waits.

The controller asks AWS every few seconds for changes, and looks for savings. In a calm world its next look is when its
plan says that something becomes due. Whatever changes wakes it at once, as ever.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from kerf.model import kinds
from kerf.model.plan import Plan, ValidateClass
from kerf.sandbox.world import World

#: After so long without a change a world counts as calm; and what is looked at all the same, this often.
CALM, AT_LEAST_EVERY = timedelta(minutes=5), timedelta(hours=3)


class Stillness:
    """For how long nothing has changed in a world. Asked after each look of the controller."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._changed_at, self._seen = world.clock.now(), (0, 0)

    def lasted(self, *, disturbed: bool) -> timedelta:
        """The time since the last change; none when something else disturbs it now."""
        now, changes = self._world.clock.now(), (self._world.server.loud_changes, self._world.ec2.changes)
        if changes != self._seen or disturbed:
            self._changed_at, self._seen = now, changes
        return now - self._changed_at


class Calm:
    """Asked after each look of the controller."""

    def __init__(self, world: World) -> None:
        self._world, self._stillness = world, Stillness(world)

    def until(self, plan: Plan, due: datetime | None) -> datetime | None:
        """When to look again instead of at `due`, where the world is calm; None where it is not."""
        now = self._world.clock.now()
        acts = any(not isinstance(action, ValidateClass) for action in plan.actions)  # a dry run changes nothing
        if self._stillness.lasted(disturbed=acts or self._somebody_waits()) < CALM or due is None:
            return None
        return max(due, min(plan.next_due or now + AT_LEAST_EVERY, now + AT_LEAST_EVERY))

    def _somebody_waits(self) -> bool:
        return any(not record.value.spec.node_name for record in self._world.server.records(kinds.POD))
