"""Every row of the table: what is accepted has no error, what is refused is refused by that rule at that place."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from api.lint import Problem, cel, validate
from api.lint.rulebook import book
from api.lint.rulebook.paths import long_path

from .manifests import changed
from .table import ACCEPTED, REFUSED


def _name(kind: str, path: str, value: Any) -> str:
    return f"{kind} {path}={value!r:.40}"


def errors(problems: list[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.severity == "error"]


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        pytest.param(row.kind, row.path, value, id=_name(row.kind, row.path, value))
        for row in ACCEPTED
        for value in row.values
    ],
)
def test_accepted(kind: str, path: str, value: Any) -> None:
    assert errors(validate(changed(kind, path, value))) == []


@pytest.mark.parametrize(
    ("kind", "path", "value", "rule", "blamed"),
    [
        pytest.param(row.kind, row.path, value, row.rule, row.blamed or row.path, id=_name(row.kind, row.path, value))
        for row in REFUSED
        for value in row.values
    ],
)
def test_refused(kind: str, path: str, value: Any, rule: str, blamed: str) -> None:
    found = {(problem.rule, problem.path) for problem in errors(validate(changed(kind, path, value)))}
    assert (rule, long_path(blamed)) in found


def test_the_table_is_large_enough() -> None:
    refused = Counter(row.kind for row in REFUSED for _ in row.values)
    accepted = Counter(row.kind for row in ACCEPTED for _ in row.values)
    assert refused.total() + accepted.total() >= 600
    assert refused["NodeOverlay"] + refused["CapacityBuffer"] >= 70
    assert accepted["NodeOverlay"] + accepted["CapacityBuffer"] >= 45


def test_every_rule_of_the_two_newest_kinds_that_refuses_has_a_row() -> None:
    wanted = {r.id for kind in ("NodeOverlay", "CapacityBuffer") for r in cel.rules(kind)}
    wanted |= {rule for rule, entry in book().items() if rule.startswith(("KERF-NO-1", "KERF-CB-1"))}
    assert wanted <= {row.rule for row in REFUSED}
