"""Reviews of many namespaces: so many at once, one flight for a person, one deadline, and no answer made up."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kerf.cli.gate.claims import Identity
from kerf.cli.gate.flights import THREADS, Answered
from kerf.cli.gate.reviews import KEPT_SECONDS, Reviews
from kerf.ports import Unavailable
from tests.unit.gate.worlds import SECRET, Cluster, Tried

NAMES = frozenset(f"team-{number}" for number in range(200))
EVEN = frozenset(f"team-{number}" for number in range(0, 200, 2))


class Server:
    """An API server that answers a review after some seconds, or when `gate` opens; even numbers are allowed."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds, self.gate = seconds, threading.Event()
        self.gate.set()
        self.asked, self.now, self.most = list[tuple[str, str]](), 0, 0
        self.broken, self.removed, self.bug = "", "", False
        #: The time, and its seconds of each review.
        self.clock, self.step = 0.0, 0.0
        self._lock = threading.Lock()

    def request(self, _: str, path: str, body: Any) -> Any:
        space, user = body["spec"]["resourceAttributes"]["namespace"], body["spec"]["user"]
        if not space:
            return {"status": {"allowed": user == "ann"}}
        with self._lock:
            self.asked.append((user, space))
            self.now += 1
            self.most = max(self.most, self.now)
            self.clock += self.step
            assert 1 // (not self.bug)
        self.gate.wait(10)
        time.sleep(self.seconds)
        with self._lock:
            self.now -= 1
        if space == self.broken:
            raise Unavailable("no answer")
        return {"status": {"allowed": space in EVEN and space != self.removed}}

    def reviews(self, patience: float = 10.0) -> Reviews:
        return Reviews(self.request, ["kerf-ui"], patience, now=lambda: self.clock)


def test_many_namespaces_are_asked_about_at_once() -> None:
    server = Server(seconds=0.02)
    assert server.reviews().namespaces(Identity("sam"), NAMES) == Answered(EVEN)
    assert sorted(space for _, space in server.asked) == sorted(NAMES)
    assert 1 < server.most <= THREADS


def test_requests_of_one_person_share_a_flight() -> None:
    server = Server()
    server.gate.clear()
    reviews = server.reviews()
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(reviews.namespaces, Identity("sam"), NAMES) for _ in range(4)]
        while server.most < THREADS:
            time.sleep(0.01)
        server.gate.set()
        assert [one.result() for one in found] == [Answered(EVEN)] * 4
    assert len(server.asked) == len(NAMES)


def test_people_do_not_share_answers() -> None:
    server = Server()
    reviews = server.reviews()
    for user in ("sam", "nina"):
        reviews.namespaces(Identity(user), NAMES)
    assert {user for user, _ in server.asked} == {"sam", "nina"}
    assert len(server.asked) == 2 * len(NAMES)


def test_a_flight_does_not_wait_for_the_whole_flight_of_another_person() -> None:
    server = Server(seconds=0.005)
    reviews = server.reviews()
    with ThreadPoolExecutor(1) as pool:
        many = pool.submit(reviews.namespaces, Identity("sam"), frozenset(f"n-{number}" for number in range(2000)))
        while len(server.asked) < 2 * THREADS:
            time.sleep(0.001)
        reviews.namespaces(Identity("nina"), frozenset({"team-2"}))
        assert not many.done()


def test_after_the_deadline_open_namespaces_are_refused_and_counted_and_asked_on() -> None:
    server = Server()
    server.gate.clear()
    reviews = server.reviews(patience=0.05)
    assert reviews.namespaces(Identity("sam"), NAMES) == Answered(frozenset(), len(NAMES))
    server.gate.set()
    until = time.monotonic() + 10
    while (found := reviews.namespaces(Identity("sam"), NAMES)).unanswered and time.monotonic() < until:
        assert (found.namespaces or frozenset()) <= EVEN
    assert found == Answered(EVEN)
    assert len(server.asked) == len(NAMES)


def test_a_flight_ends_although_the_server_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kerf.cli.gate.flights.LONGEST_SECONDS", 0.1)
    server = Server(seconds=0.08)
    found = server.reviews(patience=10.0).namespaces(Identity("sam"), NAMES)
    assert 0 < found.unanswered < len(NAMES)
    time.sleep(0.3)
    assert len(server.asked) < len(NAMES)


def test_a_namespace_whose_review_fails_is_refused_and_asked_about_again_later() -> None:
    server = Server()
    server.broken = "team-8"
    reviews = server.reviews()
    for _ in range(2):
        assert reviews.namespaces(Identity("sam"), NAMES) == Answered(EVEN - {"team-8"}, failed=1)
    assert len(server.asked) == len(NAMES)
    server.broken, server.clock = "", KEPT_SECONDS
    assert reviews.namespaces(Identity("sam"), NAMES) == Answered(EVEN)


def test_a_bug_in_a_review_is_the_error_of_the_request() -> None:
    server = Server()
    server.bug = True
    with pytest.raises(ZeroDivisionError):
        server.reviews().namespaces(Identity("sam"), NAMES)


def test_time_counts_from_the_question_of_each_namespace() -> None:
    """The reviews of 50 namespaces that last longer than an answer is kept are never used together."""
    server = Server()
    server.step = KEPT_SECONDS / 20
    found = server.reviews().namespaces(Identity("sam"), NAMES)
    assert 0 < len(NAMES) - found.unanswered <= 20
    server.step = 0.0
    assert server.reviews().namespaces(Identity("sam"), NAMES) == Answered(EVEN)


def test_a_removed_permission_has_no_effect_after_the_time_of_an_answer() -> None:
    """Also when other answers of the same flight came later."""
    server = Server()
    reviews = server.reviews()
    reviews.namespaces(Identity("sam"), frozenset({"team-2"}))
    server.clock = KEPT_SECONDS - 1
    assert reviews.namespaces(Identity("sam"), NAMES) == Answered(EVEN)
    server.removed = "team-2"
    server.clock = KEPT_SECONDS
    assert reviews.namespaces(Identity("sam"), NAMES) == Answered(EVEN - {"team-2"})


def test_the_page_says_that_permissions_are_not_known_yet_and_shows_no_name() -> None:
    cluster, gate = Cluster(), threading.Event()
    tried = Tried(cluster, patience=0.05)
    plain = cluster.request

    def slow(method: str, path: str, body: Any) -> Any:
        if body["spec"].get("resourceAttributes", {}).get("namespace"):
            gate.wait(10)
        return plain(method, path, body)

    tried.reviews._request = slow
    answer = tried.get("/pending", token="shop-token")
    assert "permissions in 2 namespaces are not known yet: reload the page" in answer.text
    assert SECRET not in answer.text
    assert "shop-3" not in answer.text
    assert len(tried.readings.views) == 1  # of no namespace: none of these permissions is final
    gate.set()
    until = time.monotonic() + 10
    while "not known yet" in (text := tried.get("/pending", token="shop-token").text) and time.monotonic() < until:
        time.sleep(0.01)
    assert ("shop-3" in text, SECRET in text) == (True, False)
