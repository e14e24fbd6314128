"""`make mutations`: plant every bug, run the suite there, and print what found it after how long.

python -m tests.mutations                    # all of them
python -m tests.mutations "no taint" lease   # those whose names contain one of these words
"""

from __future__ import annotations

import sys

from tests.mutations.copies import found, unmutated
from tests.mutations.planted import BUGS

_WIDTH = max(len(bug.name) for bug in BUGS)


def main(words: list[str]) -> int:
    """Print the table; 1 when a bug was not found by all that should find it, or the sources fail without any."""
    good = True
    print(f"{'bug':<{_WIDTH}}  {'after':>6}  found by")
    for finding in unmutated():
        good &= _told("(none)", finding.by, finding.seconds, wanted=False)
    for bug in BUGS:
        if not words or any(word in bug.name for word in words):
            for finding in found(bug):
                good &= _told(bug.name, finding.by, finding.seconds, wanted=True)
    print("Every planted bug is found." if good else "NOT every planted bug is found.")
    return 0 if good else 1


def _told(name: str, by: str, seconds: float, *, wanted: bool) -> bool:
    """Print a row; whether it is as it should be."""
    good = bool(by) is wanted
    print(f"{name:<{_WIDTH}}  {seconds:4.0f} s  {by or '-'}{'' if good else '   <== WRONG'}", flush=True)
    return good


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
