"""`python -m tests.simulation.why` measures `kerf why`: a row per kind, the misses, and the table of docs/why.md.

python -m tests.simulation.why --pods 500 --nodes 200            # print
python -m tests.simulation.why --pods 500 --nodes 200 --write    # and write the table into the page
python -m tests.simulation.why --pods 70 --from 35               # other seeds
python -m tests.simulation.why --pods 250 --results F            # append to F, a line per world, and go on from there
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.simulation.why.measure import Measured, measured, table
from tests.sources import ROOT

PAGE = ROOT / "docs/why.md"
BEGIN, END = "<!-- table of answers -->\n", "<!-- end of the table -->\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.why")
    parser.add_argument("--pods", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--results", type=Path, action="append", default=[])
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    known = [Measured.read(line) for path in asked.results if path.exists() for line in path.read_text().splitlines()]
    found = measured(asked.pods, asked.nodes, asked.first, known, asked.results[0] if asked.results else None)
    text = table(found)
    print(text)
    if asked.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}{text}{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
