"""Every numbered behaviour of the catalogue (scheduling reference §11) has a test that bears its number, or a row in
docs/scheduling.md that says why Kerf differs."""

from __future__ import annotations

from tests.unit.catalogues import SCHEDULING


def test_every_number_has_one_test_or_a_reason() -> None:
    assert SCHEDULING.missing() == []
    assert SCHEDULING.unknown() == []
    assert [number for number, found in SCHEDULING.tests().items() if len(found) > 1] == []


def test_few_behaviours_differ() -> None:
    assert SCHEDULING.differing() <= 1
