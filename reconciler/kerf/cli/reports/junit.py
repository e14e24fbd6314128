"""The report as JUnit's XML: a suite for each file, a case for each manifest, a failure for each error.

What does not fail the run, such as a warning without `--strict`, is a case's output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from kerf.cli.reports import escaping
from kerf.manifests.checking import Finding, Report

_ALLOWED: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def suites(report: Report) -> str:
    """The whole document. What concerns a file and no manifest in it is a case of the file's own name."""
    root = Element("testsuites", name="kerf validate")
    names = dict.fromkeys((*(s.file for s in report.subjects), *(f.file for f in report.findings)))
    for name in names:
        _suite(root, name, report)
    for attribute in ("tests", "failures"):
        root.set(attribute, str(sum(int(suite.get(attribute, 0)) for suite in root)))
    return document(root)


def document(root: Element) -> str:
    """A tree as the text of a document, indented."""
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def text(words: str) -> str:
    """Words with a mark in the place of each character that XML does not allow."""
    return _ALLOWED.sub("\ufffd", words)


def _suite(root: Element, name: str, report: Report) -> None:
    suite = SubElement(root, "testsuite", name=text(escaping.visible(name)))
    findings = [finding for finding in report.findings if finding.file == name]
    subjects = [subject.name for subject in report.subjects if subject.file == name]
    whole = [finding for finding in findings if finding.subject not in subjects]
    if whole or not subjects:
        _case(suite, name, name, whole, report.failing)
    for subject in dict.fromkeys(subjects):
        own = [finding for finding in findings if finding.subject == subject]
        _case(suite, name, subject, own, report.failing)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(sum(case.find("failure") is not None for case in suite)))


def _case(suite: Element, file: str, name: str, findings: Sequence[Finding], failing: frozenset[str]) -> None:
    case = SubElement(suite, "testcase", name=text(escaping.visible(name)), classname=text(escaping.visible(file)))
    for finding in findings:
        if finding.problem.severity in failing:
            problem = finding.problem
            failure = SubElement(case, "failure", type=problem.rule, message=text(str(problem)))
            failure.text = text(_line(finding))
    told = [_line(finding) for finding in findings if finding.problem.severity not in failing]
    if told:
        SubElement(case, "system-out").text = text("\n".join(told))


def _line(finding: Finding) -> str:
    place = f"{escaping.name(finding.file)}:{finding.start.line}:{finding.start.column}"
    return f"{place}: {finding.problem.severity}: {finding.problem}"
