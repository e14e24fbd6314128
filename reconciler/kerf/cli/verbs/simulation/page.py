"""Results of a simulation as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kerf.cli.reports.escaping import visible
from kerf.cli.terminal import columns
from kerf.cli.verbs.simulation import bars, notices, spreads
from kerf.simulating.results import Figures, Result, Verdict
from kerf.simulating.scenario import shortest

_SEEDS: Final = 5


def page(results: Sequence[Result], *, chart: bool) -> str:
    """The text for all runs of one scenario."""
    lines = list(_one(results[0], chart=chart) if len(results) == 1 else _many(results, chart=chart))
    return "\n".join([*lines, ""])


def _one(result: Result, *, chart: bool) -> Iterator[str]:
    yield f"{visible(result.scenario)}: {shortest(result.duration)} simulated, seed {result.seed}"
    yield from columns([("  ", *row) for row in _figures(result.figures)])
    if chart:
        yield ""
        yield from bars.chart([("", result)])
    yield ""
    for verdict in result.verdicts:
        yield from _verdict(verdict)
    yield from notices.lines([result])
    yield ""
    yield _summary(sum(not one.passed for one in result.verdicts), len(result.verdicts), "assertion")


def _figures(found: Figures) -> Iterator[tuple[str, str]]:
    slowest = f", the slowest in {shortest(found.slowest)}" if found.pods_started else ""
    yield "pods", f"{found.pods_started} started{slowest}; {found.unscheduled} not running at the end"
    nodes = f"{found.nodes_most} at most, {found.nodes_at_end} at the end; {found.launched} launched"
    yield "nodes", f"{nodes}, {found.disruptions} disrupted"
    yield "evictions", str(found.evictions)
    yield "cost", f"${found.cost:.2f}"


def _verdict(verdict: Verdict) -> Iterator[str]:
    when = f", first at {shortest(verdict.at)}" if verdict.at is not None else ""
    when += f", worst at {shortest(verdict.worst_at)}" if verdict.worst_at is not None else ""
    yield f"{'PASS' if verdict.passed else 'FAIL'}  {verdict.assertion}: {verdict.message}{when}"
    yield from (f"      {reason}" for reason in verdict.reasons)


def _many(results: Sequence[Result], *, chart: bool) -> Iterator[str]:
    seeds = [one.seed for one in results]
    runs = f"{len(results)} runs of {shortest(results[0].duration)}"
    yield f"{visible(results[0].scenario)}: {runs}, seeds {min(seeds)} to {max(seeds)}"
    rows: list[Sequence[str]] = [("  ", "", "least", "median", "p95", "most")]
    for name, one in spreads.spreads([run.figures for run in results]).items():
        rows.append(("  ", _NAMES[name], *map(_number, (one.least, one.median, one.p95, one.most))))
    yield from columns(rows)
    if chart:
        yield ""
        yield from bars.chart([(f"seed {results[0].seed}", results[0])])
    yield ""
    for number in range(len(results[0].verdicts)):
        yield from _over_runs(results, number)
    yield from notices.lines(results)
    yield ""
    yield _summary(sum(not one.passed for one in results), len(results), "run")


def _over_runs(results: Sequence[Result], number: int) -> Iterator[str]:
    """One assertion over all runs."""
    failed = [one for one in results if not one.verdicts[number].passed]
    passed = len(results) - len(failed)
    text = results[0].verdicts[number].assertion
    yield f"{'FAIL' if failed else 'PASS'}  {text}: passed in {passed} of {len(results)} runs"
    if failed:
        seeds = ", ".join(str(one.seed) for one in failed[:_SEEDS])
        more = ", …" if len(failed) > _SEEDS else ""
        first = failed[0].verdicts[number]
        yield f"      failed with --seed {seeds}{more}; the first: {first.message}"
        yield from (f"      {reason}" for reason in first.reasons)


#: The figures of a summary as text.
_NAMES: Final = {
    "cost": "cost in $",
    "nodes_most": "nodes at most",
    "evictions": "evictions",
    "disruptions": "disruptions",
    "slowest": "slowest pod in s",
    "unscheduled": "pods not running",
}


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _summary(failed: int, count: int, word: str) -> str:
    many = f"{word}{'' if count == 1 else 's'}"
    return f"{failed} of {count} {many} failed" if failed else f"{count} {many} passed"
