"""A day in 40 minutes: services that rise and fall, some of them at night, on spot that EC2 takes back now and then."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import cos, pi
from random import Random
from typing import Any, Final

from benchmarks.clusters import pod_sizes
from benchmarks.race.sizes import Size
from benchmarks.race.stage import Stage, Step
from tests.worlds import deployment

DAY_SECONDS: Final = 2400.0
STEP_SECONDS: Final = 30.0
SERVICES: Final = 16
#: One service in four has its height at midnight, the others at noon.
NIGHT_OWLS: Final = 4
LEAST, MOST = 5, 40
#: When EC2 takes back spot instances, how many of them, and when the most used type is out of stock and back again.
RECLAIMS: Final = (600.0, 1100.0, 1500.0)
RECLAIMED: Final = 0.1
SOLD_OUT, IN_STOCK = 900.0, 1200.0


def day(size: Size, dice: Random) -> Iterator[Step]:
    """The day from midnight to midnight."""
    yield 0.0, partial(Stage.apply, manifests=_services(size, dice))
    now = STEP_SECONDS
    while now < DAY_SECONDS:
        for number in range(SERVICES):
            yield now, partial(Stage.scale, name=f"day{number}", replicas=size(replicas(number, now)))
        now += STEP_SECONDS
    yield from ((at, partial(Stage.reclaim, share=RECLAIMED)) for at in RECLAIMS)
    yield SOLD_OUT, Stage.sell_out
    yield IN_STOCK, Stage.restock


def replicas(number: int, second: float) -> int:
    """The pods of a service at an instant of the day, in a whole load."""
    height = (1 - cos(2 * pi * second / DAY_SECONDS)) / 2
    if number % NIGHT_OWLS == 0:
        height = 1 - height
    return round(LEAST + (MOST - LEAST) * height)


def _services(size: Size, dice: Random) -> list[dict[str, Any]]:
    return [
        deployment(f"day{number}", {"replicas": size(replicas(number, 0.0)), "cpu": f"{cpu}m", "memory": f"{memory}Mi"})
        for number, (cpu, memory) in enumerate(pod_sizes(SERVICES, dice))
    ]
