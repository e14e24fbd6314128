"""The loop goes first: who computes for long waits for the end of its turn, and goes on though the turn be long."""

from __future__ import annotations

import threading

import pytest

from kerf.telemetry import precedence
from kerf.telemetry.precedence import Precedence, in_steps


def test_between_turns_nobody_waits() -> None:
    loop = Precedence()
    assert loop.give_way()
    with loop.turn():
        pass
    assert loop.give_way()


def test_a_step_waits_for_the_end_of_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precedence, "PATIENCE_SECONDS", 60.0)
    loop, went = Precedence(), threading.Event()

    def compute() -> None:
        loop.give_way()
        went.set()

    with loop.turn():
        thread = threading.Thread(target=compute)
        thread.start()
        assert not went.wait(0.05)
    assert went.wait(30)
    thread.join()


def test_during_a_long_turn_it_goes_on_by_a_step_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precedence, "PATIENCE_SECONDS", 0.001)
    loop = Precedence()
    with loop.turn():
        assert not loop.give_way()


def test_a_turn_that_fails_is_over() -> None:
    loop = Precedence()
    with pytest.raises(ZeroDivisionError), loop.turn():
        raise ZeroDivisionError
    assert loop.give_way()


def test_it_gives_way_before_each_step() -> None:
    ways: list[int] = []
    items = in_steps("abcde", lambda: ways.append(1), 2)
    assert [(item, len(ways)) for item in items] == [("a", 1), ("b", 1), ("c", 2), ("d", 2), ("e", 3)]
