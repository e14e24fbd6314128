"""`make house`: the figures, each with its limit; 1 when one is beyond it."""

from __future__ import annotations

import sys

from tests.house.report import figures


def main() -> int:
    """Print a line for each figure, and below it what is beyond the limit."""
    beyond = 0
    for one in figures():
        print(f"{one.name:<55} {one.value:>8}   limit {one.limit}")
        for line in one.beyond:
            print(f"    {line}")
        beyond += bool(one.beyond)
    print(f"{beyond} beyond their limits")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
