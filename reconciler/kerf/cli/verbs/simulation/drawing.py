"""Nodes and cost over time as charts in SVG, a curve for each variant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kerf.cli import charts
from kerf.cli.charts import Curve
from kerf.cli.verbs.simulation.variants import Side
from kerf.simulating.results import Point

NODES: Final = "Nodes"
_COST: Final = "Cost in $ an hour"


def pictures(sides: Sequence[Side]) -> list[tuple[str, str]]:
    """A title and a chart each: of nodes, of cost. A curve is the first run of its variant."""
    return [
        _picture(NODES, sides, lambda one: one.nodes, "{:g}".format),
        _picture(_COST, sides, lambda one: one.per_hour, "${:.2f}".format),
    ]


def drawn(groups: Sequence[Sequence[Side]]) -> str:
    """The charts of all scenarios below each other, as one SVG."""
    return charts.stacked([chart for sides in groups for _, chart in pictures(sides)])


def _picture(
    name: str, sides: Sequence[Side], read: Callable[[Point], float], form: Callable[[float], str]
) -> tuple[str, str]:
    first = sides[0].results[0]
    shown = sides[: charts.MOST]
    left = f", the first {len(shown)} of {len(sides)} variants" if len(shown) < len(sides) else ""
    title = f"{name} over time, seed {first.seed}{left}"
    curves = [Curve(one.variant.name, [(at.at, read(at)) for at in one.results[0].series]) for one in shown]
    return title, charts.over_time(f"{first.scenario}: {title}", curves, first.duration, form)
