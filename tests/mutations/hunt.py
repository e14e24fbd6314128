"""Play seeds of the simulation until one breaks an invariant: `python -m tests.mutations.hunt SEED ...`.

The last line says which seed found what; the exit code is 1 then, and 0 when all seeds were well.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from tests.simulation.chaos import play
from tests.simulation.scripts import script


def main(seeds: Iterable[int]) -> int:
    """Play the seeds in order; 1 at the first that breaks an invariant."""
    for seed in seeds:
        violation = play(script(seed)).violation
        if violation:
            print(f"seed {seed}: {violation}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(map(int, sys.argv[1:])))
