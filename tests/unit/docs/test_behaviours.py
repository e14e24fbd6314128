"""docs/behaviours.md says what each number is that a test bears."""

from __future__ import annotations

from tests.unit import behaviours
from tests.unit.catalogues import CATALOGUES


def test_the_page_is_what_the_tests_say() -> None:
    assert behaviours.PAGE.read_text(encoding="utf-8") == behaviours.page(), "python -m tests.unit.behaviours"


def test_each_number_that_a_test_bears_has_a_row() -> None:
    text = behaviours.page()
    for each in CATALOGUES.values():
        assert [number for number in each.tests() if f"\n| {number} | " not in text] == []
