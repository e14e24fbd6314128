"""Does the real API server judge as the linter and the webhook do? Every case of the corpus is put to all three.

The definitions are installed as they are shipped, without the webhook. Then each manifest is sent as a dry run with
strict field validation. What the linter refuses by shape or by a CEL rule the server must refuse too; what only the
controllers would refuse the bare server takes, and it is said why. The report is printed (`-s` shows it, and `make
verdicts` with every case).
"""

from __future__ import annotations

import pytest

from kerf_api import crds

from .agreement import LAYERS, VERDICTS, Outcome, Report, layer
from .control_plane import ControlPlane
from .verdicts import judged_by_all

pytestmark = pytest.mark.cluster

Outcomes = list[Outcome]


@pytest.fixture(scope="module")
def outcomes(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return judged_by_all(control_plane, tmp_path_factory.mktemp("webhook"))


def test_all_three_give_the_same_verdict_and_fill_in_the_same_defaults(outcomes: Outcomes) -> None:
    report = Report(outcomes)
    print("", report.text(cases=False), sep="\n")
    assert report.problems == []


def test_the_corpus_is_large_and_each_refusal_names_its_field(outcomes: Outcomes) -> None:
    created = [outcome for outcome in outcomes if outcome.case.old is None]
    assert len(created) >= 600
    assert len(outcomes) - len(created) >= 300
    assert {(o.case.kind, o.verdict) for o in created} == {(kind, v) for kind in crds.kinds() for v in VERDICTS}
    assert {outcome.layer for outcome in created if outcome.errors} == set(LAYERS)
    refused = [outcome for outcome in created if outcome.errors]
    assert all(outcome.case.rule and outcome.case.blamed for outcome in refused)
    assert sum(len(outcome.filled_in) == 4 for outcome in outcomes) > 300


def test_a_refusal_is_the_clients_fault_and_says_why(outcomes: Outcomes) -> None:
    refusals = [outcome.answer for outcome in outcomes if not outcome.answer.accepted]
    assert {answer.status for answer in refusals} <= {400, 422}
    assert all(answer.message for answer in refusals)


def test_the_server_refuses_by_the_rule_that_the_linter_names(outcomes: Outcomes) -> None:
    """Where a single CEL rule is broken, its ID is in the server's own words."""
    missing = [
        f"{outcome.case.label}: {outcome.errors[0].rule} is not in {outcome.answer.message!r}"
        for outcome in outcomes
        if len(outcome.errors) == 1 and layer(outcome.errors[0].rule) == "CEL"
        if f"[{outcome.errors[0].rule}]" not in outcome.answer.message
    ]
    assert missing == []
