"""Play seeds of the simulation until one breaks an invariant: `python -m tests.mutations.hunt FIRST PAST_THE_LAST`.

The last line says which seed found what; the exit code is 1 then, and 0 when all seeds were well.
"""

from __future__ import annotations

import sys

from tests.simulation.chaos import play
from tests.simulation.scripts import script


def main(first: int, end: int) -> int:
    """Play the seeds in order; 1 at the first that breaks an invariant."""
    for seed in range(first, end):
        violation = play(script(seed)).violation
        if violation:
            print(f"seed {seed}: {violation}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
