"""A removed permission has no effect on an answer of the page after the documented time."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.cli.gate import access, limits
from kerf.cli.gate.reviews import KEPT_SECONDS, PROMISED_SECONDS
from kerf.cli.gate.tokens import MOST_TOKENS
from tests.sources import ROOT
from tests.unit.gate import worlds
from tests.unit.gate.test_limits import flooded
from tests.unit.gate.worlds import PODS, USERS, Cluster, Tried


class Slow:
    """A page whose views take so long that every kept answer expires; `change` happens meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, change: Any = lambda: None) -> None:
        self.now = 0.0
        self.tried = Tried(Cluster(), now=lambda: self.now)
        monkeypatch.setattr(access, "_RECHECK_SECONDS", 0.0)
        views, plain = self.tried.readings.views, self.tried.readings.views.made

        def made(shown: Any) -> Any:
            found = plain(shown)
            self.now += KEPT_SECONDS
            change()
            return found

        monkeypatch.setattr(type(views), "made", lambda _, shown: made(shown))


def test_a_page_that_took_long_is_sent_to_who_still_may_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "shop-3" in Slow(monkeypatch).tried.get("/pending", token="shop-token").text


@pytest.mark.parametrize(("table", "user", "left", "status"), [(PODS, "sam", set(), 503), (PODS, "sam", None, 403)])
def test_a_permission_that_is_removed_meanwhile(
    table: dict[str, Any], user: str, left: Any, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove() -> None:
        if left is None:
            monkeypatch.delitem(table, user, raising=False)
        else:
            monkeypatch.setitem(table, user, left)

    tried = Slow(monkeypatch, remove).tried
    answer = tried.get("/pending", token="shop-token")
    assert tried.answered == [status]
    assert (answer.status_code, "shop-3" in answer.text) == (status, False)
    assert status != 503 or answer.headers["Retry-After"] == "1"


def test_who_might_list_all_pods_and_may_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch, lambda: monkeypatch.setitem(PODS, "ann", {"shop"}))
    assert slow.tried.get("/pending", token="admin-token").status_code == 503


def test_a_token_that_is_withdrawn_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch, lambda: monkeypatch.delitem(USERS, "shop-token", raising=False))
    assert slow.tried.get("/pending", token="shop-token").status_code == 401


def test_the_documented_time_is_that_of_an_answer_and_of_a_page_that_is_made_meanwhile() -> None:
    text = (ROOT / "docs/ui.md").read_text(encoding="utf-8")
    assert f"within {PROMISED_SECONDS:.0f} seconds" in text
    assert KEPT_SECONDS + access._RECHECK_SECONDS + access._CONFIRM_SECONDS < PROMISED_SECONDS


def test_a_valid_token_without_permission_to_look_is_limited() -> None:
    now = [0.0]
    tried = Tried(Cluster(), now=lambda: now[0])
    assert tried.get("/", token="stranger-token", address="192.0.2.1").status_code == 403
    now[0] = KEPT_SECONDS
    flooded(tried)
    assert tried.get("/", token="stranger-token", address="192.0.2.1").status_code == 429


def test_a_user_who_loses_the_permission_to_look_is_limited_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    tried = Tried(Cluster(), now=lambda: now[0])
    assert tried.get("/", token="shop-token", address="192.0.2.1").status_code == 200
    monkeypatch.delitem(PODS, "sam")
    now[0] = KEPT_SECONDS
    assert tried.get("/", token="shop-token", address="192.0.2.1").status_code == 403
    now[0] = 2 * KEPT_SECONDS
    flooded(tried)
    assert tried.get("/", token="shop-token", address="192.0.2.1").status_code == 429


def test_valid_tokens_of_strangers_push_out_no_token_of_a_viewer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PER_ADDRESS", "OVER_ALL"):
        monkeypatch.setattr(limits, name, (1.0, 10_000))
    strangers = {f"stranger-{number}": ("stu", ()) for number in range(MOST_TOKENS + 5)}
    monkeypatch.setattr(worlds, "USERS", {**USERS, **strangers})
    cluster = Cluster()
    tried = Tried(cluster)
    tried.get("/", token="admin-token")
    assert {tried.get("/", token=token).status_code for token in strangers} == {403}
    before = len(cluster.asked)
    assert tried.get("/", token="admin-token").status_code == 200
    assert len(cluster.asked) == before


@pytest.mark.parametrize("takes", [1.0, 2.5, 4.0])
def test_a_slow_second_check_shows_nothing_of_a_removed_permission(
    monkeypatch: pytest.MonkeyPatch, takes: float
) -> None:
    """Each review takes so many seconds; the person is removed right after the first answer of the second check."""
    now, asked = [0.0], list[float]()

    class Busy(Cluster):
        def request(self, method: str, path: str, body: Any = None) -> Any:
            answer = super().request(method, path, body)
            if "token" in body["spec"]:
                asked.append(now[0])
                if len(asked) == 2:
                    monkeypatch.setitem(USERS, "shop-token", ("nobody", ()))
            now[0] += takes
            return answer

    tried = Tried(Busy(), now=lambda: now[0])
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    tried.readings.views.made(frozenset({"shop"}))
    answer = tried.get("/pending", token="shop-token")
    removed = asked[1] if len(asked) > 1 else now[0]
    assert "shop-3" not in answer.text or now[0] - removed <= PROMISED_SECONDS
