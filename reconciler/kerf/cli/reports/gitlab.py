"""The report as GitLab's Code Quality: one entry a finding, which a merge request shows at its line."""

from __future__ import annotations

import os
from typing import Final

from kerf.cli.reports import escaping
from kerf.cli.reports.fingerprints import fingerprints
from kerf.manifests.checking import Report

_SEVERITIES: Final = {"error": "major", "warning": "minor", "info": "info"}


def code_quality(report: Report) -> str:
    """A JSON list. Paths are relative to the current folder, as GitLab wants them without a leading ./."""
    entries = [
        {
            "description": f"{finding.subject}: {finding.problem}" if finding.subject else str(finding.problem),
            "check_name": finding.problem.rule,
            "fingerprint": fingerprint,
            "severity": _SEVERITIES[finding.problem.severity],
            "location": {"path": os.path.normpath(finding.file), "lines": {"begin": finding.start.line}},
        }
        for finding, fingerprint in zip(report.findings, fingerprints(report.findings), strict=True)
    ]
    return escaping.as_json(entries)
