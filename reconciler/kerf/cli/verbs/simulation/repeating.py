"""Many runs of scenarios in parallel processes. Each has a world of its own: its result is the same in any process."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Final

from kerf.cli.arguments import Mistake
from kerf.sandbox.world import Unsettled
from kerf.simulating.playing import BROKEN, Play, broken
from kerf.simulating.reading import BadScenario
from kerf.simulating.results import Result
from kerf.simulating.world import Case


@dataclass(frozen=True, slots=True)
class Job:
    """One run: the index of its case, and its seed."""

    case: int
    seed: int


#: A run makes many values that live until its end.
_RARELY: Final = 50_000
#: The cases of a worker process, which it has from its parent.
_CASES: Final[list[Case]] = []


def shard(jobs: Sequence[Job], index: int, count: int) -> list[Job]:
    """The jobs of one of `count` machines, from 0."""
    return list(jobs[index::count])


def run(cases: Sequence[Case], jobs: Sequence[Job], processes: int) -> Iterator[Result | BadScenario]:
    """The results in the order of the jobs; an error in the place of a result."""
    _begin(cases)
    if processes <= 1 or len(jobs) <= 1:
        yield from map(_run, jobs)
        return
    fork = get_context("fork")  # a case need not be copied, and no module is imported again
    with ProcessPoolExecutor(min(processes, len(jobs)), fork, _begin, (cases,)) as pool:
        try:
            yield from pool.map(_run, jobs)
        except BrokenProcessPool as error:
            raise Mistake(
                "a process of the runs was killed, perhaps for want of memory; give a lower --jobs"
            ) from error


def processes() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _begin(cases: Sequence[Case]) -> None:
    _CASES[:] = cases
    gc.freeze()  # values of the parent live until the end
    gc.set_threshold(_RARELY)


def _run(job: Job) -> Result | BadScenario:
    try:
        found: Result | BadScenario = Play(_CASES[job.case], job.seed).run()
    except BadScenario as error:
        found = error
    except Unsettled as error:
        found = BadScenario((), f"seed {job.seed}: the simulation does not become stable: {error}")
    except BROKEN as error:
        found = BadScenario((), f"seed {job.seed}: {broken(error)}")
    gc.collect()  # a world refers to itself; the collector may be off in a command
    return found
