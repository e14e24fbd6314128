"""Every numbered behaviour of the catalogue (disruption reference §10) has a test that bears its number, or a row in
docs/disruption.md that says why Kerf differs; but for those that are to come."""

from __future__ import annotations

from tests.unit.catalogues import DISRUPTION


def test_every_number_has_a_test_or_a_reason() -> None:
    assert DISRUPTION.missing() == []
    assert DISRUPTION.unknown() == []


def test_few_behaviours_differ() -> None:
    assert DISRUPTION.differing() <= 1


def test_what_is_built_is_not_to_come() -> None:
    assert sorted(set(DISRUPTION.to_come) & {*DISRUPTION.tests(), *DISRUPTION.rows()}) == []
