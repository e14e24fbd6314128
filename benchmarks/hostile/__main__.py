"""A table of hostile shapes: passes until all is placed or refused, the longest pass, memory; 1 when a bound is broken.

python -m benchmarks.hostile                              # all shapes, 10, 100, 400 and 2,000 objects
python -m benchmarks.hostile --number 400 "20 spreads"    # some of them
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

from benchmarks.hostile.shapes import SHAPES

NUMBERS: Final = (10, 100, 400, 2000)
#: The bounds: seconds of a pass, of all passes, until another namespace's pod has its node, until an interruption is
#: acted on; MiB above idle.
PASS_SECONDS: Final = 2.0
ALL_SECONDS: Final = 60.0
OTHER_SECONDS: Final = 15.0
INTERRUPTION_SECONDS: Final = 5.0
PEAK_MIB: Final = 400.0
_TIMEOUT_SECONDS: Final = 300


def measured(shape: str, number: int) -> dict[str, Any] | None:
    """The figures of one shape in a process of its own; None when it takes too long. Raises CalledProcessError."""
    command = [sys.executable, "-m", "benchmarks.hostile.measure", shape, str(number)]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def broken(figures: dict[str, Any]) -> list[str]:
    """The bounds that figures do not keep."""
    bounds = {
        "longest_seconds": PASS_SECONDS,
        "all_seconds": ALL_SECONDS,
        "other_seconds": OTHER_SECONDS,
        "interruption_seconds": INTERRUPTION_SECONDS,
        "peak_mib": PEAK_MIB,
        "left_over": 0,
    }
    return [name for name, bound in bounds.items() if figures[name] > bound]


def rows(shapes: Iterable[str], numbers: Iterable[int]) -> Iterator[tuple[str, bool]]:
    """A line for each shape and number, and whether it keeps all bounds."""
    yield (
        (
            f"{'shape':<32} {'objects':>7} {'passes':>6} {'pass s':>7} {'all s':>7} {'other s':>7} "
            f"{'spot s':>6} {'MiB':>6} {'served':>6} {'refused':>7}"
        ),
        True,
    )
    for shape in shapes:
        for number in numbers:
            found = measured(shape, number)
            if found is None:
                yield f"{shape:<32} {number:>7} took more than {_TIMEOUT_SECONDS} s", False
                continue
            over = broken(found)
            yield (
                (
                    f"{shape:<32} {number:>7} {found['passes']:>6} {found['longest_seconds']:>7.2f} "
                    f"{found['all_seconds']:>7.1f} {found['other_seconds']:>7.1f} "
                    f"{found['interruption_seconds']:>6.2f} {found['peak_mib']:>6.0f} "
                    f"{found['served']:>6} {found['refused']:>7}{'  over: ' + ', '.join(over) if over else ''}"
                ),
                not over,
            )


def main() -> int:
    """Print the table; 1 when some shape breaks a bound."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile", description="Measure hostile shapes.")
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help="default: all of them")
    parser.add_argument("--number", type=int, action="append", help="objects of a shape (default: 10, 100, 400, 2000)")
    chosen = parser.parse_args()
    unknown = [shape for shape in chosen.shapes if shape not in SHAPES]
    if unknown:
        parser.error(f"no such shape: {', '.join(unknown)}; there are: {', '.join(sorted(SHAPES))}")
    kept = True
    for line, good in rows(chosen.shapes or SHAPES, chosen.number or NUMBERS):
        print(line, flush=True)
        kept = kept and good
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
