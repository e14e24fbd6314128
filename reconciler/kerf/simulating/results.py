"""The result of a run, as values. Money is in US dollars."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Verdict:
    """One assertion and its result. Times are since the start.

    Attributes:
        at: the time of the first violation.
        reasons: explain the violation, of several the worst.
        worst_at: the time of the worst violation, if it is a later one.
    """

    assertion: str
    passed: bool
    message: str
    at: timedelta | None = None
    reasons: tuple[str, ...] = ()
    worst_at: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """The number of running instances and their price per hour from a time on."""

    at: timedelta
    nodes: int
    per_hour: float


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a run after its warm-up.

    `slowest` is the longest time from the creation of a pod until it ran; `unscheduled` counts the pods that did not
    run at the end; `disruptions` counts the nodes whose deletion started.
    """

    cost: float
    nodes_most: int
    nodes_at_end: int
    launched: int
    evictions: int
    disruptions: int
    pods_started: int
    unscheduled: int
    slowest: timedelta


@dataclass(frozen=True, slots=True)
class Result:
    """One run of a scenario with a seed. `warnings` name weather and assertions that had nothing to act on."""

    scenario: str
    seed: int
    duration: timedelta
    figures: Figures
    verdicts: tuple[Verdict, ...]
    series: tuple[Point, ...]
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return all(one.passed for one in self.verdicts)
