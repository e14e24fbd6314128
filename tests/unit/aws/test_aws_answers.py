"""What AWS answered is kept for a while, and not when somebody knows better."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kerf.aws.requests.answers import FOR_EVER, Answers, just_under
from kerf.ports import Throttled

KEY = ("describe_subnets", "a")


class Shelf:
    """Answers, at an instant that a test sets; `said` is what AWS says, or raises."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.said: Any = "this"
        self.asked = 0
        self.answers = Answers(lambda: self.seconds)

    def ask(self, seconds: float = 60.0, key: tuple[str, ...] = KEY) -> Any:
        return self.answers.ask(key, self._read, seconds)

    def _read(self) -> Any:
        self.asked += 1
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


def test_an_answer_is_kept_until_its_time_is_over() -> None:
    shelf = Shelf()
    shelf.ask()
    shelf.said = "that"
    shelf.seconds += 59
    assert (shelf.ask(), shelf.answers.knows(KEY), shelf.asked) == ("this", True, 1)
    shelf.seconds += 1
    assert not shelf.answers.knows(KEY)
    assert (shelf.ask(), shelf.asked) == ("that", 2)


def test_each_question_has_an_answer_of_its_own() -> None:
    shelf = Shelf()
    shelf.ask()
    shelf.said = "that"
    assert shelf.ask(key=("describe_subnets", "b")) == "that"
    assert shelf.ask() == "this"


def test_what_never_changes_is_kept_for_ever() -> None:
    shelf = Shelf()
    shelf.ask(FOR_EVER)
    shelf.seconds += 1e9
    shelf.ask(FOR_EVER)
    assert shelf.asked == 1


@pytest.mark.parametrize("nothing", ["", [], ()])
def test_that_nothing_is_there_is_asked_anew(nothing: Any) -> None:
    shelf = Shelf()
    shelf.said = nothing
    assert shelf.ask() == nothing
    shelf.said = "that"
    assert shelf.ask() == "that"


def test_an_error_is_no_answer() -> None:
    shelf = Shelf()
    shelf.said = Throttled("not now")
    with pytest.raises(Throttled):
        shelf.ask()
    shelf.said = "this"
    assert shelf.ask() == "this"


def test_what_is_forgotten_is_asked_anew_and_nothing_else() -> None:
    shelf = Shelf()
    for key in (KEY, ("describe_images", "a")):
        shelf.ask(key=key)
    shelf.answers.forget(lambda key: key[0] == "describe_subnets")
    assert (shelf.answers.knows(KEY), shelf.answers.knows(("describe_images", "a"))) == (False, True)


def test_an_answer_that_was_on_its_way_when_it_was_forgotten_is_not_kept() -> None:
    """What it says may be from before whatever somebody knows better."""
    shelf = Shelf()

    def read() -> str:
        shelf.answers.forget(lambda key: key == KEY)
        return "old"

    assert shelf.answers.ask(KEY, read, 60) == "old"
    shelf.said = "new"
    assert shelf.ask() == "new"


def test_an_answer_counts_from_when_it_was_asked_for() -> None:
    shelf = Shelf()

    def slowly() -> str:
        shelf.seconds += 50
        return "this"

    shelf.answers.ask(KEY, slowly, 60)
    shelf.seconds += 10
    assert not shelf.answers.knows(KEY)


def test_a_look_that_is_due_after_the_interval_asks_anew() -> None:
    """It is due after the interval since the last one began, and that had asked a moment later."""
    shelf = Shelf()
    shelf.ask(just_under(timedelta(minutes=1)))
    shelf.seconds += 59.9
    shelf.ask()
    assert shelf.asked == 2
