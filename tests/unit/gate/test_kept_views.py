"""Views are made in the background: no request waits while there are earlier ones, and none is shown for long."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kerf.cli.gate.kept_views import (
    FEWEST_VIEWS,
    IN_USE_SECONDS,
    MOST_BYTES,
    MOST_VIEWS,
    STALE_SECONDS,
    KeptViews,
    Pages,
)
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
        return self.views.made(frozenset(names)).board

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
    assert third.made == []  # no request since the second reading


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


def test_more_sets_than_are_kept_push_out_none_that_is_in_use() -> None:
    """Each set is made once for a reading, however many people ask in turn."""
    world = World()
    first = world.follow("first")
    sets = [frozenset({"a", f"n{number}"}) for number in range(MOST_VIEWS - 2)]
    more = [frozenset({"a", f"m{number}"}) for number in range(10)]
    for shown in (frozenset[str](), frozenset({"a"}), *sets):
        world.views.made(world.views.seat(shown))
    for _ in range(3):
        for shown in (*sets, *more):
            found: Any = world.views.made(world.views.seat(shown)).board
            assert found == f"first:{sorted(shown) if shown in sets else ['a']}"
    assert len(first.made) == len(set(first.made)) == MOST_VIEWS == len(world.views)
    world.now += IN_USE_SECONDS
    assert [world.views.seat(shown) for shown in more] == more


def test_the_views_of_the_whole_cluster_and_of_no_namespace_have_a_seat_always() -> None:
    world = World()
    world.follow("first")
    for number in range(MOST_VIEWS):
        world.board(f"n{number}")
    assert world.views.seat(frozenset({"other"})) == frozenset()
    assert world.board() == "first:[]"
    whole: Any = world.views.made(None).board
    assert whole == "first:[]"
    assert len(world.views) == MOST_VIEWS


@pytest.mark.parametrize(("pods", "most"), [(0, MOST_VIEWS), (15_000, 64), (40_000, 25), (10**7, FEWEST_VIEWS)])
def test_fewer_sets_are_kept_of_more_pods(pods: int, most: int) -> None:
    world = World()
    world.views.follow(Source("first"), pods)
    for number in range(MOST_VIEWS + 4):
        world.board(f"n{number}")
    assert len(world.views) == most


def test_the_page_says_that_names_are_left_out_for_other_people(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_VIEWS", "FEWEST_VIEWS"):
        monkeypatch.setattr(f"kerf.cli.gate.kept_views.{name}", 1)
    tried = Tried(Cluster())
    tried.get("/", token="admin-token")
    text = tried.get("/pending", token="shop-token").text
    assert "pods of 1 namespace are shown without names: too many people with other permissions use the page" in text
    assert ("shop-3" in text, SECRET in text) == (False, False)


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


def test_pages_are_bounded_by_their_size() -> None:
    pages = Pages()
    half = b"x" * (MOST_BYTES // 2)
    for key in ("a", "b"):
        pages.put(key, half)
    pages.put("b", half)
    assert pages.get("a") == half
    pages.put("c", b"y")
    assert [pages.get(key) is None for key in "abc"] == [False, True, False]


@pytest.mark.parametrize("path", ["/nodes/node-a", "/cost?label=app", "/pods/shop/shop-3"])
def test_an_answer_is_made_once_for_a_reading_and_checked_each_time(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, made = Cluster(), list[str]()
    tried = Tried(cluster)
    render = tried.app.jinja_env.get_template

    def counted(name: Any, *more: Any, **others: Any) -> Any:
        made.append(str(name))
        return render(name, *more, **others)

    monkeypatch.setattr(tried.app.jinja_env, "get_or_select_template", counted)
    first = tried.get(path, token="shop-token")
    again = tried.get(path, token="shop-token")
    assert (first.status_code, again.text, len(made)) == (200, first.text, 1)
    assert again.headers["Content-Security-Policy"] == first.headers["Content-Security-Policy"]
    assert tried.get(path, token="none-token").text != first.text
    assert tried.get(path, token="stranger-token").status_code == 403
    assert tried.get(path).status_code == 401
    before = len(made)
    tried.readings.read()
    tried.readings.views._pool.submit(lambda: None).result(10)
    tried.get(path, token="shop-token")
    assert len(made) == before + 1


def test_a_page_is_not_kept_for_another_text_of_its_head() -> None:
    """A failed reading is shown although the views are the same."""
    cluster = Cluster()
    tried = Tried(cluster)
    tried.get("/", token="admin-token")
    cluster.down = True
    tried.readings.read()
    assert "The cluster was not read again" in tried.get("/", token="admin-token").text


def test_errors_are_not_kept() -> None:
    tried = Tried(Cluster())
    assert [tried.get("/nodes/zzz", token="admin-token").status_code for _ in range(2)] == [404, 404]
