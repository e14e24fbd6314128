"""The arithmetic of a run: waiting, orders, dollars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import ceil
from statistics import mean
from typing import Final

from benchmarks.race.records import Life, Machine, Run
from benchmarks.table import quantile

MINUTE: Final = 60.0
#: How often within a minute pods are counted for its bound.
SAMPLES: Final = 6
_HOUR: Final = 3600.0
_MILLIONTHS: Final = 1e6


# --- waiting --------------------------------------------------------------------------------------------------------
def waits(run: Run) -> list[float]:
    """Seconds from creation to Ready of each pod of the load; until the end of the run for one that is not Ready."""
    return [(run.seconds if one.ready is None else one.ready) - one.created for one in counted(run.lives)]


def counted(lives: Iterable[Life]) -> list[Life]:
    """Pods that were created since the beginning, but for those that went before they were Ready."""
    return [one for one in lives if one.created >= 0 and (one.ready is not None or one.gone is None)]


def never_ready(run: Run) -> int:
    """How many pods of the load are there in the end and have never been Ready."""
    return sum(one.ready is None for one in counted(run.lives))


def own_waits(run: Run) -> list[float]:
    """Seconds from a pod's condition Unschedulable to the answer of the CreateFleet that made its node, of each pod of
    the load that such a node was made for: the controller's own part of the waiting."""
    answered = {id_: order.answered for order in run.orders for id_ in order.instances}
    found = []
    for one in counted(run.lives):
        machine = machine_of(one, run.machines)
        at = None if machine is None else answered.get(machine.id)
        if one.unschedulable is not None and at is not None and at > one.unschedulable:
            found.append(at - one.unschedulable)
    return found


def machine_of(life: Life, machines: Sequence[Machine]) -> Machine | None:
    """The instance that a pod ran on: of those with the name of its node the latest that was launched before."""
    if life.ready is None:
        return None
    there = [one for one in machines if one.node == life.node and one.launched <= life.ready]
    return max(there, key=lambda one: one.launched, default=None)


def share(values: Sequence[float], part: float) -> float | None:
    """The quantile of the values, None when there are none."""
    return quantile(values, part) if values else None


# --- orders ---------------------------------------------------------------------------------------------------------
def first_and_last_order(run: Run) -> tuple[float, float] | None:
    """When the first and the last CreateFleet that made an instance came; None when none did."""
    asked = [one.asked for one in run.orders if one.instances and one.asked >= 0]
    return (min(asked), max(asked)) if asked else None


def nodes_at(run: Run, second: float) -> int:
    """How many instances there were."""
    return sum(one.launched <= second and (one.ended is None or one.ended > second) for one in run.machines)


# --- dollars --------------------------------------------------------------------------------------------------------
def dollars(run: Run) -> float:
    """What all instances cost from the beginning to the end, each for the time that it was there."""
    return sum(_cost(one, 0.0, run.seconds) for one in run.machines)


def dollars_by_minute(run: Run) -> list[float]:
    """The same, minute by minute; the last may be a part of one."""
    return [sum(_cost(one, *span) for one in run.machines) for span in _minutes(run.seconds)]


def bound_dollars(run: Run) -> float:
    """The least that nodes for the pods of each minute cost, added up."""
    return sum(bound_dollars_by_minute(run))


def bound_dollars_by_minute(run: Run) -> list[float]:
    """The same, minute by minute."""
    spans = zip(run.bounds, _minutes(run.seconds), strict=True)
    return [bound * (end - begin) / _HOUR / _MILLIONTHS for bound, (begin, end) in spans]


def _minutes(seconds: float) -> list[tuple[float, float]]:
    """When each minute begins and ends; the last may be a part of one."""
    return [(MINUTE * number, min(MINUTE * (number + 1), seconds)) for number in range(ceil(seconds / MINUTE))]


def _cost(machine: Machine, begin: float, end: float) -> float:
    last = end if machine.ended is None else min(machine.ended, end)
    return max(0.0, last - max(machine.launched, begin)) / _HOUR * machine.price / _MILLIONTHS


def bounds_by_minute(seconds: float, bound_at: Callable[[float], float]) -> list[float]:
    """The bound of each minute as the mean of some instants of it; in the unit of `bound_at`."""
    found = []
    for begin, end in _minutes(seconds):
        step = (end - begin) / SAMPLES
        found.append(mean(bound_at(begin + step * (at + 0.5)) for at in range(SAMPLES)))
    return found
