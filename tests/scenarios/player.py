"""The controller in a scenario's world, with the simulation's invariants at its shoulder: they are looked at after each
of its looks. A world in which nothing happens is passed through quickly (`reconciler/kerf/sandbox/calm.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from kerf.model.plan import INTERNAL_ERROR, Plan
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.runtime.controller import Controller
from kerf.runtime.parts import Parts
from kerf.sandbox.calm import Calm
from kerf.sandbox.world import World
from tests.simulation.chaos import Proposals, bugs
from tests.simulation.evictions import Evictions
from tests.simulation.invariants import Invariants
from tests.simulation.trouble import Trouble


class Player:
    """See the module. `looks` are asked after each look, too, and raise what they find."""

    def __init__(self, world: World, trouble: Trouble, settings: Settings) -> None:
        self.looks: list[Callable[[], None]] = []
        #: What was not done and why, the latest of each subject.
        self.refusals: dict[str, str] = {}
        self.invariants = Invariants(world, trouble, settings)
        self.evictions = Evictions(world, lambda: self.invariants.acting > 0)
        self._world, self._settings = world, settings
        self._calm = Calm(world)
        self._later: datetime | None = None
        self.restart()

    def restart(self) -> None:
        """Another controller takes over that remembers nothing."""
        world, proposer = self._world, Proposals()
        self._controller = Controller(world.ports, Parts(proposer=proposer), settings=self._settings, inline=True)
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
        self._later = self._calm.until(plan, self._controller.next_due)
        for look in self.looks:
            look()
        return plan
