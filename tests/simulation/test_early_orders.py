"""Pods that keep coming for seconds: the first full nodes are ordered before the batch closes, and nothing is bought
twice when the controller restarts between that order and the close."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.settings import Settings
from kerf.runtime.controller import Controller
from kerf.sandbox.world import World
from tests.worlds import deployment, node_class, node_pool

#: Four of them fill a c5.xlarge: 3920m of CPU, 6.2 GiB of memory.
POD = {"cpu": "970m", "memory": "1500Mi"}
TYPES = ("c5.xlarge",)
FIRST, MORE = 30, 5


class Growing:
    """A world to which pods come, five more every half second; `ordered` is when each NodeClaim came."""

    def __init__(self, *, early: bool) -> None:
        self.settings = Settings("sandbox", early_orders=early)
        self.world = World(seed=1, types=TYPES)
        self.world.apply(node_class())
        self.world.apply(node_pool("general", {"disruption": {"consolidateAfter": "Never"}}))
        self.ordered = dict[str, datetime]()
        self.world.server.listen(self._heard)
        self.controller = self.restarted()
        self.world.run(self.controller, until=timedelta(seconds=30))
        self.began = self.world.clock.now()

    def restarted(self) -> Controller:
        return Controller(self.world.ports, settings=self.settings, inline=True)

    def grow(self, steps: int, first: int = FIRST) -> None:
        for step in range(steps):
            self.world.apply(deployment("web", {"replicas": first + step * MORE, **POD}))
            self.world.run(self.controller, until=timedelta(milliseconds=500))

    def _heard(self, old: Any, new: Any) -> None:
        if old is None and new is not None and new.kind is kinds.NODE_CLAIM:
            self.ordered[new.value.name] = self.world.clock.now()

    @property
    def waited(self) -> list[float]:
        return sorted((at - self.began).total_seconds() for at in self.ordered.values())

    @property
    def running(self) -> int:
        return sum(pod.get("status", {}).get("phase") == "Running" for pod in self.world.objects("Pod"))


def test_full_nodes_are_ordered_while_pods_keep_coming() -> None:
    one, other = Growing(early=True), Growing(early=False)
    for growing in (one, other):
        growing.grow(6)
    assert one.waited
    assert one.waited[0] <= 1.5
    assert other.waited == []
    for growing in (one, other):
        growing.world.run(growing.controller, until=timedelta(minutes=10))
        assert growing.running == FIRST + 5 * MORE
    assert len(one.ordered) == len(other.ordered)


@pytest.mark.parametrize("steps", [3, 5])
def test_a_restart_before_the_close_buys_nothing_twice(steps: int) -> None:
    growing = Growing(early=True)
    growing.grow(steps)
    assert growing.ordered
    growing.controller = growing.restarted()
    growing.grow(6 - steps, FIRST + steps * MORE)
    growing.world.run(growing.controller, until=timedelta(minutes=10))
    pods = FIRST + 5 * MORE
    assert growing.running == pods
    assert len(growing.ordered) == -(-pods // 4)
