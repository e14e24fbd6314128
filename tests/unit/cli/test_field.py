"""Manifests of the kinds that users write: what is found in each, in every form of lines."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.field import Case, cases

CASES = cases()
SYSTEMS = ("Flux", "envsubst", "Terraform", "Helm")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_found(case: Case) -> None:
    assert case.found() == case.finds, "run python -m tests.field and review the change"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_same_is_found_with_other_line_breaks_and_a_banner(case: Case) -> None:
    assert case.found(case.text.replace("\n", "\r\n")) == case.finds
    assert case.found(f"{'#' * 79}\n# pools\n{'#' * 79}\n---\n{case.text}") == case.finds


def test_every_placeholder_is_told_from_a_mistake() -> None:
    for case in CASES:
        if case.file.stem == "placeholders":
            for finding in case.report().findings:
                assert finding.problem.rule in ("KERF-FILE-TEMPLATE", "KERF-NP-341"), case.name
                assert "did you mean" not in finding.problem.hint


def test_there_are_enough_of_all_kinds() -> None:
    count = Counter(case.file.stem for case in CASES)
    assert sum(count.values()) >= 60
    assert min(count.values()) >= 8
    assert all(any(system in case.name for case in CASES) for system in SYSTEMS)
    assert len({case.name for case in CASES}) == len(CASES)
