"""The page of a record: decisions, the views as of a time, the price over time, and its bounds."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient

from kerf.cli.answering.boards import Boards
from kerf.cli.answering.captures import Origin
from kerf.cli.arguments import Mistake
from kerf.cli.web import history as histories
from kerf.cli.web.history import History
from kerf.views.board import board
from tests.unit.records.lives import Life
from tests.unit.views import worlds
from tests.unit.views.test_page import client, page
from tests.worlds import deployment


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six minutes of a cluster whose Deployment grows after three."""
    life = Life(tmp_path_factory.mktemp("record"))
    life.live(3)
    life.world.apply(deployment("web", {"replicas": 40}))
    life.live(3)
    life.recorder.close()
    assert not life.errors
    return life.folder


@pytest.fixture(scope="module")
def history(folder: Path) -> History:
    return History(str(folder), pytest.fail)


@pytest.fixture(scope="module")
def asked(history: History) -> FlaskClient:
    return client(Boards(Origin("a record", lambda: history.latest().snapshot)), history)


def test_decisions_are_newest_first_with_their_objects(history: History) -> None:
    times = [one.at for one in history.entries]
    assert times == sorted(times, reverse=True)
    assert any(one.about("nodeclaim") for one in history.entries)
    assert any(name.startswith("Pod ") for one in history.entries for name in one.changed)
    assert history.omitted == 0 < len(history.entries) <= history.decisions


def test_the_views_are_those_of_the_time(history: History) -> None:
    latest = board(history.latest().snapshot)
    early = history.board(history.began + timedelta(minutes=2))
    assert early.now <= history.began + timedelta(minutes=2)
    assert early.pods < latest.pods
    assert 0 < early.price <= latest.price == history.moments[-1].price


def test_a_time_stays_in_every_link(asked: FlaskClient, history: History) -> None:
    at = (history.began + timedelta(minutes=2)).isoformat().replace("+00:00", "Z")
    for path in ("/", "/pending", "/next", "/cost", "/history"):
        text = asked.get(f"{path}?at={quote(at)}").text
        assert text.count(f"at={quote(at, safe='')}") >= 5
    assert f'<input type="hidden" name="at" value="{at}">' in asked.get(f"/?at={at}").text
    assert asked.get("/").text.count("at=") == 0


def test_the_slider_shows_the_views_of_its_place(asked: FlaskClient, history: History) -> None:
    text = asked.get("/?moment=0").text
    assert f"<time>{history.began:%Y-%m-%d %H:%M:%S} UTC</time>" in text
    assert f'max="{len(history.moments) - 1}" value="0"' in text
    assert 'type="range"' in text


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("at=yesterday", "it is no time"),
        ("at=2001-01-01T00:00:00Z", "it begins at"),
        ("moment=100000", "no such time"),
        ("moment=x", "no such time"),
    ],
)
def test_a_wrong_time_is_an_error_that_names_the_right_ones(asked: FlaskClient, query: str, words: str) -> None:
    answer = asked.get(f"/?{query}")
    assert (answer.status_code, words in answer.text) == (400, True)


@pytest.mark.parametrize("path", ["/none", "/nodes/none", "/pods/shop/none", "/?sort=none&"])
def test_an_error_page_keeps_the_time_and_the_navigation(asked: FlaskClient, history: History, path: str) -> None:
    at = (history.began + timedelta(minutes=2)).isoformat().replace("+00:00", "Z")
    answer = asked.get(f"{path}{'' if '?' in path else '?'}at={quote(at)}")
    assert answer.status_code in (400, 404)
    for view in ("pending", "next", "cost", "history", "plan"):
        assert f'href="/{view}?at={quote(at, safe="")}"' in answer.text
    assert "choose" in answer.text or "one of nodepool" in answer.text
    assert (
        f"<time>{history.board(history.began + timedelta(minutes=2)).now:%Y-%m-%d %H:%M:%S} UTC</time>" in answer.text
    )


def test_an_error_of_the_time_keeps_the_navigation_without_it(asked: FlaskClient) -> None:
    text = asked.get("/cost?at=yesterday").text
    assert 'href="/next"' in text
    assert "at yesterday: it is no time; write a time of RFC 3339 such as" in text
    assert 'action="/cost"' in text


def test_an_unexpected_error_is_a_page_with_the_time(history: History, monkeypatch: Any) -> None:
    tried = client(Boards(Origin("a record", lambda: history.latest().snapshot)), history)
    monkeypatch.setattr("kerf.cli.web.app.calendars", lambda *_: 1 / 0)
    at = (history.began + timedelta(minutes=2)).isoformat().replace("+00:00", "Z")
    answer = tried.get(f"/next?at={quote(at)}")
    assert (answer.status_code, "This is a bug of Kerf: report it" in answer.text) == (500, True)
    assert f'href="/cost?at={quote(at, safe="")}"' in answer.text
    assert "ZeroDivisionError" not in answer.text


