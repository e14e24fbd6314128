"""The report on verdicts finds what it is for: each sort of disagreement is planted here, and has to be told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kerf_api.defaulting import default, patch
from kerf_webhook.review import allowed, denied
from tests.unit.api.corpus import Case, changes, creations
from tests.unit.webhook.doors import DOORS, Reply

from .agreement import Outcome, Report, layer
from .api_server import Answer

WHY = {"KERF-NP-120": "the pattern takes any five words"}
CASES = {case.label: case for case in creations()}
GOOD = CASES["NodePool spec.weight=1"]
BAD = CASES["NodePool spec.weight=0"]
UNKNOWABLE = next(case for case in CASES.values() if case.rule == "KERF-NP-120")


def replies(case: Case, *, refused: bool | None = None, words: str = "") -> dict[str, Reply]:
    """What the webhook says to it, or would say if it were wrong."""
    errors = case.errors()
    if bool(errors) if refused is None else refused:
        said = denied("1", words or "\n".join(map(str, errors)))
    else:
        said = allowed("1", patch=patch(case.manifest))
    return dict.fromkeys(DOORS, said["response"])


def taken(case: Case) -> Answer:
    return Answer(201, default(case.manifest))


def outcome(case: Case, answer: Answer, **said: Any) -> Outcome:
    return Outcome(case, case.errors(), replies(case, **said), answer)


REFUSAL = Answer(422, {"message": "no"})
AGREED = [outcome(GOOD, taken(GOOD)), outcome(BAD, REFUSAL), outcome(UNKNOWABLE, taken(UNKNOWABLE))]


def test_what_agrees_or_is_explained_is_no_problem() -> None:
    report = Report(AGREED, WHY)
    assert report.problems == []
    assert [*report.explained] == ["KERF-NP-120"]
    assert "3 cases: 3 creations and 0 changes" in report.text()
    assert UNKNOWABLE.label in report.text()
    assert UNKNOWABLE.label not in report.text(cases=False)
    rows = [line.split() for line in report.text().splitlines()]
    assert ["NodePool", "refused", "2", "2", "1", "1"] in rows
    assert ["run", "time", "refused", "1", "1", "0", "1"] in rows


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (outcome(GOOD, REFUSAL), "API server 422 no"),
        (outcome(BAD, taken(BAD)), "API server 201"),
        (outcome(BAD, REFUSAL, refused=False), "webhook /validate accepts it"),
        (outcome(GOOD, taken(GOOD), refused=True, words="never"), "webhook /mutate refuses it: never"),
        (outcome(BAD, REFUSAL, words="no"), "does not name KERF-SCHEMA-BOUND at spec.weight: no"),
        (outcome(replace(BAD, rule=""), REFUSAL), "the table accepts it"),
        (outcome(replace(BAD, blamed="spec"), REFUSAL), "the table refuses it by KERF-SCHEMA-BOUND at spec"),
        (outcome(GOOD, Answer(201, GOOD.manifest)), "kerf default fills in"),
        (replace(AGREED[0], completed=Answer(201, GOOD.manifest)), "API server after the webhook"),
        (outcome(UNKNOWABLE, REFUSAL), "KERF-NP-120 is explained, but the API server refuses it too"),
    ],
)
def test_each_sort_of_disagreement_is_told(wrong: Outcome, told: str) -> None:
    report = Report([*AGREED, wrong], WHY)
    (problem,) = report.problems
    assert problem.startswith(wrong.case.label)
    assert told in problem
    assert problem in report.text()


def test_explanations_that_are_missing_or_not_needed_are_told() -> None:
    (problem,) = Report(AGREED, {}).problems
    assert "KERF-NP-120" in problem
    assert Report(AGREED, WHY | {"KERF-NP-999": "old"}).problems == ["KERF-NP-999 is explained, but no case needs it"]


def test_layers() -> None:
    assert [layer(rule) for rule in ("KERF-SCHEMA-TYPE", "KERF-NP-099", "KERF-NP-100")] == ["shape", "CEL", "run time"]


def test_the_corpus_has_changes_that_are_refused_and_such_that_leave_an_old_fault() -> None:
    by_hand = [case for case in changes() if case.rule is not None]
    assert any(case.rule for case in by_hand)
    assert any(case.errors() == () and replace(case, old=None).errors() for case in by_hand)
    assert all(case.errors() == () for case in by_hand if not case.rule)
