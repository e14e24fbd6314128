"""The page of `kerf ui` without a browser: answers, headers, refusals, hostile names."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from kerf.cli.answering.boards import Boards
from kerf.cli.answering.captures import Origin
from kerf.cli.arguments import Mistake
from kerf.cli.web.app import create_app
from kerf.cli.web.history import History
from kerf.cli.web.pages import ROWS, part
from kerf.cli.web.planned import Planned
from kerf.cli.web.server import hosts
from kerf.model.snapshot import Snapshot
from kerf.ports import Unavailable
from tests.unit.disruption.worlds import pairs, pool, snapshot
from tests.unit.views import worlds

HOST: Final = "127.0.0.1:8900"
PAGES: Final = (
    "/",
    "/pending",
    "/next",
    "/cost",
    "/history",
    "/plan",
    "/nodes/node-a",
    "/pods/shop/web-1",
    "/nodes/nope",
    "/nope",
)


class Browser(FlaskClient):
    """Asks for the address of the page, unless told otherwise."""

    def open(self, *args: Any, **more: Any) -> TestResponse:
        return super().open(*args, **{"base_url": f"http://{HOST}", **more})


def client(boards: Boards, history: History | None = None, plan: Planned | None = None) -> FlaskClient:
    """A browser of this machine."""
    app = create_app(boards, hosts(8900), history, plan)
    app.test_client_class = Browser
    return app.test_client()


def page(found: Snapshot) -> FlaskClient:
    """The page of one snapshot."""
    return client(Boards(worlds.origin(found)))


@pytest.fixture(scope="module")
def asked() -> FlaskClient:
    huge = [worlds.waiting(f"huge-{n}", "900", of="huge") for n in range(3)]
    return page(worlds.cluster(*huge))


@pytest.mark.parametrize("path", PAGES)
def test_every_answer_has_the_headers_and_no_code_inline(asked: FlaskClient, path: str) -> None:
    answer = asked.get(path)
    assert answer.status_code == (404 if "nope" in path else 200)
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
    assert (policy["default-src"], policy["style-src"]) == ("'none'", "'self'")
    assert (policy["script-src"], policy["connect-src"]) == ("'self'", "'self'")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cache-Control"] == "no-store"
    assert "<script" not in answer.text
    assert " style=" not in answer.text
    assert "http://" not in answer.text.replace(f"http://{HOST}", "")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])
@pytest.mark.parametrize("path", ["/", "/nodes/node-a", "/static/kerf.css", "/nope"])
def test_only_reads_are_answered(asked: FlaskClient, path: str, method: str) -> None:
    answer = asked.open(path, method=method)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("host", ["evil.example:8900", "127.0.0.1", "127.0.0.1:8901", "localhost.evil.example:8900"])
def test_another_host_is_refused(asked: FlaskClient, host: str) -> None:
    answer = asked.get("/", headers={"Host": host})
    assert answer.status_code == 403
    assert "node-a" not in answer.text


def test_names_of_this_machine_are_answered(asked: FlaskClient) -> None:
    assert asked.get("/", headers={"Host": "LOCALHOST:8900"}).status_code == 200


@pytest.mark.parametrize(("origin", "code"), [("http://evil.example", 403), ("null", 403), (f"http://{HOST}", 200)])
def test_another_origin_is_refused(asked: FlaskClient, origin: str, code: int) -> None:
    assert asked.get("/", headers={"Origin": origin}).status_code == code


def test_the_cluster_page_has_the_nodes_and_their_blockers(asked: FlaskClient) -> None:
    text = asked.get("/").text
    assert "node-a" in text
    assert "PodDisruptionBudget shop/keep allows no disruption now" in text
    assert 'aria-label="CPU: 55 % requested"' in text
    assert "node-b" not in asked.get("/?q=etl").text.split('<h2 id="nodes">')[1]


def test_the_pending_page_has_the_reason_and_the_edit(asked: FlaskClient) -> None:
    text = asked.get("/pending").text
    assert "and 2 equal pods" in text
    assert "lacks" in text


def test_the_next_page_has_the_reason_and_the_budgets(asked: FlaskClient) -> None:
    text = asked.get("/next").text
    assert "Empty" in text
    assert "Budgets of NodePool default: 2 nodes" in text


def test_the_cost_page_takes_a_label(asked: FlaskClient) -> None:
    assert "checkout" in asked.get("/cost").text
    assert "checkout" not in asked.get("/cost?label=app").text
    assert asked.get(f"/cost?label={'x' * 400}").status_code == 400


def test_details_are_those_of_kerf_why(asked: FlaskClient) -> None:
    assert "Possible disruption" in asked.get("/nodes/node-a").text
    assert "has no place" in asked.get("/pods/shop/huge-0").text


def test_an_unknown_order_is_an_error_that_names_the_orders(asked: FlaskClient) -> None:
    answer = asked.get("/?sort=bogus")
    assert (answer.status_code, "one of nodepool, price" in answer.text) == (400, True)


def test_hostile_names_are_text() -> None:
    tried = page(worlds.hostile())
    for path in PAGES[:6]:
        text = tried.get(path).text
        assert "<script" not in text
        assert not {"\x1b", "\u202e"} & {*text}
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[2J\\n&amp;amp;\\u202e" in tried.get("/cost").text


def test_long_answers_are_compressed(asked: FlaskClient) -> None:
    plain, packed = asked.get("/"), asked.get("/", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert len(packed.data) < len(plain.data) / 2
    assert (packed.headers["Vary"], "Content-Encoding" in plain.headers) == ("Accept-Encoding", False)


def test_a_long_list_has_pages() -> None:
    names = [f"n{number:03}" for number in range(ROWS + 10)]
    tried = page(worlds.cluster(*pairs(*names)))
    first, second = tried.get("/").text, tried.get("/?page=2&sort=name").text
    assert f"1-{ROWS} of {ROWS + 12} nodes" in first
    assert 'rel="next" href="?page=2"' in first
    assert f"{ROWS + 1}-{ROWS + 12} of {ROWS + 12} nodes" in second
    assert "page=1&amp;sort=name" in second


@pytest.mark.parametrize(("number", "first"), [(-3, 1), (1, 1), (2, 101), (99, 201)])
def test_parts_of_a_list(number: int, first: int) -> None:
    assert part(range(260), number).first == first


def test_an_empty_cluster_has_all_pages() -> None:
    tried = page(snapshot([pool()]))
    assert [tried.get(path).status_code for path in PAGES[:6]] == [200] * 6


def test_views_stay_when_the_cluster_cannot_be_read() -> None:
    answers: list[Snapshot | Exception] = [
        worlds.cluster(),
        Unavailable("the API server does not answer"),
        worlds.cluster(),
    ]

    def read() -> Snapshot:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    boards = Boards(Origin("cluster a", read, live=True))
    boards.read()
    text = client(boards).get("/").text
    assert re.search(r"last reading failed at [-0-9]{10} [:0-9]{8} UTC: the API server does not answer\.", text)
    assert "node-a" in text
    boards.read()
    assert (boards.problem, boards.failed_at) == ("", None)


def test_a_cluster_that_cannot_be_read_at_first_is_the_callers_error() -> None:
    def read() -> Snapshot:
        raise Mistake("no such file")

    with pytest.raises(Mistake):
        Boards(Origin("x", read))
