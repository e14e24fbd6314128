"""Every numbered behaviour of the catalogue (AWS provider reference §13) has a test that bears its number, or a row in
docs/aws.md that says why Kerf differs."""

from __future__ import annotations

from tests.unit.catalogues import AWS


def test_every_number_has_a_test_or_a_reason() -> None:
    assert AWS.missing() == []
    assert AWS.unknown() == []


def test_few_behaviours_differ() -> None:
    assert AWS.differing() <= 1
