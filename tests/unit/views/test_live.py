"""Live updates: events for new readings, their bound and end, and the script in a real Chromium."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kerf.cli.answering.boards import Boards
from kerf.cli.answering.captures import Origin
from kerf.cli.web.live import MOST_STREAMS, stream
from kerf.model.snapshot import Snapshot
from tests.unit.disruption.worlds import pairs, pool
from tests.unit.docs.browser import CHROMIUM, Page, browser
from tests.unit.views import worlds
from tests.unit.views.serving import serving
from tests.unit.views.test_page import client, page


class Cluster:
    """A live cluster that gets one more node with every reading."""

    def __init__(self) -> None:
        self.count = 0

    def read(self) -> Snapshot:
        self.count += 1
        closed = pool(budgets=[{"nodes": "0", "schedule": "@daily", "duration": "8h"}])
        return worlds.cluster(closed, *pairs(*(f"n{number}" for number in range(self.count))))


def live() -> Boards:
    """Its views; the tests read again."""
    return Boards(Origin("cluster a", Cluster().read, live=True))


def test_a_new_reading_is_an_event() -> None:
    boards = live()
    events = stream(boards, quiet=0.01)
    assert next(events).startswith("retry: ")
    assert next(events) == ": quiet\n\n"
    boards.read()
    assert next(events) == "event: reading\nid: 2\ndata: 2\n\n"
    assert next(events) == ": quiet\n\n"


def test_the_thread_goes_on_after_an_unexpected_error_and_reports_it_once() -> None:
    cluster, reported, broken = Cluster(), list[str](), threading.Event()

    def read() -> Snapshot:
        if broken.is_set():
            raise ZeroDivisionError("a number is 0")
        return cluster.read()

    boards = Boards(Origin("cluster a", read, live=True), every=0.01, report=reported.append)
    broken.set()
    boards.start()
    boards.wait(4, 10)
    text = client(boards).get("/").text
    assert re.search("last reading failed at [-0-9]{10} [:0-9]{8} UTC: ZeroDivisionError: a number is 0", text)
    assert "node-n0" in text
    assert ["ZeroDivisionError: a number is 0" in one for one in reported] == [True]
    broken.clear()
    boards.wait(boards.readings + 1, 10)
    assert (boards.problem, boards.failed_at, len(boards.current.nodes) > 3) == ("", None, True)
    boards.stop()


def test_a_report_that_fails_ends_no_thread() -> None:
    """Standard error may be closed."""
    cluster, broken = Cluster(), threading.Event()

    def read() -> Snapshot:
        if broken.is_set():
            raise ZeroDivisionError("a number is 0")
        return cluster.read()

    def report(text: str) -> None:
        raise BrokenPipeError(text)

    boards = Boards(Origin("cluster a", read, live=True), every=0.01, report=report)
    broken.set()
    boards.start()
    assert boards.wait(4, 10) > 4
    assert boards.problem.startswith("ZeroDivisionError")
    boards.stop()


def test_a_stream_waits_for_the_reading_and_ends_with_the_views() -> None:
    boards = live()
    events = stream(boards, quiet=60)
    next(events)
    for act in (boards.read, boards.stop):
        threading.Timer(0.05, act).start()
    found = list(events)
    assert len(found) <= 2
    assert boards.stopped


def test_streams_are_bounded_and_a_closed_one_is_free_again() -> None:
    asked = client(live())
    answers = [asked.get("/events") for _ in range(MOST_STREAMS)]
    assert {one.status_code for one in answers} == {200}
    assert answers[0].mimetype == "text/event-stream"
    refused = asked.get("/events")
    assert (refused.status_code, "reload by hand" in refused.text) == (503, True)
    answers[0].close()
    assert asked.get("/events").status_code == 200


def test_only_a_live_origin_has_events_and_the_script() -> None:
    assert page(worlds.cluster()).get("/events").status_code == 404
    assert "<script" not in page(worlds.cluster()).get("/").text
    text = client(live()).get("/").text
    assert text.count("<script") == text.count('<script src="/static/live.js" defer></script>') == 1


@pytest.fixture
def served() -> Iterator[tuple[Boards, str]]:
    boards = live()
    with serving(boards) as address:
        yield boards, address
        boards.stop()


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[Page]:
    with browser(tmp_path / "profile") as found:
        for domain in ("Page", "Runtime", "Log"):
            found.call(f"{domain}.enable")
        yield found


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_the_script_replaces_the_content_and_keeps_the_place(tab: Page, served: tuple[Boards, str]) -> None:
    boards, address = served
    tab.open(f"{address}/")
    tab.evaluate("document.querySelector('input[name=q]').value = 'node-b'; document.querySelector('[name=q]').focus()")
    tab.evaluate("scrollTo(0, 60)")
    place = tab.evaluate("scrollY")
    assert tab.evaluate("document.body.textContent.includes('node-n1')") is False
    boards.read()
    tab.until("document.body.textContent.includes('node-n1')")
    assert tab.evaluate("document.querySelector('input[name=q]').value") == "node-b"
    assert tab.evaluate("document.activeElement.name") == "q"
    assert tab.evaluate("scrollY") == place
    assert [event for event in tab.events if event["method"] in ("Log.entryAdded", "Runtime.exceptionThrown")] == []


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_closed_details_stay_closed(tab: Page, served: tuple[Boards, str]) -> None:
    boards, address = served
    tab.open(f"{address}/next")
    tab.evaluate("document.querySelector('details').open = false")
    tab.evaluate("document.querySelector('#main').insertAdjacentHTML('beforeend', '<i id=old></i>')")
    boards.read()
    tab.until("!document.querySelector('#old')")
    assert tab.evaluate("document.querySelectorAll('h1').length") == 1
    assert tab.evaluate("document.querySelector('details').open") is False
