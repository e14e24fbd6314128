"""docs/reference/metrics.md names every metric that the code has and every one of Karpenter's, with type and labels."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from kerf.cli.gate.metrics import PageMetrics
from kerf.telemetry.catalogue.listing import DETAILS, OWN, Listed
from kerf.telemetry.catalogue.names import METRICS
from kerf.telemetry.series.metrics import Metrics
from kerf_webhook.app import Metrics as WebhookMetrics
from tests.sources import ROOT

#: Name, type and labels of Karpenter's 1.14. Source: operations reference §2.
KARPENTERS = {
    row[0]: (row[1], frozenset(row[2:]))
    for line in (Path(__file__).parent / "karpenter_metrics.txt").read_text(encoding="utf-8").splitlines()
    for row in [line.split()]
}
HERE = {name: row for name, row in METRICS.items() if row.here}


def test_every_metric_of_karpenters_is_listed_with_its_type_and_labels() -> None:
    assert KARPENTERS.keys() <= METRICS.keys()
    for name, (kind, labels) in KARPENTERS.items():
        row = METRICS[name]
        assert (row.kind, frozenset(row.labels)) == (kind, labels), name


def test_what_is_not_karpenters_is_ours() -> None:
    ours = {name for name, row in METRICS.items() if row.karpenter == OWN}
    assert ours == {name for name in METRICS if name.startswith("kerf_")} | {"python_info"}
    more = {"process_virtual_memory_bytes", "process_max_fds"}  # of every Prometheus library; the reference says "…"
    assert METRICS.keys() - KARPENTERS.keys() == ours | more


@pytest.mark.parametrize("row", METRICS.values(), ids=lambda row: str(row.name))
def test_every_metric_is_compared_with_karpenters(row: Listed) -> None:
    verdict, _, why = row.karpenter.partition("; " if row.here else ": ")
    assert verdict in (("same", OWN) if row.here else ("missing", "renamed"))
    assert row.here or len(why) > 10
    assert bool(row.buckets) == (row.kind == "histogram") or not row.here
    assert row.detail in ("", *DETAILS)
    assert row.about or not row.here


def test_what_is_renamed_names_what_there_is() -> None:
    for row in METRICS.values():
        if row.karpenter.startswith("renamed:"):
            (name,) = re.findall(r"`(\w+)[{`]", row.karpenter)[:1]
            assert HERE[name].here


def test_what_a_process_registers_is_in_the_table_and_is_as_that_says() -> None:
    """Of what has series at all; what writes itself is read in test_series.py."""
    registries = {
        "controller": Metrics().registry,
        "webhook": WebhookMetrics(lambda: 0.0).registry,
        "page": PageMetrics().registry,
    }
    for process, registry in registries.items():
        for found in registry.collect():
            name = f"{found.name}_total" if found.type == "counter" else found.name
            assert (HERE[name].kind, HERE[name].process) == (found.type, process)
            assert HERE[name].about == found.documentation


def test_every_name_in_the_code_is_in_the_table() -> None:
    """Metrics are named in telemetry alone: what a plan has in numbers are gauges without a name."""
    pattern = re.compile(r"(?:karpenter|kerf|operator)_[a-z0-9_]+")
    found: set[str] = set()
    elsewhere: set[str] = set()
    for path in (ROOT / "reconciler").rglob("*.py"):
        if path.name in ("leader.py",) or "cli" in path.parts or path.name.startswith("listed_"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and pattern.fullmatch(node.value):
                found.add(node.value)
                if "telemetry" not in path.parts:
                    elsewhere.add(node.value)
    whole = {name for name in found if name in METRICS}
    starts = found - whole
    assert all(any(name.startswith(start) for name in HERE) or not start.startswith("kerf_") for start in starts), (
        starts
    )
    assert all(METRICS[name].here for name in whole)
    assert len(whole) > 15
    assert elsewhere & whole == set()
