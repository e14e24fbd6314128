"""The spread of figures over many runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from kerf.simulating.results import Figures


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure of several runs. `p95` is the least value that 95 % of the runs do not exceed (nearest rank)."""

    least: float
    median: float
    p95: float
    most: float


#: The figures of a summary, by their names in JSON; durations are seconds.
READ: Final[Sequence[tuple[str, Callable[[Figures], float]]]] = (
    ("cost", lambda one: one.cost),
    ("nodes_most", lambda one: one.nodes_most),
    ("evictions", lambda one: one.evictions),
    ("disruptions", lambda one: one.disruptions),
    ("slowest", lambda one: one.slowest.total_seconds()),
    ("unscheduled", lambda one: one.unscheduled),
)


def spread(values: Sequence[float]) -> Spread:
    """The spread of at least one value."""
    ordered = sorted(values)
    return Spread(ordered[0], median(ordered), ordered[math.ceil(len(ordered) * 0.95) - 1], ordered[-1])


def spreads(figures: Sequence[Figures]) -> dict[str, Spread]:
    """The spread of each figure."""
    return {name: spread([read(one) for one in figures]) for name, read in READ}
