"""Many seeds, or one, or a world from a file, beside the kube-scheduler's plugins.

python -m tests.oracle --seeds 300                 # seeds 0 ... 299, and the table of features
python -m tests.oracle --seed 17                   # one seed: each difference, and the smallest world that has it
python -m tests.oracle --world found.json          # a world from a file
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.differential.draft import Json
from tests.differential.shrink import shrunk
from tests.oracle.binaries import OracleUnavailable
from tests.oracle.campaign import campaign, faults, kinds, sorted_out, table
from tests.oracle.client import Oracle
from tests.oracle.compare import compare
from tests.oracle.difference import Difference
from tests.oracle.sandbox import pairs
from tests.oracle.worlds import drawn, world_of


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when there is no unexplained difference; 1 when there is one, or when there is no oracle."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description="Beside the kube-scheduler's plugins.")
    parser.add_argument("--seeds", type=int, default=300, help="number of seeds (default 300)")
    parser.add_argument("--start", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1), help="number of processes")
    parser.add_argument("--seed", type=int, help="this seed alone, in full")
    parser.add_argument("--kind", default="", help="with --seed: only differences of this kind")
    parser.add_argument("--world", type=Path, help="a world from a file")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.seed is None and chosen.world is None:
            Oracle.started().close()
            return _many(range(chosen.start, chosen.start + chosen.seeds), chosen.workers)
        with Oracle.started() as oracle:
            if chosen.world is not None:
                return _one(json.loads(chosen.world.read_text()), oracle, chosen.kind)
            print(f"seed {chosen.seed}: {', '.join(map(str, drawn(chosen.seed)))}")
            return _one(world_of(chosen.seed), oracle, chosen.kind)
    except OracleUnavailable as missing:
        print(missing, file=sys.stderr)
        return 1


def _many(seeds: range, workers: int) -> int:
    found = []
    for one in campaign(seeds, workers):
        found.append(one)
        for difference in one.unexplained[:1]:
            print(f"seed {one.seed}: {difference}", flush=True)
    wrong = list(faults(found))
    print("\n".join(["", *table(found), *kinds(found), *wrong]))
    return 1 if wrong else 0


def _one(world: Json, oracle: Oracle, kind: str) -> int:
    found = compare(world, oracle)
    for difference in pairs(world, oracle):
        print(difference)
    wanted = [one for one in found.differences if kind in one.kind]
    unexplained = sorted_out(found)[2]
    shown = set[str]()
    for difference in wanted:
        print(difference)
    for difference in sorted(wanted, key=lambda one: one not in unexplained):
        if difference.kind not in shown:
            shown.add(difference.kind)
            alone = difference in unexplained
            smaller = shrunk(world, lambda some, like=difference, alone=alone: _has(some, oracle, like, alone))  # type: ignore[misc]
            print(f"\nThe smallest world with {difference.kind}:\n{json.dumps(smaller, indent=1)}")
            for one in compare(smaller, oracle).differences:
                print(one)
    return 1 if unexplained else 0


def _has(world: Json, oracle: Oracle, like: Difference, unexplained: bool) -> bool:
    """Whether the world has a difference of the same kind; where that one is unexplained, one that nothing explains."""
    found = compare(world, oracle)
    return any(one.kind == like.kind for one in (sorted_out(found)[2] if unexplained else found.differences))


if __name__ == "__main__":
    sys.exit(main())
