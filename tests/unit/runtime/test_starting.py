"""What is asked before the loop begins, of a server that refuses at first."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from kerf.ports import Forbidden, PortError, Throttled, Unavailable
from kerf.runtime.process.starting import PATIENCE, patiently
from kerf.sandbox.clock import VirtualClock
from tests.unit.lifecycle.world import NOW


class Server:
    """Refuses so often, and answers then."""

    def __init__(self, *refusals: PortError) -> None:
        self.refusals, self.asked = list(refusals), 0

    def ask(self, seconds: float) -> str:
        self.asked += 1
        if self.refusals:
            raise self.refusals.pop(0)
        return "1.36"


def test_a_server_that_is_busy_or_away_for_a_moment_is_asked_again() -> None:
    server = Server(Unavailable("refused"), Throttled("busy"), Unavailable("500"))
    assert patiently(server.ask, VirtualClock(NOW)) == "1.36"


def test_who_may_not_ask_is_told_at_once() -> None:
    server = Server(Forbidden("no"))
    with pytest.raises(Forbidden):
        patiently(server.ask, VirtualClock(NOW))
    assert server.asked == 1


def test_patience_ends() -> None:
    server, clock = Server(*(Unavailable("refused") for _ in range(1000))), VirtualClock(NOW)
    with pytest.raises(Unavailable):
        patiently(server.ask, clock)
    assert clock.now() <= NOW + PATIENCE
    assert server.asked >= PATIENCE.total_seconds() - 1


def test_patience_ends_though_every_answer_is_waited_for() -> None:
    clock, began = VirtualClock(NOW), NOW

    def silence(seconds: float) -> str:
        clock.sleep(min(seconds, 7.0))
        raise Unavailable("timed out")

    with pytest.raises(Unavailable):
        patiently(silence, clock)
    assert timedelta(seconds=15) < clock.now() - began <= PATIENCE


class SetBack(VirtualClock):
    """A clock whose time of day somebody sets back, by an hour, with every question."""

    wrong = timedelta(0)

    def now(self) -> datetime:
        return super().now() - self.wrong


def test_patience_ends_though_the_time_of_day_is_set_back() -> None:
    clock = SetBack(NOW)
    tried: list[float] = []

    def refuse(seconds: float) -> str:
        tried.append(seconds)
        clock.wrong += timedelta(hours=1)
        assert len(tried) < 100
        raise Unavailable("refused")

    with pytest.raises(Unavailable):
        patiently(refuse, clock)
    assert tried == sorted(tried, reverse=True)
