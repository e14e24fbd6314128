"""Two weeks of a cluster whose load follows the days, by three ideas of consolidation: money, evictions, launches.

    python -m benchmarks.load_curve                      # 14 days, written into docs/performance.md
    python -m benchmarks.load_curve --days 2 --seed 7    # printed only

The same world, controller, scheduler and prices, with a NodePool's `consolidateAfter` and budgets as by default and
otherwise; the other ideas are a plain threshold and the reference's order, as stand-ins
(`reconciler/kerf/simulating/autoscalers/`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from functools import partial
from multiprocessing import get_context
from os import cpu_count
from typing import Final

from benchmarks.document import rewrite
from benchmarks.growth import DOCUMENT
from benchmarks.table import aligned, markdown
from kerf.simulating.autoscalers.greedy import greedy
from kerf.simulating.autoscalers.threshold import threshold
from tests.simulation.days import Days, Outcome, Rival
from tests.simulation.load import Load

DAYS, SEED = 14, 1
IDEAS: Final[dict[str, Rival | None]] = {"Kerf": None, "greedy order": greedy, "threshold": threshold}
#: `consolidateAfter` and how many nodes may be disrupted at once: the defaults, a time in which a dip of the load
#: passes, and a budget that holds nothing back.
SETTINGS: Final = (("0s", "10%"), ("15m", "10%"), ("0s", "100%"))
#: An idea with `consolidateAfter` and budget.
Case = tuple[str, str, str]
#: A threshold knows neither.
CASES: Final[tuple[Case, ...]] = (
    *((idea, *setting) for setting in SETTINGS for idea in ("Kerf", "greedy order")),
    ("threshold", *SETTINGS[0]),
)

HEAD: Final = (
    "by",
    "consolidateAfter",
    "budget",
    "$",
    "LP bound",
    "ratio",
    "evictions",
    "launches",
    "peak nodes",
    "pods waited, h",
    "returns",
    "cost rose",
)


def live(case: Case, days: int, seed: int) -> Outcome:
    """What these days come to."""
    idea, after, budget = case
    disruption = {"consolidateAfter": after, "budgets": [{"nodes": budget}]}
    return Days(Load(seed), disruption, IDEAS[idea]).live(timedelta(days=days))


def measure(days: int, seed: int, cases: Sequence[Case] = CASES) -> dict[Case, Outcome]:
    """All of them, each told as soon as it is known; as many at a time as there are cores."""
    found = {}
    with ProcessPoolExecutor(cpu_count(), mp_context=get_context("spawn")) as pool:
        for case, outcome in zip(cases, pool.map(partial(live, days=days, seed=seed), cases), strict=True):
            found[case] = outcome
            print("  ".join(_cells(case, outcome)), file=sys.stderr, flush=True)
    return found


def lines(found: Mapping[Case, Outcome]) -> list[Sequence[str]]:
    """A table's lines, the head first; what is alike in its settings side by side."""
    return [HEAD, *(_cells(case, outcome) for case, outcome in found.items())]


def _cells(case: Case, one: Outcome) -> tuple[str, ...]:
    idea, *settings = case
    return (
        idea,
        *(settings if idea != "threshold" else ("-", "-")),
        f"{one.cost_usd:,.2f}",
        f"{one.bound_usd:,.2f}",
        f"{one.cost_usd / one.bound_usd:.3f}",
        f"{one.evictions:,}",
        f"{one.launches:,}",
        f"{one.peak_nodes}",
        f"{one.waited / timedelta(hours=1):.1f}",
        f"{one.returned}",
        f"{one.dearer}",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; that of the usual days and seed is written into the document, too."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.load_curve", description="A load that follows the days."
    )
    parser.add_argument("--days", type=int, default=DAYS, help="so many (default %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="of noise and names (default %(default)s)")
    chosen = parser.parse_args(arguments)
    table = lines(measure(chosen.days, chosen.seed))
    print(aligned(table))
    if (chosen.days, chosen.seed) == (DAYS, SEED):
        rewrite(DOCUMENT, {"load curve": markdown(table)})
        print(f"written: the load curve in {DOCUMENT.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
