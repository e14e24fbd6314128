"""Every numbered behaviour of the catalogue (AWS provider reference §13) has a test that bears its number, or a row in
docs/aws.md that says why Kerf differs; but for those that are to come."""

from __future__ import annotations

from tests.unit.catalogues import AWS


def test_every_number_has_a_test_or_a_reason() -> None:
    assert AWS.missing() == []
    assert AWS.unknown() == []


def test_few_behaviours_differ() -> None:
    assert AWS.differing() <= 1


def test_what_is_built_is_not_to_come() -> None:
    assert sorted(set(AWS.to_come) & {*AWS.tests(), *AWS.rows()}) == []
