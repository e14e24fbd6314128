"""The formats of a report: to people, to programs, and to the annotations of a pull request.

Each format is a function from a report to text. SARIF, JUnit and GitLab's have modules of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kerf.cli.reports import escaping
from kerf.manifests.checking import Finding, Report
from kerf_api.lint import Severity
from kerf_api.texts import counted

_COLOURS: Final[Mapping[Severity, str]] = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "info": "\x1b[1;36m"}
_PLAIN: Final = "\x1b[0m"
_COMMANDS: Final[Mapping[Severity, str]] = {"error": "error", "warning": "warning", "info": "notice"}


def text(report: Report, *, colour: bool = False) -> str:
    """One line a finding, in the form that editors and compilers know, and a summary."""
    return "\n".join([*(line(finding, colour) for finding in report.findings), summary(report), ""])


def line(finding: Finding, colour: bool) -> str:
    """One finding on one line, in the form that editors and compilers know."""
    finding = escaping.finding(finding)
    severity: str = finding.problem.severity
    if colour:
        severity = f"{_COLOURS[finding.problem.severity]}{severity}{_PLAIN}"
    subject = f"{finding.subject}: " if finding.subject else ""
    place = f"{escaping.name(finding.file)}:{finding.start.line}:{finding.start.column}"
    return f"{place}: {severity}: {subject}{finding.problem}"


def summary(report: Report) -> str:
    """`2 errors and 1 warning in 12 manifests of 9 files; 4 documents of other kinds skipped`."""
    counts = ((report.count("error"), "error"), (report.count("warning"), "warning"), (report.count("info"), "note"))
    found = _listed([counted(number, word) for number, word in counts if number]) or "no problem"
    skipped = f"; {counted(report.skipped, 'document')} of other kinds skipped" if report.skipped else ""
    return f"{found} in {counted(len(report.subjects), 'manifest')} of {counted(report.files, 'file')}{skipped}"


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def as_json(report: Report) -> str:
    """One JSON object: a summary, and every finding with all its parts."""
    counts = {severity: report.count(severity) for severity in ("error", "warning", "info")}
    told = {
        "version": 1,
        "summary": {
            "files": report.files,
            "manifests": len(report.subjects),
            "skipped": report.skipped,
            "errors": counts["error"],
            "warnings": counts["warning"],
            "infos": counts["info"],
        },
        "problems": [_object(finding) for finding in report.findings],
    }
    return escaping.as_json(told)


def _object(finding: Finding) -> dict[str, Any]:
    problem = finding.problem
    return {
        "file": finding.file,
        "line": finding.start.line,
        "column": finding.start.column,
        "endLine": finding.end.line,
        "endColumn": finding.end.column,
        "object": finding.subject,
        "rule": problem.rule,
        "severity": problem.severity,
        "path": problem.path,
        "message": problem.message,
        "hint": problem.hint,
        "value": problem.value,
    }


def github(report: Report) -> str:
    """Workflow commands of GitHub Actions, which become annotations at the lines of a pull request; and a summary."""
    return "\n".join([*(_command(finding) for finding in report.findings), summary(report), ""])


def _command(finding: Finding) -> str:
    values = {
        "file": escaping.visible(finding.file),
        "line": finding.start.line,
        "col": finding.start.column,
        "endLine": finding.end.line,
        "endColumn": finding.end.column,
        "title": finding.problem.rule,
    }
    parts = ",".join(f"{name}={_escaped(str(value), ':,')}" for name, value in values.items())
    subject = f"{finding.subject}: " if finding.subject else ""
    return f"::{_COMMANDS[finding.problem.severity]} {parts}::{_escaped(f'{subject}{finding.problem}', '')}"


def _escaped(text: str, more: str) -> str:
    return "".join(f"%{ord(letter):02X}" if letter in f"%\r\n{more}" else letter for letter in text)


def _sarif(report: Report) -> str:
    from kerf.cli.reports import sarif

    return sarif.log(report)


def _junit(report: Report) -> str:
    from kerf.cli.reports import junit

    return junit.suites(report)


def _gitlab(report: Report) -> str:
    from kerf.cli.reports import gitlab

    return gitlab.code_quality(report)


def _visible(form: Callable[[Report], str]) -> Callable[[Report], str]:
    return lambda report: form(escaping.report(report))


#: Every report that Kerf prints or writes comes from here: its texts are visible, whatever the files hold.
FORMATS: Final[Mapping[str, Callable[[Report], str]]] = {
    name: _visible(form)
    for name, form in (
        ("text", text),
        ("json", as_json),
        ("sarif", _sarif),
        ("github", github),
        ("junit", _junit),
        ("gitlab", _gitlab),
    )
}
