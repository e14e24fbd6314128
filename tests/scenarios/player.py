"""The controller in a scenario's world, with the simulation's invariants at its shoulder: they are looked at after each
of its looks.

A world in which nothing happens is passed through quickly. The controller asks AWS every few seconds for news, and
thinks about savings; where nothing has changed for some minutes, nothing is to be done and no pod waits, the next look
is when its plan says that something becomes due. Whatever changes wakes it at once, as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from reconciler.model import kinds
from reconciler.model.plan import INTERNAL_ERROR, Plan, ValidateClass
from reconciler.model.settings import Settings
from reconciler.model.snapshot import Snapshot
from reconciler.runtime.controller import Controller
from reconciler.sandbox.world import World
from tests.simulation.chaos import Proposals, bugs
from tests.simulation.evictions import Evictions
from tests.simulation.invariants import Invariants
from tests.simulation.trouble import Trouble

#: After so long without a change a world counts as calm; and what is looked at all the same, this often.
CALM, AT_LEAST_EVERY = timedelta(minutes=5), timedelta(hours=3)


class Player:
    """See the module. `looks` are asked after each look, too, and raise what they find."""

    def __init__(self, world: World, trouble: Trouble, settings: Settings) -> None:
        self.looks: list[Callable[[], None]] = []
        #: What was not done and why, the latest of each subject.
        self.refusals: dict[str, str] = {}
        self.invariants = Invariants(world, trouble, settings)
        self.evictions = Evictions(world, lambda: self.invariants.acting > 0)
        self._world, self._settings = world, settings
        self._changed_at, self._seen = world.clock.now(), (0, 0)
        self._later: datetime | None = None
        self.restart()

    def restart(self) -> None:
        """Another controller takes over that remembers nothing."""
        world, proposer = self._world, Proposals()
        self._controller = Controller(
            kube=world.kube,
            cloud=world.cloud,
            clock=world.clock,
            settings=self._settings,
            inline=True,
            proposer=proposer,
        )
        proposer.inbox = self._controller.inbox

    def snapshot(self) -> Snapshot:
        """What the controller sees now."""
        return self._controller.state.snapshot(self._world.clock.now())

    # --- as the world's loop wants it -----------------------------------------------------------------------------
    @property
    def next_due(self) -> datetime | None:
        return self._later or self._controller.next_due

    def tick(self) -> Plan:
        self.invariants.acting = 1
        try:
            plan = self._controller.tick()
        finally:
            self.invariants.acting = 0
        self.invariants.broken(f"bug: an error in {where}" for where in bugs(self._controller))
        self.invariants.broken(f"bug: {r}" for r in plan.refusals if r.reason.code == INTERNAL_ERROR)
        self.invariants.check()
        self.refusals.update({refusal.subject: str(refusal.reason) for refusal in plan.refusals})
        self._later = self._unless_calm(plan)
        for look in self.looks:
            look()
        return plan

    def _unless_calm(self, plan: Plan) -> datetime | None:
        """When to look again in a calm world; None in one that is not."""
        now, changes = self._world.clock.now(), (self._world.server.loud_changes, self._world.ec2.changes)
        acts = any(not isinstance(action, ValidateClass) for action in plan.actions)  # a dry run changes nothing
        if changes != self._seen or acts or self._somebody_waits():
            self._changed_at, self._seen = now, changes
        if now - self._changed_at < CALM or self._controller.next_due is None:
            return None
        return max(self._controller.next_due, min(plan.next_due or now + AT_LEAST_EVERY, now + AT_LEAST_EVERY))

    def _somebody_waits(self) -> bool:
        return any(not record.value.spec.node_name for record in self._world.server.records(kinds.POD))
