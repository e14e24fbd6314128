"""The referee on devices: answers of the scheduler with one grant made wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kerf.scheduling.solve import Solution
from tests.referee import violations
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import dra_world as d
from tests.unit.scheduling import worlds as w

RICH = c.machine("rich", 8, 8, pods=50)
TWO = [*(d.claim(f"c{i}") for i in range(2)), *(d.pod(f"p{i}", f"c{i}") for i in range(2))]


def on_new(done: Solution, change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Solution:
    (node,) = done.new_nodes
    return replace(done, new_nodes=(replace(node, devices=change(node.devices)),))


def words(done: c.Pass, wrong: Solution) -> str:
    return "; ".join(map(str, violations(done.snapshot, done.pods, wrong)))


def test_a_device_that_a_new_node_gives_twice() -> None:
    done = d.run(d.classes(), TWO, catalogue=(d.gpus(RICH, 2),))
    wrong = on_new(done.solution, lambda given: (given[0], replace(given[1], device=given[0].device)))
    assert "devices: ('gpu.example.com', 'gpus', 'gpu-0') of a new rich is had by" in words(done, wrong)


def test_a_request_without_a_device() -> None:
    done = d.run(d.classes(), TWO, catalogue=(d.gpus(RICH, 2),))
    wrong = on_new(done.solution, lambda given: given[:1])
    assert words(done, wrong) == "devices: default/p1 has no devices for default/c1/r on rich"


def test_a_device_that_somebody_holds() -> None:
    two = d.published("s", d.device("a"), d.device("b"), node="n")
    old = [d.pod("old", "held", node="n"), d.allocated("held", "s", "a", "old")]
    done = d.run(d.classes(), w.node("n"), two, old, d.claim("c"), d.pod("p", "c"), catalogue=(RICH,))
    (grant,) = done.solution.devices
    assert grant.device[2] == "b"
    wrong = replace(done.solution, devices=(replace(grant, device=(d.DRIVER, "s", "a")),))
    assert "('gpu.example.com', 's', 'a') of the cluster is had by" in words(done, wrong)


@pytest.mark.parametrize("other", ["a", "b"])
def test_more_of_a_device_than_it_has(other: str) -> None:
    """The amounts of one device, and a budget that two share."""
    capacity = {"memory": {"value": "10"}}
    consumes = [{"counterSet": "board", "counters": {"n": {"value": "2"}}}]
    more: dict[str, Any] = {"allowMultipleAllocations": True, "capacity": capacity, "consumesCounters": consumes}
    budget = [{"name": "board", "counters": {"n": {"value": "3"}}}]
    types = (d.offering(RICH, d.pool_of("gpus", d.device("a", **more), d.device("b", **more), sharedCounters=budget)),)
    asked = d.request(capacity={"requests": {"memory": "5"}})
    done = d.run(d.classes(), [d.claim(f"c{i}", asked) for i in range(2)], TWO[2:], catalogue=types)
    assert done.sizes() == [2]

    def worse(given: tuple[Any, ...]) -> tuple[Any, ...]:
        much = {"memory": given[0].amounts["memory"] * 2}
        return given[0], replace(given[1], device=(d.DRIVER, "gpus", other), amounts=much)

    assert "has not so much" in words(done, on_new(done.solution, worse))
