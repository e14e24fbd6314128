"""Results of several sets of NodePools as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Final

from kerf.cli.terminal import columns
from kerf.cli.verbs.simulation import notices
from kerf.simulating.results import Result

_ROWS: Final[Sequence[tuple[str, str, Callable[[Result], float]]]] = (
    ("cost", "${:.2f}", lambda one: one.figures.cost),
    ("nodes at most", "{:.0f}", lambda one: one.figures.nodes_most),
    ("nodes launched", "{:.0f}", lambda one: one.figures.launched),
    ("disruptions", "{:.0f}", lambda one: one.figures.disruptions),
    ("evictions", "{:.0f}", lambda one: one.figures.evictions),
    ("slowest pod", "{:.0f}s", lambda one: one.figures.slowest.total_seconds()),
    ("pods not running at the end", "{:.0f}", lambda one: one.figures.unscheduled),
)


def table(found: Mapping[str, Sequence[Result]]) -> str:
    """The medians of each set of NodePools, by its name, and the assertions that fail with it."""
    first = next(iter(found.values()))
    rows = [(f"{first[0].scenario}: medians of {len(first)} runs" if len(first) > 1 else first[0].scenario, *found)]
    for name, form, read in _ROWS:
        rows.append((name, *(form.format(median(map(read, results))) for results in found.values())))
    for number, verdict in enumerate(first[0].verdicts):
        rows.append((verdict.assertion, *(_passed(results, number) for results in found.values())))
    warned = [line for results in found.values() for line in notices.lines(results)]
    return "\n".join([*columns(rows), *dict.fromkeys(warned), ""])


def _passed(results: Sequence[Result], number: int) -> str:
    passed = sum(one.verdicts[number].passed for one in results)
    return "PASS" if passed == len(results) else f"FAIL ({passed} of {len(results)} passed)"