def test_the_slider_keeps_the_rest_of_the_query(asked: FlaskClient) -> None:
    slider = asked.get("/cost?label=app&moment=0").text.split('<form class="time"')[1].split("</form>")[0]
    assert slider.count('<input type="hidden"') == slider.count('name="label" value="app"') == 1
    assert '<a href="/cost?label=app">Latest</a>' in slider
    listed = asked.get("/?q=web&sort=price&page=2").text.split('<form class="time"')[1].split("</form>")[0]
    assert [name for name in ("q", "sort", "page") if f'type="hidden" name="{name}"' in listed] == ["q", "sort"]


def test_the_page_filters_decisions_by_object(asked: FlaskClient, history: History) -> None:
    whole, some, none = (asked.get(f"/history{query}").text for query in ("", "?q=NODECLAIM", "?q=nothing-like-it"))
    count = sum(one.about("nodeclaim") for one in history.entries)
    assert f"of {count} decisions" in some
    assert f"of {len(history.entries)} decisions" in whole
    assert "No decisions" in none


def test_the_price_over_time_is_a_chart_and_a_table(asked: FlaskClient, history: History) -> None:
    answer = asked.get("/charts/cost.svg")
    assert (answer.mimetype, answer.text.count("<svg")) == ("image/svg+xml", 1)
    text = asked.get("/cost").text
    assert '<img src="/charts/cost.svg"' in text
    highest = max(one.price for one in history.moments)
    assert f"${highest / 1e6:,.3f}/h" in text.split('id="over-time"')[1]


def test_an_origin_without_history_says_how_to_get_one() -> None:
    tried = page(worlds.cluster())
    assert all("kerf ui --record DIR" in tried.get(path).text for path in ("/history", "/cost"))
    assert tried.get("/charts/cost.svg").status_code == 404
    assert tried.get("/?at=2026-01-01T00:00:00Z").status_code == 400


def test_a_long_record_stays_within_its_bounds(folder: Path, history: History, monkeypatch: Any) -> None:
    monkeypatch.setattr(histories, "MOST_TEXTS", 60)
    monkeypatch.setattr(histories, "MOST_MOMENTS", 3)
    small = History(str(folder), pytest.fail)
    assert sum(one.size for one in small.entries) <= 60
    assert len(small.entries) + small.omitted == len(history.entries)
    assert small.entries == history.entries[: len(small.entries)]
    assert (len(small.moments) <= 3, small.moments[0]) == (True, history.moments[0])


def test_a_folder_without_a_record_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="no file"):
        History(str(tmp_path), pytest.fail)


@pytest.fixture(scope="module")
def shrinking(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Twelve minutes of a cluster whose Deployment grows and then shrinks, so that consolidation removes nodes."""
    life = Life(tmp_path_factory.mktemp("record"))
    life.busy()
    life.recorder.close()
    return History(str(life.folder), pytest.fail)


def test_savings_are_the_prices_of_the_removed_nodes_less_their_replacements(shrinking: History) -> None:
    found = shrinking.savings
    assert found is not None
    (row,) = found.pools
    highest = max(one.price for one in shrinking.moments)
    assert (row.name, row.commands >= 1, row.removed >= 1) == ("general", True, True)
    assert row.saved == highest - shrinking.moments[-1].price > 0  # the sandbox has no other removals
    hours = (found.ended - found.began).total_seconds() / 3600
    assert 0 < found.amount < row.saved * hours


def test_the_page_has_the_savings_and_their_definition(shrinking: History) -> None:
    tried = client(Boards(Origin("a record", lambda: shrinking.latest().snapshot)), shrinking)
    text = tried.get("/cost").text.split('id="realised"')[1].split("</section>")[0]
    assert shrinking.savings is not None
    assert f"${shrinking.savings.all.saved / 1e6:,.3f}/h" in text
    assert "the price of the removed nodes less the price of their replacements" in text
    assert "Not counted" not in text


def test_without_a_record_there_is_no_figure_of_savings(history: History, asked: FlaskClient) -> None:
    text = page(worlds.cluster()).get("/cost").text.split('id="realised"')[1].split("</section>")[0]
    assert ("$" in text, "kerf ui --record DIR" in text) == (False, True)
    assert "The record has no completed consolidation" in asked.get("/cost").text
