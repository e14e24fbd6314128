"""The loop, and its watches, when the time of day is set back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from kerf.model import kinds
from kerf.model.memory import Memory
from kerf.model.plan import Plan
from kerf.model.settings import FeatureGates, Settings
from kerf.model.snapshot import Snapshot
from kerf.ports import Listing, Ports, Unavailable
from kerf.runtime.controller import AT_LEAST_EVERY, Controller
from kerf.runtime.inbox import Inbox
from kerf.runtime.parts import Parts
from kerf.sandbox.world import World
from tests.unit.runtime.clocks import SetBack


class Waits(Inbox):
    """Notes how long the loop would wait for news, and ends it instead."""

    def __init__(self, stop: threading.Event) -> None:
        super().__init__()
        self.stop, self.waited = stop, list[float]()

    def wait(self, seconds: float) -> bool:
        self.waited.append(seconds)
        self.stop.set()
        return False


def test_the_loop_does_not_wait_longer_for_a_clock_that_is_set_back_in_a_look() -> None:
    world, clock, inbox = World(), SetBack(), Waits(threading.Event())

    def decide(snapshot: Snapshot, memory: Memory) -> Plan:
        clock.back(60)
        return Plan()

    settings = Settings(cluster_name="sandbox")
    loop = Controller(
        Ports(kube=world.kube, cloud=world.cloud, clock=clock),
        Parts(decide=decide, inbox=inbox),
        settings=settings,
        inline=True,
    )
    loop.run(inbox.stop)
    assert inbox.waited
    assert max(inbox.waited) <= AT_LEAST_EVERY.total_seconds()


class Reluctant:
    """A Kube that refuses the first list of each kind, and has nothing to say."""

    def __init__(self) -> None:
        self.refused, self.listed, self.open = set[str](), set[str](), True

    def list(self, kind: kinds.Kind, **selectors: str) -> Listing:
        if kind.name not in self.refused:
            self.refused.add(kind.name)
            raise Unavailable("not now")
        self.listed.add(kind.name)
        return Listing((), "1")

    def watch(self, kind: kinds.Kind, resource_version: str) -> Reluctant:
        return self

    def read(self, timeout_seconds: float) -> tuple[()]:
        time.sleep(0.01)
        return ()

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("gates", [FeatureGates(), FeatureGates(node_overlay=True)])
def test_a_list_that_failed_is_not_put_off_by_a_clock_that_is_set_back(gates: FeatureGates) -> None:
    """Of any kind; one behind a feature gate is not even asked for while that is closed."""
    world, clock, kube = World(), SetBack(), Reluctant()
    settings = Settings(cluster_name="sandbox", gates=gates)
    loop = Controller(Ports(kube=kube, cloud=world.cloud, clock=clock), settings=settings)  # type: ignore[arg-type]
    every = {kind.name for kind in kinds.WATCHED} | ({"NodeOverlay"} if gates.node_overlay else set())
    loop.start()
    try:
        assert _soon(lambda: kube.refused == every)
        time.sleep(0.1)  # they wait now, each half a second at least
        clock.back(60)
        assert _soon(lambda: kube.listed == every)
    finally:
        loop.close()


def _soon(so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 5
    while not so() and time.monotonic() < deadline:
        time.sleep(0.01)
    return so()
