"""Results of several variants as one table."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final

from kerf.cli.reports.escaping import visible
from kerf.cli.terminal import columns
from kerf.cli.verbs.simulation import notices
from kerf.cli.verbs.simulation.spreads import spread
from kerf.cli.verbs.simulation.variants import Side
from kerf.simulating.results import Result

#: The name of a row and a value for each variant.
Row = tuple[str, ...]
#: Rows of `figures`: name, text of a value, value.
_ROWS: Final[Sequence[tuple[str, str, Callable[[Result], float]]]] = (
    ("nodes at most", "{:g}", lambda one: one.figures.nodes_most),
    ("nodes at the end", "{:g}", lambda one: one.figures.nodes_at_end),
    ("nodes launched", "{:g}", lambda one: one.figures.launched),
    ("disruptions", "{:g}", lambda one: one.figures.disruptions),
    ("evictions", "{:g}", lambda one: one.figures.evictions),
    ("slowest pod", "{:g}s", lambda one: one.figures.slowest.total_seconds()),
    ("pods not running at the end", "{:g}", lambda one: one.figures.unscheduled),
)
_NONE: Final = "-"
_WIDTH: Final = 100


def table(sides: Sequence[Side]) -> str:
    """The figures and verdicts of each variant as text, and the labels of models."""
    results = sides[0].results
    name = visible(results[0].scenario)
    head = (f"{name}: {len(results)} runs" if len(results) > 1 else name, *map(visible, names(sides)))
    lines = columns([head, *figures(sides), *verdicts(sides)])
    if len(results) > 1:
        lines.append("Figures are medians, with the least, the most and the 95th percentile in brackets.")
    warned = dict.fromkeys(line for one in sides for line in notices.lines(one.results))
    return "\n".join([*lines, *warned, *_about(sides), ""])


def names(sides: Sequence[Side]) -> Row:
    """The names of the variants."""
    return tuple(one.variant.name for one in sides)


def figures(sides: Sequence[Side]) -> Iterator[Row]:
    """The figures of each variant: medians with their spread where there are several runs."""
    yield "cost", *map(cost, sides)
    if len(sides) > 1:
        yield from _against_first(sides)
    for name, form, read in _ROWS:
        yield (name, *(_spread(form, [read(one) for one in side.results]) for side in sides))


def cost(side: Side) -> str:
    """The cost of a variant."""
    return _spread("${:.2f}", [one.figures.cost for one in side.results])


def verdicts(sides: Sequence[Side]) -> Iterator[Row]:
    """A row for each assertion."""
    for number, verdict in enumerate(sides[0].results[0].verdicts):
        yield (verdict.assertion, *(_passed(side.results, number) for side in sides))


def difference(side: Side, first: Side) -> float | None:
    """The median of the cost against that of the first variant with the same seed: 0.1 for 10 % more.

    None if a run of the first variant costs nothing.
    """
    pairs = [(one.figures.cost, other.figures.cost) for one, other in zip(side.results, first.results, strict=True)]
    return median(own / other - 1 for own, other in pairs) if all(other for _, other in pairs) else None


def cheaper(side: Side, first: Side) -> int:
    """The number of seeds for which a variant costs less than the first one."""
    pairs = zip(side.results, first.results, strict=True)
    return sum(one.figures.cost < other.figures.cost for one, other in pairs)


def _against_first(sides: Sequence[Side]) -> Iterator[Row]:
    first, *others = sides
    yield f"cost against {first.variant.name}", _NONE, *(_percent(difference(one, first)) for one in others)
    if (count := len(first.results)) > 1:
        cells = (f"{cheaper(one, first)} of {count} seeds" for one in others)
        yield f"cheaper than {first.variant.name}", _NONE, *cells


def _percent(share: float | None) -> str:
    return _NONE if share is None else f"{share:+.1%}"


def _spread(form: str, values: Sequence[float]) -> str:
    found = spread(values)
    if found.least == found.most:
        return form.format(found.median)
    least, middle, p95, most = map(form.format, (found.least, found.median, found.p95, found.most))
    return f"{middle} ({least} to {most}, p95 {p95})"


def _passed(results: Sequence[Result], number: int) -> str:
    passed = sum(one.verdicts[number].passed for one in results)
    return "PASS" if passed == len(results) else f"FAIL ({passed} of {len(results)} passed)"


def _about(sides: Sequence[Side]) -> Iterator[str]:
    """The label, the limits and the measured distance of each model."""
    models = {side.variant.autoscaler: model for side in sides if (model := side.variant.model) is not None}
    for name, model in models.items():
        yield ""
        yield f"{name}: {model.label}"
        yield from _wrapped(f"modelled: {model.modelled}")
        yield from _wrapped(f"shared with Kerf: {model.shared}")
        yield from _wrapped(f"not modelled: {'; '.join(model.omitted)}")
        yield from (line for text in model.distance for line in _wrapped(f"distance: {text}"))


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="    ", subsequent_indent="        ")
