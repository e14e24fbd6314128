"""`python -m benchmarks`: the quick benchmarks, on inputs made on the spot, printed as a table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Final

from benchmarks import aws, comparison, consolidation, lint, scrape, webhook
from benchmarks.table import Row, conclude

SUITES: Final[dict[str, Callable[[], list[Row]]]] = {
    "aws": aws.rows,
    "lint": lint.rows,
    "scrape": scrape.rows,
    "webhook": webhook.rows,
    "scheduling": comparison.rows,
    "consolidation": consolidation.rows,
}


def main(arguments: Sequence[str]) -> int:
    """Run the suites that are named (all by default); 1 when a target was missed, 2 for an unknown name."""
    unknown = [name for name in arguments if name not in SUITES]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(SUITES)}", file=sys.stderr)
        return 2
    found: list[Row] = []
    for name in arguments or SUITES:
        print(f"running {name} …", file=sys.stderr, flush=True)
        found += SUITES[name]()
    return conclude(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
