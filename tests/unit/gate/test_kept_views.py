"""Views are made in the background: nobody waits while there are earlier ones, and none is shown for long."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kerf.cli.gate.kept_views import MOST_VIEWS, STALE_SECONDS, KeptViews
from tests.unit.gate.worlds import SECRET, Cluster, Tried


class Source:
    """A reading whose views are texts, made when `gate` is open."""

    def __init__(self, name: str) -> None:
        self.name, self.gate = name, threading.Event()
        self.gate.set()
        self.made: list[Any] = []
        self.broken = False

    def board(self, namespaces: Any) -> Any:
        self.gate.wait(10)
        if self.broken:
            raise ValueError("broken")
        self.made.append(namespaces)
        return f"{self.name}:{sorted(namespaces or ())}"


class World:
    """Kept views at a time that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.views = KeptViews(lambda: self.now)

    def follow(self, name: str, ready: bool = True) -> Source:
        source = Source(name)
        if not ready:
            source.gate.clear()
        self.views.follow(source)
        return source

    def board(self, *names: str) -> Any:
        return self.views.board(frozenset(names))

    def settle(self) -> None:
        """Wait for the views that are being made."""
        self.views._pool.submit(lambda: None).result(10)


def test_people_with_the_same_permissions_share_views() -> None:
    world = World()
    first = world.follow("first")
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: world.board("a"), range(8))) == {"first:['a']"}
    assert first.made == [frozenset({"a"})]


def test_while_new_views_are_made_readers_get_the_earlier_ones() -> None:
    world = World()
    world.follow("first")
    world.board("a")
    second = world.follow("second", ready=False)
    assert world.board("a") == "first:['a']"
    second.gate.set()
    world.settle()
    assert world.board("a") == "second:['a']"
    assert second.made == [frozenset({"a"})]


def test_views_that_are_asked_for_are_made_before_the_next_request() -> None:
    world = World()
    world.follow("first")
    world.board("a")
    second = world.follow("second")
    world.settle()
    assert second.made == [frozenset({"a"})]
    third = world.follow("third")
    world.settle()
    assert third.made == []  # nobody asked since the second reading


def test_earlier_views_are_shown_for_a_bounded_time() -> None:
    world = World()
    world.follow("first")
    world.board("a")
    second = world.follow("second", ready=False)
    world.now = STALE_SECONDS
    assert world.board("a") == "first:['a']"
    world.now += 1
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(world.board, "a")
        assert not waiting.done()
        second.gate.set()
        assert waiting.result(10) == "second:['a']"


def test_time_counts_from_the_first_later_reading() -> None:
    world = World()
    world.follow("first")
    world.board("a")
    slow = world.follow("second", ready=False)
    world.now = STALE_SECONDS
    world.follow("third")
    world.now += 1
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(world.board, "a")
        slow.gate.set()
        assert waiting.result(10) in ("second:['a']", "third:['a']")


def test_earlier_views_of_other_permissions_are_not_shown() -> None:
    world = World()
    world.follow("first")
    world.board("a", "b")
    world.follow("second")
    assert world.board("a") == "second:['a']"


def test_rows_are_bounded_and_old_ones_are_dropped() -> None:
    world = World()
    world.follow("first")
    for number in range(MOST_VIEWS + 4):
        world.board(f"n{number}")
    assert len(world.views) == MOST_VIEWS
    world.follow("second")
    world.settle()
    world.follow("third")
    world.now = STALE_SECONDS + 1
    world.follow("fourth")
    assert len(world.views) == 0


def test_an_error_is_that_of_the_requests_that_wait_and_views_are_made_again() -> None:
    world = World()
    first = world.follow("first")
    first.broken = True
    with pytest.raises(ValueError, match="broken"):
        world.board("a")
    first.broken = False
    assert world.board("a") == "first:['a']"


def test_a_page_of_earlier_views_shows_their_time_and_no_other_name() -> None:
    cluster = Cluster()
    tried = Tried(cluster)
    before = tried.get("/", token="shop-token").text
    gate = threading.Event()
    tried.readings.views._pool.submit(gate.wait, 10)
    tried.readings.read()
    during = tried.get("/", token="shop-token").text
    gate.set()
    assert "2026-03-02 10:00:00 UTC" in during
    assert (during, SECRET in during) == (before, False)
