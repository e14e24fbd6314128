"""Nodes and cost over time as text, a line of bars for each run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kerf.cli.reports.escaping import visible
from kerf.cli.terminal import columns
from kerf.simulating.results import Point, Result
from kerf.simulating.scenario import shortest

_BARS: Final = "▁▂▃▄▅▆▇█"
_COLUMNS: Final = 36
_ROWS: Final[Sequence[tuple[str, str, Callable[[Point], float]]]] = (
    ("nodes", "0 to {:.0f}", lambda one: one.nodes),
    ("$ an hour", "0 to {:.2f}", lambda one: one.per_hour),
)


def chart(runs: Sequence[tuple[str, Result]]) -> list[str]:
    """The lines for runs of one scenario with their names, which may be empty. All runs have the same scale."""
    rows = [
        row for name, form, read in _ROWS for row in _of(name, form, [(one, _levels(run, read)) for one, run in runs])
    ]
    end = shortest(runs[0][1].duration)
    axis = ("  ", "", "", f"0s{end:>{_COLUMNS - 2}}", "")
    named = any(name for name, _ in runs)
    return columns([row if named else (*row[:2], *row[3:]) for row in (*rows, axis)])


def _of(name: str, form: str, runs: Sequence[tuple[str, Sequence[float]]]) -> Iterator[tuple[str, ...]]:
    """The rows of one quantity."""
    most = max(max(levels) for _, levels in runs)
    for number, (own, levels) in enumerate(runs):
        yield "  ", "" if number else name, visible(own), _drawn(levels, most), "" if number else form.format(most)


def _levels(result: Result, read: Callable[[Point], float]) -> list[float]:
    """The highest value in each of the columns."""
    found = [0.0] * _COLUMNS
    ends = [*(one.at for one in result.series[1:]), result.duration]
    for point, end in zip(result.series, ends, strict=True):
        first = min(int(point.at / result.duration * _COLUMNS), _COLUMNS - 1)
        last = min(int(end / result.duration * _COLUMNS), _COLUMNS - 1)
        found[first : last + 1] = [max(one, read(point)) for one in found[first : last + 1]]
    return found


def _drawn(values: Sequence[float], most: float) -> str:
    steps = len(_BARS) - 1
    return "".join(_BARS[round(one / most * steps)] if one else " " for one in values) if most else " " * len(values)
