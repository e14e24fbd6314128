"""What the search for a cheaper answer takes, and what it gives: a second of the setting should be about a second.

    python -m benchmarks.searching

The controller counts the search in steps, so that the same pods get the same answer on any machine; how many steps a
second of `IMPROVE_SECONDS` stands for (`reconciler/kerf/scheduling/solve.py`) is taken from this table. The search ends
early where it finds nothing more, and few pods never get all of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks import sides
from benchmarks.comparison import CASES, Case
from benchmarks.table import aligned

SETTINGS: Final = (0.5, 1.0, 2.0, 4.0)
_HEAD: Final = ("workload", "setting", "search, s", "search, CPU s", "CPU s by setting", "nodes", "ratio")


def lines(cases: Sequence[Case], settings: Sequence[float], folder: Path) -> Iterator[tuple[str, ...]]:
    """A line for each case and setting, after one without any search."""
    yield _HEAD
    for case in cases:
        inputs = sides.write(folder, case.kind, case.count, case.catalogue, case.capacity_type)
        without = sides.ours(inputs, judged=False)
        yield (case.name, "0", "-", "-", "-", f"{without.nodes:,}", f"{without.ratio or 0:.4f}")
        for setting in settings:
            found = sides.ours(inputs, improve=setting, runs=1, judged=False)
            more, busy = found.seconds - without.seconds, found.cpu_seconds - without.cpu_seconds
            told = f"{more:.2f}", f"{busy:.2f}", f"{busy / setting:.2f}"
            yield (case.name, f"{setting:g}", *told, f"{found.nodes:,}", f"{found.ratio or 0:.4f}")


def main() -> int:
    with TemporaryDirectory() as name:
        print(aligned(list(lines([case for case in CASES if case.count <= 10_000], SETTINGS, Path(name)))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
