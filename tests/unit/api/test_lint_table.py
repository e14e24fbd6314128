"""Every row of the table: what is accepted has no error, what is refused is refused by that rule at that place."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import pytest

from kerf_api.lint.expressions import cel
from kerf_api.lint.rulebook import book

from .corpus import Case, creations
from .table import REFUSED
from .table.explained import EXPLAINED

CREATIONS: Final = creations()
#: What the API server refuses by itself although no definition says so: metadata that no object can have, and more
#: replicas than the scale subresource can count.
OF_THE_SERVER: Final = {*(f"KERF-META-{number}" for number in range(101, 108)), "KERF-NP-124"}


@pytest.mark.parametrize("case", [pytest.param(case, id=case.label) for case in CREATIONS if not case.rule])
def test_accepted(case: Case) -> None:
    assert case.errors() == ()


@pytest.mark.parametrize("case", [pytest.param(case, id=case.label) for case in CREATIONS if case.rule])
def test_refused(case: Case) -> None:
    assert (case.rule, case.blamed) in {(problem.rule, problem.path) for problem in case.errors()}


def test_the_table_is_large_enough_and_every_refusal_names_a_field() -> None:
    refused = Counter(case.kind for case in CREATIONS if case.rule)
    accepted = Counter(case.kind for case in CREATIONS if not case.rule)
    assert refused.total() + accepted.total() >= 600
    assert refused["NodeOverlay"] + refused["CapacityBuffer"] >= 70
    assert accepted["NodeOverlay"] + accepted["CapacityBuffer"] >= 45
    assert all(case.blamed for case in CREATIONS if case.rule)


def test_every_rule_of_the_two_newest_kinds_that_refuses_has_a_row() -> None:
    wanted = {r.id for kind in ("NodeOverlay", "CapacityBuffer") for r in cel.rules(kind)}
    wanted |= {rule for rule, entry in book().items() if rule.startswith(("KERF-NO-1", "KERF-CB-1"))}
    assert wanted <= {row.rule for row in REFUSED}


def test_every_rule_that_no_definition_states_is_explained() -> None:
    """Here for those who cannot run `make verdicts`, which asks a real API server."""
    unstated = {row.rule for row in REFUSED if re.fullmatch(r"KERF-[A-Z0-9]+-[1-9]\d\d", row.rule)}
    assert unstated - OF_THE_SERVER == EXPLAINED.keys()
