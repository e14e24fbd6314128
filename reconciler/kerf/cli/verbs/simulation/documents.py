"""Results of a simulation as JSON, and as JUnit's XML: a suite for each run, a case for each assertion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from kerf.cli.reports import escaping, junit
from kerf.cli.verbs.simulation.spreads import spreads
from kerf.cli.verbs.simulation.variants import OURS, Side
from kerf.simulating.results import Result


def as_json(sides: Sequence[Side]) -> str:
    """One JSON object; durations are seconds. A single run has its series of nodes and cost.
    Variants with several runs have a summary: the spread of each figure.

    `passed` is about the runs of Kerf. The runs of a model have its label.
    """
    runs = [_run(side, one) for side in sides for one in side.results]
    if len(runs) > 1:
        for run in runs:
            del run["series"]
    passed = all(one.passed for side in sides if side.variant.model is None for one in side.results)
    found: dict[str, Any] = {"version": 1, "passed": passed, "runs": runs}
    if summaries := [_summary(side) for side in sides if len(side.results) > 1]:
        found["summaries"] = summaries
    return escaping.as_json(found)


def _run(side: Side, result: Result) -> dict[str, Any]:
    return {**_about(side), **_plain(asdict(result)), "passed": result.passed}


def _summary(side: Side) -> dict[str, Any]:
    """The spread of the figures of a variant over its runs."""
    figures = {name: asdict(one) for name, one in spreads([run.figures for run in side.results]).items()}
    return {
        **_about(side),
        "scenario": side.results[0].scenario,
        "runs": len(side.results),
        "passed": sum(one.passed for one in side.results),
        "figures": figures,
    }


def _about(side: Side) -> dict[str, Any]:
    variant, model = side.variant, side.variant.model
    about: dict[str, Any] = {"nodepools": variant.node_pools, "autoscaler": variant.autoscaler or OURS.lower()}
    if model is not None:
        about["label"] = model.label
    return about


def as_junit(sides: Sequence[Side]) -> str:
    """The whole document, with the runs of Kerf: a model of another autoscaler is no test of NodePools."""
    root = Element("testsuites", name="kerf simulate")
    runs = [(side.variant, one) for side in sides if side.variant.model is None for one in side.results]
    for variant, result in runs:
        pools = f", {variant.node_pools}" if variant.node_pools else ""
        name = junit.text(escaping.visible(f"{result.scenario}, seed {result.seed}{pools}"))
        failed = sum(not one.passed for one in result.verdicts)
        counts = {"tests": str(len(result.verdicts)), "failures": str(failed)}
        suite = SubElement(root, "testsuite", {"name": name, **counts})
        for verdict in result.verdicts:
            about = {"name": junit.text(escaping.visible(verdict.assertion)), "classname": name}
            case = SubElement(suite, "testcase", about)
            if not verdict.passed:
                failure = SubElement(case, "failure", message=junit.text(escaping.visible(verdict.message)))
                failure.text = junit.text("\n".join(map(escaping.visible, verdict.reasons)))
        if result.warnings:
            SubElement(suite, "system-err").text = junit.text("\n".join(map(escaping.visible, result.warnings)))
    return junit.document(root)


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
