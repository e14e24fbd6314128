"""The questions of strangers: there are twenty, and every place that an answer names is there."""

from __future__ import annotations

import pytest

from tests.questions.asked import Question, missing, questions


def test_there_are_twenty_questions_each_with_places() -> None:
    found = questions()
    assert len({one.question for one in found}) == len(found) >= 20
    assert [one.question for one in found if not one.places or not one.question.endswith("?")] == []


@pytest.mark.parametrize("one", questions(), ids=lambda one: one.question)
def test_what_an_answer_names_is_there(one: Question) -> None:
    assert missing(one) == []


def test_a_place_that_is_not_there_is_found() -> None:
    one = Question("Where?", "Nowhere.", ("decide.py:decide", "decide.py:undecide", "no/such/folder"))
    assert missing(one) == ["decide.py:undecide", "no/such/folder"]
