"""The example manifests are perfect, and every wrong one is refused at its place in helpful words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from kerf_api.lint import validate
from tests.sources import ROOT

WRONG = sorted((ROOT / "tests" / "wrong_manifests").glob("*.yaml"))
EXAMPLES = sorted((ROOT / "manifests" / "examples").glob("*.yaml"))


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in YAML(typ="safe").load_all(path) if document]


def header(path: Path, field: str) -> str:
    found = re.search(rf"^# {field}: (.*)$", path.read_text(), re.MULTILINE)
    assert found, f"{path.name} has no line '# {field}: …'"
    return found[1]


def references(document: dict[str, Any]) -> Iterator[str]:
    if document["kind"] == "NodePool":
        yield document["spec"]["template"]["spec"]["nodeClassRef"]["name"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_neither_errors_nor_warnings(path: Path) -> None:
    found = documents(path)
    ignored = re.findall(r"# kerf:ignore (\S+) \S", path.read_text())
    problems = [problem for document in found for problem in validate(document)]
    assert [str(p) for p in problems if p.severity != "info" and p.rule not in ignored] == []
    classes = {document["metadata"]["name"] for document in found if document["kind"] == "EC2NodeClass"}
    assert {name for document in found for name in references(document)} == classes


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_a_wrong_manifest_is_refused_in_helpful_words(path: Path) -> None:
    (manifest,) = documents(path)
    errors = [problem for problem in validate(manifest) if problem.severity == "error"]
    place, words = header(path, "path"), header(path, "says")
    assert [problem.path for problem in errors] == [place]
    assert words in str(errors[0])


def test_there_are_enough_of_both() -> None:
    assert len(WRONG) >= 25
    assert len(EXAMPLES) >= 8
