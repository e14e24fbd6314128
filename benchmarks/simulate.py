"""Scenarios of `kerf simulate`: CPU time per run and per simulated day, and the time of 1,000 runs on two processors.

The seeds of a scenario run in two processes, and the first ones again in one: the results must be equal.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from benchmarks.table import aligned
from kerf.cli.verbs.simulation import repeating
from kerf.cli.verbs.simulation.loading import File
from kerf.cli.verbs.simulation.repeating import Job
from kerf.simulating.world import Case
from tests.sources import ROOT

FOLDER: Final = ROOT / "manifests" / "simulate"
HEAD: Final = ("scenario", "simulated", "CPU s a run", "CPU s a simulated day", "1,000 runs on 2 processors, min")
_PROCESSES: Final = 2
_RUNS: Final = 8
_AGAIN: Final = 2
_EXTRAPOLATED: Final = 1000
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Measured:
    """The CPU seconds of one run on average, over so much simulated time."""

    scenario: str
    simulated: timedelta
    cpu_seconds: float

    @property
    def a_day(self) -> float:
        """CPU seconds of a simulated day."""
        return self.cpu_seconds * (_DAY / self.simulated)

    @property
    def many(self) -> timedelta:
        """The time of 1,000 runs on two processors that do nothing else."""
        return timedelta(seconds=self.cpu_seconds * _EXTRAPOLATED / _PROCESSES)


def scenarios() -> list[Path]:
    """The scenario files of the examples, by name."""
    return [path for path in sorted(FOLDER.glob("*.yaml")) if "\nduration:" in path.read_text()]


def measure(path: Path, runs: int) -> Measured:
    """Run the seeds of a scenario in two processes. Raises ValueError when a seed has another result in one."""
    case = File(str(path)).case()
    jobs = [Job(0, seed) for seed in range(runs)]
    before = os.times()
    found = list(repeating.run([case], jobs, _PROCESSES))
    after = os.times()
    own = after.user + after.system - before.user - before.system
    theirs = after.children_user + after.children_system - before.children_user - before.children_system
    _compare(path, case, found)
    return Measured(path.stem, case.scenario.duration.value, (own + theirs) / runs)


def _compare(path: Path, case: Case, found: Sequence[object]) -> None:
    jobs = [Job(0, seed) for seed in range(min(_AGAIN, len(found)))]
    for job, alone in zip(jobs, repeating.run([case], jobs, 1), strict=True):
        if alone != found[job.seed]:
            raise ValueError(f"{path}: seed {job.seed} has another result in a process of its own")


def lines(found: Sequence[Measured]) -> list[Sequence[str]]:
    """A table's lines, the head first."""
    return [HEAD, *(_cells(one) for one in found)]


def _cells(one: Measured) -> tuple[str, ...]:
    hours, minutes = one.simulated / timedelta(hours=1), one.many / timedelta(minutes=1)
    return one.scenario, f"{hours:g} h", f"{one.cpu_seconds:.2f}", f"{one.a_day:.1f}", f"{minutes:.1f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulate", description="The cost of simulated time.")
    parser.add_argument("scenarios", nargs="*", type=Path, help="scenario files (the examples)")
    parser.add_argument("--runs", type=int, default=_RUNS, help="runs of each (default %(default)s)")
    chosen = parser.parse_args(arguments)
    print(aligned(lines([measure(path, chosen.runs) for path in chosen.scenarios or scenarios()])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
