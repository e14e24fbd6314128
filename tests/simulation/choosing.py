"""Which seeds of chaos `make test` plays: few that make plans say everything that many make them say.

    python -m tests.simulation.choosing --seeds 300 --most 60

prints the seeds, each chosen as the one that for its CPU time adds most to those before it: things that plans have not
said yet, then things said by few of the chosen; and what only other seeds make plans say.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Mapping, Set
from concurrent.futures import ProcessPoolExecutor

from tests.aws_calls import sandbox
from tests.simulation.chaos import play
from tests.simulation.scripts import script

#: A thing is worth so much less for each chosen seed that has said it.
_LESS = 4


def said(seed: int) -> tuple[int, frozenset[str], float]:
    """The seed, what the plans of its life said, and the CPU seconds that it took."""
    sandbox.install()
    began = os.times()
    outcome = play(script(seed))
    ended = os.times()
    return seed, frozenset(outcome.said), ended.user + ended.system - began.user - began.system


def chosen(found: Mapping[int, Set[str]], seconds: Mapping[int, float], most: int) -> list[int]:
    """The best seeds for the CPU seconds that they take, at most so many, in the order in which they were chosen; ties
    go to the smaller one."""
    counts, left, taken = Counter[str](), dict(found), list[int]()
    while left and len(taken) < most:
        worth = {
            seed: sum(_LESS ** -counts[thing] for thing in things) / seconds[seed] for seed, things in left.items()
        }
        best = min(left, key=lambda seed: (-worth[seed], seed))
        if not worth[best]:
            break
        counts.update(left.pop(best))
        taken.append(best)
    return taken


def main() -> int:
    """Print the seeds and what they leave out."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.choosing", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--most", type=int, default=60)
    given = parser.parse_args()
    with ProcessPoolExecutor() as pool:
        rows = list(pool.map(said, range(given.seeds)))
    found, seconds = {seed: things for seed, things, _ in rows}, {seed: took for seed, _, took in rows}
    taken = chosen(found, seconds, given.most)
    every, covered = frozenset().union(*found.values()), frozenset().union(*(found[seed] for seed in taken))
    print(tuple(sorted(taken)))
    print(
        f"{len(covered)} of {len(every)} things; {sum(seconds[s] for s in taken):.0f} of {sum(seconds.values()):.0f} s"
    )
    print("\n".join(f"left out: {thing}" for thing in sorted(every - covered)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
