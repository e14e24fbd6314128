"""Both adapters of the Kube port, each with a cluster behind it: the sandbox's world and the real control plane."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from reconciler.ports import Kube
from reconciler.sandbox.weather import Weather
from reconciler.sandbox.world import World

#: A controller manager forgets the pods of a deleted node after 40 to 60 seconds.
SECONDS = 90.0


class Cluster(Protocol):
    """A cluster with somebody in it who schedules and runs pods."""

    kube: Kube

    def eventually(self, holds: Callable[[], bool]) -> None:
        """Let the cluster live until this is so; fail when it does not come true."""
        ...

    def old_version(self) -> str:
        """A resource version from which nobody can watch any more."""
        ...


class SandboxCluster:
    """The sandbox's world."""

    def __init__(self) -> None:
        self._world = World(weather=Weather(ready_seconds=0.5, pod_start_seconds=0.3, pod_stop_seconds=0.3))
        self.kube: Kube = self._world.kube

    def eventually(self, holds: Callable[[], bool]) -> None:
        self._world.run(None, timedelta(seconds=SECONDS), stop_when=holds)
        assert holds(), "did not come true in time"

    def old_version(self) -> str:
        self._world.server.compact()
        return "1"


class RealCluster:
    """The control plane of the cluster tests, seen through the real adapter."""

    def __init__(self, kube: Kube) -> None:
        self.kube = kube

    def eventually(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not holds():
            assert time.monotonic() < deadline, "did not come true in time"
            time.sleep(0.1)

    def old_version(self) -> str:
        return "1"
