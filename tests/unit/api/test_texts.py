"""Lists and numbers in messages."""

from __future__ import annotations

import pytest

from kerf_api.texts import counted, shortened


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a, b"),
        (("a", "b", "c"), "a, b and 1 more"),
        ([str(number) for number in range(1, 2003)], "1, 2 and 2,000 more"),
    ],
)
def test_a_list_has_its_first_items_and_the_number_of_the_others(items: list[str], text: str) -> None:
    assert shortened(items, 2) == text


def test_nouns_agree_with_their_number() -> None:
    assert [counted(number, "pod") for number in (0, 1, 2, 1000)] == ["0 pods", "1 pod", "2 pods", "1,000 pods"]


def test_a_name_for_programs_has_a_plain_number() -> None:
    assert [counted(number, "pod", grouped=False) for number in (1, 1000)] == ["1 pod", "1000 pods"]
