"""The cases, word for word; and what holds for each of them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kerf.manifests.documents import Document, read
from kerf_api import crds, old_names
from kerf_api.lint import LintSettings, validate
from kerf_api.lint.rulebook import book

from .cases import CASES, Case

EACH = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
CONVERTED = [case for case in CASES if "error" not in case.problems]
EACH_CONVERTED = pytest.mark.parametrize("case", CONVERTED, ids=lambda case: case.name)
#: What is a comment in these files: no case has a # in a text, but for user data.
COMMENT = re.compile(r"(?:^|\s)(#.*)$", re.MULTILINE)

#: What only people can change is told until they have.
FOR_PEOPLE = ("KERF-CONV-203", "KERF-CONV-204")


def objects(text: str) -> list[dict[str, Any]]:
    """Every object in a text, those of lists too."""
    values = [found.node.value for found in read(text.encode()) if isinstance(found, Document)]
    return [item for value in values for item in value.get("items", [value])]


def test_there_are_many() -> None:
    assert len(CASES) >= 60


@EACH
def test_it_becomes_what_was_reviewed(case: Case) -> None:
    assert case.current() == case


@EACH_CONVERTED
def test_the_result_is_sound(case: Case) -> None:
    for manifest in objects(case.result):
        assert manifest.get("kind") not in old_names.KINDS
        if manifest.get("kind") in crds.kinds():
            problems = validate(manifest, settings=LintSettings(advice=False))
            assert [problem for problem in problems if problem.severity == "error"] == []


@EACH_CONVERTED
def test_converted_again_it_is_the_same_and_nothing_is_told(case: Case) -> None:
    again = case.converted(case.result)
    told = [finding for finding in again.findings if finding.problem.rule not in FOR_PEOPLE]
    assert (again.after, told, again.whole) == (case.result, [], True)


@EACH
def test_every_comment_survives(case: Case) -> None:
    after = case.converted().after
    for comment in COMMENT.findall(case.before):
        assert comment.rstrip() in case.result
        assert comment.rstrip() in after


@EACH
def test_what_cannot_be_converted_says_so(case: Case) -> None:
    assert case.converted().whole == ("error" not in case.problems)


def test_every_rule_has_a_case() -> None:
    told = {rule for case in CASES for rule in re.findall(r"KERF-CONV-\d+", case.problems)}
    assert told == {rule for rule in book() if rule.startswith("KERF-CONV-")}
