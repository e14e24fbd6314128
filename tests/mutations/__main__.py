"""`make mutations`: plant every bug, run the suite there, and print what found it after how long.

python -m tests.mutations                        # all of them
python -m tests.mutations "no taint" lease 044   # those whose names contain one of these words
python -m tests.mutations --catalogue --seed 7   # thirty behaviours of the scheduling catalogue, drawn by this seed
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from tests.mutations.bug import Bug
from tests.mutations.catalogue import DRAWN, NO_BUG, SEED, broken, drawn, lacking
from tests.mutations.copies import found, unmutated
from tests.mutations.planted import BUGS


def main(arguments: Sequence[str]) -> int:
    """Print the table; 1 when a bug was not found by all that should find it, or the sources fail without any."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description="Plant bugs, and see them found.")
    parser.add_argument("words", nargs="*", help="only bugs whose names contain one of these")
    parser.add_argument("--catalogue", action="store_true", help="only behaviours of the scheduling catalogue")
    parser.add_argument("--seed", type=int, default=SEED, help=f"draws those behaviours (default {SEED})")
    asked = parser.parse_args(arguments)
    numbers = drawn(asked.seed)
    named = {} if asked.catalogue else {bug.name: bug for bug in BUGS}
    named |= {f"{bug.name} {bug.breaks}": bug for bug in broken(numbers)}
    chosen = {n: bug for n, bug in named.items() if not asked.words or any(word in bug.name for word in asked.words)}
    print(f"Behaviours of the catalogue, drawn with seed {asked.seed}: {', '.join(map(str, numbers))}")
    good = _all_found(chosen)
    missing = lacking(numbers)
    for number, lack in missing.items():
        print(f"{number:03d} {lack}")
    print("Every planted bug is found." if good else "NOT every planted bug is found.")
    bugless = list(missing.values()).count(NO_BUG)
    if bugless:
        print(f"{bugless} of the {DRAWN} numbers have no bug: tests/mutations/behaviours_of_*.py is where it belongs.")
    return 0 if good and not bugless else 1


def _all_found(bugs: Mapping[str, Bug]) -> bool:
    """Print a row for each bug; whether all are found by what should find them, and nothing is without them."""
    width, good = max(map(len, bugs), default=0), True
    print(f"{'bug':<{width}}  {'after':>6}  found by")
    for finding in unmutated(*bugs.values()) if bugs else ():
        good &= _told(f"{'(none)':<{width}}", finding.by, finding.seconds, wanted=False)
    for name, bug in bugs.items():
        for finding in found(bug):
            good &= _told(f"{name:<{width}}", finding.by, finding.seconds, wanted=True)
    return good


def _told(name: str, by: str, seconds: float, *, wanted: bool) -> bool:
    """Print a row; whether it is as it should be."""
    good = bool(by) is wanted
    print(f"{name}  {seconds:4.0f} s  {by or '-'}{'' if good else '   <== WRONG'}", flush=True)
    return good


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
