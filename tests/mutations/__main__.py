"""`make mutations`: plant every bug, run the suite there, and print what found it after how long.

python -m tests.mutations                                    # all of them
python -m tests.mutations "no taint" lease 044               # those whose names contain one of these words
python -m tests.mutations --catalogue --seed 7               # thirty behaviours of each catalogue, drawn by this seed
python -m tests.mutations 131 166 --catalogue disruption --every   # of one catalogue, drawn or not
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from tests.mutations.bug import Bug
from tests.mutations.catalogue import BROKEN, NO_BUG, SEED, Behaviours
from tests.mutations.copies import found, unmutated
from tests.mutations.planted import BUGS

_ALL = "all"


def main(arguments: Sequence[str]) -> int:
    """Print the table; 1 when a bug was not found by all that should find it, or the sources fail without any."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description="Plant bugs, and see them found.")
    parser.add_argument("words", nargs="*", help="only bugs whose names contain one of these")
    parser.add_argument(
        "--catalogue",
        nargs="?",
        const=_ALL,
        choices=(_ALL, *BROKEN),
        help="only behaviours of this catalogue, or of all",
    )
    parser.add_argument("--seed", type=int, default=SEED, help=f"draws those behaviours (default {SEED})")
    parser.add_argument("--every", action="store_true", help="all of their behaviours, and not those drawn")
    asked = parser.parse_args(arguments)
    chosen = {name: each for name, each in BROKEN.items() if asked.catalogue in (None, _ALL, name)}
    every = asked.every
    numbers = {n: [*each.catalogue.numbers] if every else each.drawn(asked.seed) for n, each in chosen.items()}
    named = {} if asked.catalogue else {bug.name: bug for bug in BUGS}
    named |= {f"{bug.name} {bug.breaks}": bug for name, each in chosen.items() for bug in each.broken(numbers[name])}
    named = {n: bug for n, bug in named.items() if not asked.words or any(word in bug.name for word in asked.words)}
    for name in () if every else chosen:
        print(f"Behaviours of the {name} catalogue, drawn with seed {asked.seed}: {', '.join(map(str, numbers[name]))}")
    good = _all_found(named)
    bugless = sum(_lacking(each, numbers[name]) for name, each in chosen.items())
    print("Every planted bug is found." if good else "NOT every planted bug is found.")
    if bugless:
        print(f"{bugless} of these numbers have no bug: tests/mutations/behaviours_of_*.py is where it belongs.")
    return 0 if good and not bugless else 1


def _lacking(of: Behaviours, numbers: Sequence[int]) -> int:
    """Print what numbers lack; how many of them lack only the bug."""
    missing = of.lacking(numbers)
    for number, lack in missing.items():
        print(f"{of.catalogue.name} {number:03d} {lack}")
    return list(missing.values()).count(NO_BUG)


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
