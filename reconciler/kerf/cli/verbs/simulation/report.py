"""Results of a simulation as one HTML file for readers without the command: no script, nothing from elsewhere.

The same runs give the same bytes. Names and texts of files stay text: templates escape them.
"""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kerf.cli.reports.escaping import visible
from kerf.cli.verbs.simulation import drawing, notices, side_by_side
from kerf.cli.verbs.simulation.side_by_side import Row
from kerf.cli.verbs.simulation.variants import Side
from kerf.simulating.autoscalers.models import Model
from kerf.simulating.results import Result, Verdict
from kerf.simulating.scenario import Scenario, shortest

#: The limits of every simulation; docs/simulate.md has the same text.
LIMITS: Final = (
    "Prices, instance types and image releases are those that are part of Kerf.",
    "Startup times are constants, or those of `nodes`.",
    "Jobs, CronJobs and autoscalers do not run: describe their replicas in `overTime`.",
    "Capacity is unlimited unless the weather says otherwise.",
    "Real EC2 capacity, and so a real bill, differs.",
)
_PACKAGE: Final = "kerf.cli.verbs.simulation"


@dataclass(frozen=True, slots=True)
class Part:
    """A scenario with its file's name and text, and the results of its variants."""

    file: str
    text: str
    scenario: Scenario
    sides: Sequence[Side]

    @property
    def first(self) -> Side:
        return self.sides[0]

    @property
    def seeds(self) -> str:
        """The seeds of the runs of each variant."""
        found = [one.seed for one in self.first.results]
        return f"seed {found[0]}" if len(found) == 1 else f"seeds {found[0]} to {found[-1]}"


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart as a data URL; `text` describes it to readers who do not see it."""

    address: str
    text: str


def page(parts: Sequence[Part], arguments: Sequence[str]) -> str:
    """The whole file. `arguments` are those of the command line."""
    environment = Environment(
        loader=PackageLoader(_PACKAGE), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=StrictUndefined, finalize=_shown,
    )  # fmt: skip
    environment.filters["span"] = shortest
    style = (files(_PACKAGE) / "templates" / "report.css").read_text(encoding="utf-8")
    return environment.get_template("report.html").render(
        parts=[_shown_part(one) for one in parts],
        models=_models(parts),
        limits=LIMITS,
        version=version("kerf"),
        command=shlex.join(["kerf", "simulate", *arguments]),
        style=Markup(style),  # a file of Kerf's
        digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
    )


def _shown_part(part: Part) -> dict[str, Any]:
    """The values of a scenario in the template."""
    return {
        "name": part.scenario.name,
        "description": part.scenario.description,
        "question": _question(part),
        "answer": list(_answer(part)),
        "runs": len(part.first.results),
        "seeds": part.seeds,
        "first_seed": part.first.results[0].seed,
        "duration": shortest(part.scenario.duration.value),
        "warm_up": shortest(part.scenario.warmed),
        "names": side_by_side.names(part.sides),
        "figures": list(side_by_side.figures(part.sides)),
        "verdicts": [_marked(row) for row in side_by_side.verdicts(part.sides)],
        "reasons": [(one.variant, list(_reasons(one))) for one in part.sides],
        "warnings": list(dict.fromkeys(text for one in part.sides for text in notices.texts(one.results))),
        "pictures": list(_pictures(part)),
        "file": part.file,
        "text": [visible(line) for line in part.text.splitlines()],
    }


def _shown(value: Any) -> Any:
    """A value with its invisible characters as escapes."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


# --- question and answer --------------------------------------------------------------------------------------------
def _question(part: Part) -> str:
    folders = {one.variant.node_pools for one in part.sides}
    models = any(one.variant.model is not None for one in part.sides)
    if len(folders) > 1:
        return f"Which of {len(folders)} sets of NodePools costs least, and do all assertions pass?"
    if models:
        return "What do Kerf and models of other autoscalers cost, and do all assertions pass?"
    return "Do all assertions pass with these NodePools?"


def _answer(part: Part) -> Iterator[str]:
    """A sentence for each variant."""
    first = part.first
    for side in part.sides:
        text = f"{side.variant.name}: {_passes(side.results)}, cost {side_by_side.cost(side)}"
        share = side_by_side.difference(side, first) if side is not first else None
        yield f"{text}{'' if share is None else f', {_compared(share)} {first.variant.name}'}."


def _passes(results: Sequence[Result]) -> str:
    if len(results) > 1:
        passed = sum(one.passed for one in results)
        return f"all assertions pass in {passed} of {len(results)} runs"
    verdicts = results[0].verdicts
    return f"{sum(one.passed for one in verdicts)} of {len(verdicts)} assertions pass"


def _compared(share: float) -> str:
    if not round(share, 3):
        return "the same as"
    return f"{abs(share):.1%} {'more' if share > 0 else 'less'} than"


# --- verdicts -------------------------------------------------------------------------------------------------------
def _marked(row: Row) -> tuple[str, list[tuple[str, str]]]:
    """An assertion and the cells of the variants with their mark."""
    name, *cells = row
    return name, [(cell, cell.partition(" ")[0]) for cell in cells]


def _reasons(side: Side) -> Iterator[tuple[Verdict, int | None, int]]:
    """The verdict of each assertion, of the first run in which it fails; its seed, and the number of such runs."""
    for number, verdict in enumerate(side.results[0].verdicts):
        failed = [one for one in side.results if not one.verdicts[number].passed]
        if failed:
            yield failed[0].verdicts[number], failed[0].seed, len(failed)
        else:
            yield verdict, None, 0


# --- charts and models ----------------------------------------------------------------------------------------------
def _pictures(part: Part) -> Iterator[Picture]:
    for title, chart in drawing.pictures(part.sides):
        address = f"data:image/svg+xml;base64,{base64.b64encode(chart.encode()).decode()}"
        shown = "; ".join(_highest(one, title) for one in part.sides)
        yield Picture(address, f"{title}. {shown}.")


def _highest(side: Side, title: str) -> str:
    series = side.results[0].series
    if title.startswith(drawing.NODES):
        return f"{side.variant.name}: at most {max(one.nodes for one in series)}, at the end {series[-1].nodes}"
    most = max(one.per_hour for one in series)
    return f"{side.variant.name}: at most ${most:.2f}, at the end ${series[-1].per_hour:.2f}"


def _models(parts: Sequence[Part]) -> dict[str, Model]:
    sides = [one.variant for part in parts for one in part.sides]
    return {one.autoscaler: model for one in sides if (model := one.model) is not None}
