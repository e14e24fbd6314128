"""Run every verb in every format on each Python, with pinned and with the newest dependencies; print the matrix.

    python -m tests.lanes [--python 3.12] [--dependencies newest]

1 when an output is not of its format, an exit code is wrong, or a Python is missing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.table import aligned
from tests.lanes.cases import CASES, UNANSWERED, written
from tests.lanes.lane import NEWEST, PINNED, PYTHONS, Lane, LaneMissing


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lanes", description="Clean output in every lane.")
    parser.add_argument("--python", action="append", choices=PYTHONS, help="repeatable; all by default")
    parser.add_argument("--dependencies", action="append", choices=(PINNED, NEWEST), help="repeatable; both by default")
    chosen = parser.parse_args()
    lanes = [Lane(p, d) for p in chosen.python or PYTHONS for d in chosen.dependencies or (PINNED, NEWEST)]
    wrong: list[str] = []
    columns = [_column(lane, wrong) for lane in lanes]
    rows = [["verb", *(lane.name for lane in lanes)]]
    rows += [[case.name, *cells] for case, cells in zip((*CASES, *UNANSWERED), zip(*columns, strict=True), strict=True)]
    print(aligned(rows))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


def _column(lane: Lane, wrong: list[str]) -> list[str]:
    """`ok` or `WRONG` for each case, what is wrong added to a list."""
    cells: list[str] = []
    with TemporaryDirectory() as temporary:
        folder = written(Path(temporary))
        for case in (*CASES, *UNANSWERED):
            try:
                problem = lane.run(case, folder)
            except LaneMissing as missing:
                wrong.append(f"{lane.name}: {missing}")
                return ["missing"] * (len(CASES) + len(UNANSWERED))
            cells.append("WRONG" if problem else "ok")
            if problem:
                wrong.append(f"{lane.name}: {case.name}: {problem}")
    return cells


if __name__ == "__main__":
    sys.exit(main())
