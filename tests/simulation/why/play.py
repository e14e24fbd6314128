"""A world and a controller that looks at most every few seconds: as much happens, in less time of the machine."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from kerf.sandbox.world import World
from tests.simulation.stage import SETTINGS, Play
from tests.simulation.why.worlds import Manifest

_BETWEEN: Final = timedelta(seconds=3)


class Unbroken(Exception):
    """The draw of a world is no use: not all is well at first, or all is well still when something is broken."""


class SlowPlay(Play):
    """See the module."""

    def __init__(self, world: World) -> None:
        super().__init__(world, settings=SETTINGS)
        self._looks_at: datetime | None = None
        self._missed = False

    @property
    def next_due(self) -> datetime | None:
        if self._looks_at is not None and self._missed:
            return self._looks_at
        due = self.controller.next_due
        return due if due is None or self._looks_at is None else max(due, self._looks_at)

    def tick(self) -> None:
        """Look, unless that was done a moment ago."""
        now = self.world.clock.now()
        self._missed = self._looks_at is not None and now < self._looks_at
        if not self._missed:
            self.controller.tick()
            self._looks_at = now + _BETWEEN

    def until(self, so: Callable[[], bool], *, minutes: float) -> bool:
        """Live until something is so, for so long at most; whether it is so."""
        self.world.run(self, timedelta(minutes=minutes), stop_when=so)
        return so()

    def wait(self, **time: float) -> None:
        """Live for a while."""
        self.world.run(self, timedelta(**time))

    def pods(self) -> list[Manifest]:
        """The pods that do not go."""
        return [pod for pod in self.world.objects("Pod") if "deletionTimestamp" not in pod["metadata"]]

    def all_run(self) -> bool:
        """Whether all pods run."""
        found = self.pods()
        return bool(found) and all(pod.get("status", {}).get("phase") == "Running" for pod in found)
