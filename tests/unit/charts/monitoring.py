"""The dashboards and the alerts of the chart, as they stand in its files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from tests.sources import ROOT

from .values_table import CHART

ALERTS: Final = CHART / "files/alerts.yaml"
DASHBOARDS: Final = tuple(sorted((CHART / "files/dashboards").glob("*.json")))
RUNBOOK: Final = ROOT / "docs/troubleshooting.md"
#: A file of `promtool test rules` for each group.
RULE_TESTS: Final = ROOT / "tests/cluster/alerts"

#: What Grafana puts in the place of variables, for somebody who looks at all node pools of the job `kerf`.
_VARIABLES: Final = {
    "$job": "kerf",
    "$nodepool": ".*",
    "$__rate_interval": "1m",
    "$__range": "5m",
    "${datasource}": "prometheus",
}


@dataclass(frozen=True, slots=True)
class Alert:
    """One of files/alerts.yaml, without what the chart's values say of it."""

    name: str
    group: str
    expr: str
    summary: str
    description: str


@dataclass(frozen=True, slots=True)
class Query:
    """An expression of a panel, with all variables replaced."""

    dashboard: str
    panel: str
    expr: str

    def __str__(self) -> str:
        return f"{self.dashboard} / {self.panel}: {self.expr}"


@cache
def alerts() -> tuple[Alert, ...]:
    groups: Mapping[str, Any] = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))
    return tuple(Alert(name, group, **fields) for group, named in groups.items() for name, fields in named.items())


@cache
def dashboard(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def panels(board: Mapping[str, Any]) -> Iterator[Any]:
    """Those that show something: rows are none."""
    yield from (panel for panel in board["panels"] if panel["type"] != "row")


def queries() -> Iterator[Query]:
    for path in DASHBOARDS:
        for panel in panels(dashboard(path)):
            for target in panel["targets"]:
                yield Query(path.stem, panel["title"], replaced(target["expr"]))


def replaced(expr: str) -> str:
    """An expression with all variables of the dashboards replaced, longest names first."""
    for name in sorted(_VARIABLES, key=len, reverse=True):
        expr = expr.replace(name, _VARIABLES[name])
    return expr
