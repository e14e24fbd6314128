"""The report as SARIF 2.1.0, which code scanning services read: rules with their pages, results with their places."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from kerf.cli.reports import escaping
from kerf.cli.reports.fingerprints import fingerprints
from kerf.manifests.checking import Finding, Report

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {"error": "error", "warning": "warning", "info": "note"}


def log(report: Report) -> str:
    """One run of one tool. Only rules that were broken are described."""
    rules = sorted({finding.problem.rule for finding in report.findings})
    driver = {"name": "kerf", "version": version("kerf"), "rules": _rules(rules)}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": _results(report.findings, {rule: index for index, rule in enumerate(rules)}),
    }
    return escaping.as_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rules(ids: list[str]) -> list[dict[str, Any]]:
    from kerf_api.lint.rulebook import book  # read only when something was found

    pages = book()
    return [
        {
            "id": rule,
            "shortDescription": {"text": pages[rule].title},
            "fullDescription": {"text": pages[rule].why.strip()},
            "help": {"text": pages[rule].fix.strip()},
            "defaultConfiguration": {"level": _LEVELS[pages[rule].severity]},
        }
        if rule in pages
        else {"id": rule}
        for rule in ids
    ]


def _results(findings: Sequence[Finding], indexes: dict[str, int]) -> list[dict[str, Any]]:
    told = zip(findings, fingerprints(findings), strict=True)
    return [_result(finding, indexes, fingerprint) for finding, fingerprint in told]


def _result(finding: Finding, indexes: dict[str, int], fingerprint: str) -> dict[str, Any]:
    problem = finding.problem
    place: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(finding.file)},
            "region": {
                "startLine": finding.start.line,
                "startColumn": finding.start.column,
                "endLine": finding.end.line,
                "endColumn": max(finding.end.column, finding.start.column + 1),
            },
        }
    }
    if finding.subject:
        name = f"{finding.subject}: {problem.path}" if problem.path else finding.subject
        place["logicalLocations"] = [{"fullyQualifiedName": name}]
    words = f"{problem.message}; {problem.hint}" if problem.hint else problem.message
    return {
        "ruleId": problem.rule,
        "ruleIndex": indexes[problem.rule],
        "level": _LEVELS[problem.severity],
        "message": {"text": f"{problem.path}: {words}" if problem.path else words},
        "locations": [place],
        "partialFingerprints": {"kerf/v1": fingerprint},
    }


def _uri(name: str) -> str:
    path = PurePath(name)
    return f"file://{quote(os.fsencode(name))}" if path.is_absolute() else quote(os.fsencode(path.as_posix()))
