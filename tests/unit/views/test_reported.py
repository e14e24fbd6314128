"""The Events of a live cluster on the page: order, search, bounds, missing permissions, and origins without any."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from kerf.cli.answering.boards import Boards
from kerf.cli.web import reported
from kerf.cli.web.app import create_app
from kerf.cli.web.reported import Events
from kerf.cli.web.server import hosts
from kerf.model.kinds import Kind
from kerf.ports import Forbidden, Listing, PortError
from tests.unit.cli.test_events import NOW, event
from tests.unit.views import worlds
from tests.unit.views.test_page import Browser, page

EVENTS = (
    event("NodePool/general", "ConsolidationMeasured", "3 nodes were removed", 8),
    event("NodeClaim/general-0a1b2c3d", "Launched", "Status condition transitioned", 30),
    event("Pod/shop/web-1", "FailedScheduling", "no NodePool has <b>room</b>", 2, type="Warning", count=7),
    event("Node/ip-1", "DisruptionBlocked", "PodDisruptionBudget shop/keep allows none", 4),
)


class Server:
    """An API server with these events; `error` is its answer instead. `asked` are the paths of its requests."""

    def __init__(self, events: Sequence[Any] = EVENTS, error: PortError | None = None) -> None:
        self.events, self.error, self.asked = events, error, list[str]()

    def request(self, method: str, path: str) -> Any:
        self.asked.append(f"{method} {path}")
        if self.error is not None:
            raise self.error
        return {"items": self.events}

    def list(self, kind: Kind, *, field_selector: str = "") -> Listing:
        raise AssertionError("the page reads events only")


class Clock:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> Any:
        return self.at

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing sleeps")


def asked(server: Server, clock: Clock | None = None) -> FlaskClient:
    """The page of a cluster with this API server."""
    events = Events(lambda: server, clock or Clock())
    app = create_app(Boards(worlds.origin(worlds.cluster())), hosts(8900), events=events)
    app.test_client_class = Browser
    return app.test_client()


def table(text: str) -> str:
    return text.split('<h2 id="events">')[1]


def test_events_are_newest_first_with_object_count_and_message() -> None:
    text = table(asked(Server()).get("/history").text)
    order = ["FailedScheduling", "DisruptionBlocked", "ConsolidationMeasured", "Launched"]
    assert sorted(order, key=text.index) == order
    row = text.split("FailedScheduling")[1].split("</tr>")[0]
    assert "Warning" in row
    assert "7 times" in row
    assert "no NodePool has &lt;b&gt;room&lt;/b&gt;" in row
    assert "pod/shop/web-1" in row


def test_the_search_finds_events_too() -> None:
    text = table(asked(Server()).get("/history?q=NODECLAIM/").text)
    assert ("Launched" in text, "FailedScheduling" in text) == (True, False)
    assert "No event of Kerf has this text" in asked(Server()).get("/history?q=nothing-like-it").text


def test_events_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reported, "MOST", 3)
    text = table(asked(Server()).get("/history").text)
    assert ("Launched" in text, "1 older event" in text) == (False, True)


def test_they_are_read_when_the_page_is_asked_for_and_kept_for_half_a_minute() -> None:
    server, clock = Server(), Clock()
    tried = asked(server, clock)
    assert [tried.get(path).status_code for path in ("/", "/cost")] == [200, 200]
    assert server.asked == []
    for seconds in (0, 10, 19):
        clock.at += timedelta(seconds=seconds)
        assert "Launched" in tried.get("/history").text
    assert len(server.asked) == 1
    assert server.asked[0].startswith("GET /api/v1/events?fieldSelector=source%3Dkarpenter")
    clock.at += timedelta(seconds=1)
    tried.get("/history")
    assert len(server.asked) == 2


def test_a_missing_permission_is_named() -> None:
    text = table(asked(Server(error=Forbidden("no"))).get("/history").text)
    assert "Not checked: events: needs permission to list events in all namespaces" in text


def test_an_origin_without_events_says_so() -> None:
    text = table(page(worlds.cluster()).get("/history").text)
    assert "Records, snapshots and files have no Events" in text
    assert "<table" not in text
