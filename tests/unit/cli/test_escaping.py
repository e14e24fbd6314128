"""No text of a file reaches a terminal or a log raw: no control character, no line and no command of its making."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from kerf.cli.reports import escaping, formats
from kerf.cli.verbs import convert, default, validate
from kerf.manifests import file_rules
from kerf.manifests.checking import Content, Finding, Report, Subject, Wish, check
from kerf.manifests.nodes import Place
from kerf_api.lint import Problem
from kerf_api.lint.rulebook import book

BAIT = "x\n::error::a\r\x1b[31m\x9b2J\u202e\u2028##[error]b##vso[task.x]c\udcff"
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e\udcff]|##\\[|##vso\\[")
Capture = pytest.CaptureFixture[str]


def _is_safe(form: str, text: str, findings: int) -> None:
    assert not RAW.search(text), form
    if form == "text":
        assert len(text.splitlines()) == findings + 1
        assert not any(line.lstrip().startswith("::") for line in text.splitlines())
    if form == "github":
        assert len(text.splitlines()) == findings + 1
        assert all(line.startswith("::") and "\n" not in line for line in text.splitlines()[:-1])


@pytest.mark.parametrize("rule", sorted({*book(), *file_rules.known()}))
def test_each_rule_is_told_visibly_in_each_format(rule: str) -> None:
    problem = Problem(rule, "error", f"a[{BAIT}]", BAIT, BAIT, value=BAIT)
    finding = Finding(f"::error::{BAIT}.yaml", Place(1, 1), Place(1, 2), f"NodePool {BAIT}", problem)
    subject = Subject(finding.file, 1, finding.subject)
    report = Report((finding,), (subject,), 1, 0, frozenset({"error"}))
    for form, told in formats.FORMATS.items():
        _is_safe(form, told(report), 1)


def _baited(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _baited(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_baited(inner, key) for inner in value]
    return value + BAIT[:-1] if isinstance(value, str) and key not in ("apiVersion", "kind") else value


@pytest.mark.parametrize("rule", sorted(book()))
def test_values_of_a_wrong_manifest_are_told_visibly(rule: str) -> None:
    examples = [book()[rule].wrong, book()[rule].right]
    documents = [found for example in examples for found in (example if isinstance(example, list) else [example])]
    data = "\n".join(json.dumps(_baited(document), default=str) for document in documents).encode()
    report = check([Content("a.json", data)], Wish(), file_rules.known)
    for form, told in formats.FORMATS.items():
        _is_safe(form, told(report), len(report.findings))


def test_programs_find_the_files_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = check([Content("a\n\udcff b.yaml", b"kind: NodePool\n")], Wish(), file_rules.known)
    (first, *_) = json.loads(formats.FORMATS["json"](report))["problems"]
    assert first["file"] == "a\n\udcff b.yaml"
    sarif = json.loads(formats.FORMATS["sarif"](report))["runs"][0]["results"][0]["locations"][0]
    assert sarif["physicalLocation"]["artifactLocation"]["uri"] == "a%0A%FF%20b.yaml"
    assert ElementTree.fromstring(formats.FORMATS["junit"](report))[0].get("name") == r"a\n\udcff b.yaml"


@pytest.mark.parametrize("verb", [validate, convert, default])
def test_a_name_of_a_file_is_no_command(
    verb: Any, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["::error::a.yaml", "x\n::error::b\x1b[31m.yaml", os.fsdecode(b"\xff.yaml")]
    for name in names:
        Path(name).write_text("a: b: c\n")
    for name in [*names, "gone\n::error::\x1b"]:
        assert verb.main([name]) == 2
    out, err = capsys.readouterr()
    assert not RAW.search(out + err)
    assert not any(line.startswith("::") for line in (out + err).splitlines())
    assert "./::error::a.yaml:1:5: error" in out + err


def test_text_that_is_seen_stays() -> None:
    assert escaping.visible("é 日本 😀 # ## a[b] ::") == "é 日本 😀 # ## a[b] ::"
    assert escaping.visible("a\tb\x00\U000e0041") == r"a\tb\x00\U000e0041"
