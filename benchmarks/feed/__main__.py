"""`python -m benchmarks.feed`: the controller on the scale feed, as a table.

`--handover` measures how leaders change, `--page` the ticks while people use the page.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.feed import handover, measuring, page
from benchmarks.feed.measuring import Load
from benchmarks.table import conclude


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for and print it; 1 when a target was missed."""
    standard = Load()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.feed", description=__doc__)
    parser.add_argument("--nodes", type=int, default=standard.nodes)
    parser.add_argument("--pods", type=int, default=standard.pods)
    parser.add_argument("--pod-events", type=float, default=standard.pod_events, help="a second")
    parser.add_argument("--node-events", type=float, default=standard.node_events, help="a second")
    parser.add_argument("--seconds", type=float, default=standard.seconds, help="how long events are measured")
    parser.add_argument("--rest", type=float, default=standard.rest, help="how long nothing happens first, in s; or 0")
    parser.add_argument("--rest-only", action="store_true", help="end after the rest")
    parser.add_argument("--handover", action="store_true", help="measure lease hand-over instead")
    parser.add_argument("--page", action="store_true", help="measure ticks while people use the page instead")
    parser.add_argument("--keep", type=Path, help="a folder in which the controllers' logs stay")
    given = parser.parse_args(arguments)
    rates = given.pod_events, given.node_events, given.seconds
    load = Load(given.nodes, given.pods, *rates, given.rest, given.rest_only)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        rows = (handover if given.handover else page if given.page else measuring).run(load, folder)
    return conclude(rows)


if __name__ == "__main__":
    sys.exit(main())
