"""Results of a simulation as JSON, and as JUnit's XML: a suite for each run, a case for each assertion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from kerf.cli.reports import escaping, junit
from kerf.simulating.results import Result


def as_json(results: Sequence[Result]) -> str:
    """One JSON object; durations are seconds. A single run has its series of nodes and cost."""
    runs = [_plain(asdict(one)) | {"passed": one.passed} for one in results]
    if len(results) > 1:
        for run in runs:
            del run["series"]
    return escaping.as_json({"version": 1, "passed": all(one.passed for one in results), "runs": runs})


def as_junit(results: Sequence[Result]) -> str:
    """The whole document."""
    root = Element("testsuites", name="kerf simulate")
    for result in results:
        name = junit.text(escaping.visible(f"{result.scenario}, seed {result.seed}"))
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
