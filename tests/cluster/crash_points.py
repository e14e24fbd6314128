"""The controller dies at one of its writes, on real parts, and its successor must reach the same end.

A *run* has two halves (crash_runs.py). A proxy counts the controller's mutating calls to the API server and AWS in
each half, and at one of them it kills the process (SIGKILL): before the server sees the call, or after it took effect
but before the answer is delivered. The process that is started in its place carries on.

`python -m tests.cluster.crash_points` tries every call of both halves both ways and prints each (`make crash-points`):
of nodes that come and go, and of nodes that are replaced. The number of calls differs a little from run to run (status
patches meet or miss each other): "call 17" is the 17th of that very run, what it was is printed, and the search ends
with the first run that makes fewer calls.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

from .control_plane import ControlPlane
from .crash_killer import Point
from .crash_runs import Outcome, Replacing, Runs, Scaling, Stage, stage

#: Kinds of runs, each as what it takes to begin and to end.
KINDS: Final[dict[str, Callable[[Stage], AbstractContextManager[Runs]]]] = {
    "scaling": lambda on: nullcontext(Scaling(on)),
    "replacing": Replacing,
}


def every_point(runs: Runs, share: int = 0, shares: int = 1) -> Iterator[Outcome]:
    """Runs that die at call 1 of each half, before and after it, then at call 2, …; of `shares`, every so manieth.

    The last one is not among them, in which there were no such calls any more; unless something was amiss in it.
    """
    for number in itertools.count(1 + share, shares):
        for after in (False, True):
            outcome = runs.run([Point(number, after)], [Point(number, after)])
            if outcome.struck or outcome.problems:
                print(_line(outcome), flush=True)
                yield outcome
            if not outcome.struck:
                return


def _line(outcome: Outcome) -> str:
    where = "; ".join(map(str, outcome.struck)) or "nobody died"
    return f"{outcome.seconds:5.1f} s  {'; '.join(outcome.problems) or 'green':<8} {where}"


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many points, of which kinds of calls, and how they went."""
    points = [point for outcome in outcomes for point in outcome.struck]
    red = sum(bool(outcome.problems) for outcome in outcomes)
    after = sum(point.after for point in points)
    kinds = Counter(point.struck for point in points)
    lines = [f"  {count:4} {kind}" for kind, count in sorted(kinds.items())]
    verdict = "all green" if not red else f"{red} of {len(outcomes)} runs NOT GREEN"
    total = f"{len(points)} points ({len(points) - after} before, {after} after) in {len(outcomes)} runs, {verdict}"
    return "\n".join([f"{len(kinds)} kinds of calls were hit:", *lines, total])


def _share(kind: str, share: int, shares: int) -> list[Outcome]:
    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane() as cluster,
        stage(cluster, Path(folder)) as on,
        KINDS[kind](on) as runs,
    ):
        return list(every_point(runs, share, shares))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=list(KINDS), help=f"of {', '.join(KINDS)}; by default all")
    parser.add_argument(
        "--shares", type=int, default=2, help="clusters side by side, each with its share of the points"
    )
    given = parser.parse_args()
    return max(_searched(kind, given.shares) for kind in given.kinds)


def _searched(kind: str, shares: int) -> int:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(shares, mp_context=context) as processes:
        parts = processes.map(_share, [kind] * shares, range(shares), [shares] * shares)
        outcomes = [outcome for part in parts for outcome in part]
    print(f"{kind}: {summary(outcomes)}")
    return 1 if not outcomes or any(outcome.problems for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
