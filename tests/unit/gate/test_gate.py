"""Who may look at the page of a cluster: every refusal, and what a request proves."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kerf.cli.gate import limits
from kerf.cli.gate.claims import LONGEST_TOKEN
from kerf.cli.gate.recent import Recent
from kerf.cli.gate.reviews import KEPT_SECONDS
from kerf.cli.gate.tokens import MOST_TOKENS
from tests.unit.gate.worlds import SECRET, Cluster, Tried

PROXY: Final = {"subject": ((("commonName", "front-proxy"),),), "subjectAltName": (("DNS", "proxy.example"),)}
#: By case: the request, and the status of the answer.
CASES: Final[dict[str, tuple[dict[str, Any], int]]] = {
    "no token": ({}, 401),
    "an empty token": ({"Authorization": "Bearer "}, 401),
    "a password": ({"Authorization": "Basic YTpi"}, 401),
    "an unknown or expired token": ({"token": "expired-token"}, 401),
    "a token for another audience": ({"token": "admin-token.for.vault"}, 401),
    "the anonymous user": ({"token": "anonymous-token"}, 401),
    "a long token": ({"token": "x" * (LONGEST_TOKEN + 1)}, 401),
    "two tokens": ({"Authorization": "Bearer admin-token,Bearer admin-token"}, 401),
    "two headers with a token": ({"Authorization": ["Bearer admin-token", "Bearer admin-token"]}, 400),
    "a longest token": ({"token": "x" * LONGEST_TOKEN}, 401),
    "a token with a line break": ({"token": "admin-token%0d%0a x"}, 401),
    "no permission": ({"token": "stranger-token"}, 403),
    "permission without pods": ({"token": "none-token"}, 200),
    "permission": ({"token": "admin-token"}, 200),
    "a lower case scheme": ({"Authorization": "bearer admin-token"}, 200),
    "a proxy's headers without a certificate": ({"X_Remote_User": "ann"}, 401),
    "headers of other proxies": ({"X_Forwarded_User": "ann", "peer": PROXY}, 401),
    "a certificate of another name": (
        {"X_Remote_User": "ann", "peer": {"subject": ((("commonName", "other"),),)}},
        401,
    ),
    "a certificate that was not verified": ({"X_Remote_User": "ann", "peer": {}}, 401),
    "a proxy's user": ({"X_Remote_User": "ann", "peer": PROXY}, 200),
    "a proxy's user with blanks of other alphabets": ({"X_Remote_User": "\xa0ann\x85", "peer": PROXY}, 401),
    "a proxy's user that is no UTF-8": ({"X_Remote_User": "j\xf6rg", "peer": PROXY}, 401),
    "a proxy's user by its DNS name": ({"X_Remote_User": "ann", "peer": {**PROXY, "subject": ()}}, 200),
    "two users of a proxy": ({"X_Remote_User": ["ann", "stu"], "peer": PROXY}, 400),
    "the same user twice": ({"X_Remote_User": ["ann", "ann"], "peer": PROXY}, 400),
    "two users without a certificate": ({"X_Remote_User": ["ann", "stu"], "token": "admin-token"}, 400),
    "a user with a comma is one name": ({"X_Remote_User": "ann,stu", "peer": PROXY}, 403),
    "a second group of Kubernetes itself": (
        {"X_Remote_User": "ann", "X_Remote_Group": ["a", "system:masters"], "peer": PROXY},
        401,
    ),
    "a proxy's user without permission": ({"X_Remote_User": "stu", "peer": PROXY}, 403),
    "a proxy without a user": ({"peer": PROXY}, 401),
    "a proxy that names an administrator": (
        {"X_Remote_User": "stu", "X_Remote_Group": "system:masters", "peer": PROXY},
        401,
    ),
    "a proxy that names a ServiceAccount": ({"X_Remote_User": "system:serviceaccount:a:b", "peer": PROXY}, 401),
    "a proxy with a long user": ({"X_Remote_User": "x" * 2000, "peer": PROXY}, 401),
    "many extra values of a proxy": (
        {"X_Remote_User": "ann", "X_Remote_Extra_a": ["x"] * 65, "peer": PROXY},
        401,
    ),
    "a long extra value of a proxy": ({"X_Remote_User": "ann", "X_Remote_Extra_a": "x" * 2000, "peer": PROXY}, 401),
    "a long extra key of a proxy": ({"X_Remote_User": "ann", f"X_Remote_Extra_{'a' * 2000}": "x", "peer": PROXY}, 401),
    "an extra key without a name": ({"X_Remote_User": "ann", "X_Remote_Extra_": "x", "peer": PROXY}, 401),
    "an extra key with a line break": ({"X_Remote_User": "ann", "X_Remote_Extra_a%0ab": "x", "peer": PROXY}, 401),
    "an extra key that is no UTF-8": ({"X_Remote_User": "ann", "X_Remote_Extra_a%ff": "x", "peer": PROXY}, 401),
    "extra values without a user": ({"X_Remote_Extra_a": "x", "peer": PROXY}, 401),
    "another host": ({"token": "admin-token", "Host": "evil.example"}, 403),
    "a name that resolves to this address": ({"token": "admin-token", "Host": "evil.example:8445"}, 403),
    "another origin": ({"token": "admin-token", "Origin": "https://evil.example"}, 403),
    "a host of another proxy": ({"token": "admin-token", "X_Forwarded_Host": "evil.example"}, 200),
    "a write": ({"token": "admin-token", "method": "POST"}, 405),
    "a write without a token": ({"method": "DELETE"}, 405),
    "a head": ({"token": "admin-token", "method": "HEAD"}, 200),
}


@pytest.mark.parametrize("case", CASES)
def test_who_may_look(case: str) -> None:
    request, status = CASES[case]
    answer = Tried(Cluster(), proxies=["front-proxy", "proxy.example"]).get("/", **request)
    assert answer.status_code == status, answer.text
    assert ("node-a" in answer.text) is (status == 200 and request.get("method") != "HEAD")
    assert status == 200 or SECRET not in answer.text
    assert (answer.headers.get("WWW-Authenticate") == "Bearer") is (status == 401)


@pytest.mark.parametrize("path", ["/static/kerf.css", "/nope", "/favicon.ico", "/pods/a/b"])
def test_no_address_is_open(path: str) -> None:
    assert Tried(Cluster()).get(path).status_code == 401


def test_a_proxy_is_not_believed_where_none_is_configured() -> None:
    assert Tried(Cluster()).get("/", X_Remote_User="ann", peer=PROXY).status_code == 401


def test_a_proxys_user_counts_before_the_token() -> None:
    tried = Tried(Cluster(), proxies=["front-proxy"])
    answer = tried.get("/", token="admin-token", X_Remote_User="nina", peer=PROXY)
    assert (answer.status_code, SECRET in answer.text) == (200, False)


def test_a_proxys_user_is_authenticated_with_its_groups() -> None:
    cluster = Cluster()
    groups = ["a", "b", ""]
    Tried(cluster, proxies=["front-proxy"]).get("/", X_Remote_User="ann", X_Remote_Group=groups, peer=PROXY)
    assert cluster.asked[0]["spec"]["groups"] == ["a", "b", "system:authenticated"]


def test_a_proxys_user_has_its_extra_data() -> None:
    """As the API server reads the headers of its front proxy: keys in lower case, then decoded."""
    cluster = Cluster()
    headers: dict[str, Any] = {
        "X-Remote-Extra-Scopes": ["openid", "profile"],
        "X-Remote-Extra-Acme.com%2FProject": "some-project",
        "X-Remote-Extra-ACME.COM%2fproject": "other-project",
        "X-Remote-Extra-100%": "as it is",
        "X-Remote-Extra-J%C3%B6rg": "j\xc3\xb6rg",
    }
    answer = Tried(cluster, proxies=["front-proxy"]).get("/", X_Remote_User="ann", peer=PROXY, **headers)
    assert answer.status_code == 200
    assert {str(body["spec"]["extra"]) for body in cluster.asked} == {
        str(
            {
                "100%": ["as it is"],
                "acme.com/project": ["some-project", "other-project"],
                "jörg": ["jörg"],
                "scopes": ["openid", "profile"],
            }
        )
    }


def test_people_of_different_extra_data_share_no_answer() -> None:
    cluster = Cluster()
    tried = Tried(cluster, proxies=["front-proxy"])
    for scope in ("a", "b"):
        tried.get("/", X_Remote_User="ann", X_Remote_Extra_Scopes=scope, peer=PROXY)
    found = [str(body["spec"]["extra"]) for body in cluster.asked]
    assert found == sorted(["{'scopes': ['a']}", "{'scopes': ['b']}"] * (len(found) // 2))


def test_extra_data_without_a_certificate_of_a_proxy_is_ignored() -> None:
    cluster = Cluster()
    tried = Tried(cluster, proxies=["front-proxy"])
    assert tried.get("/", token="admin-token", X_Remote_Extra_Scopes="a").status_code == 200
    assert not any(body["spec"].get("extra") for body in cluster.asked)


def test_a_comma_is_a_part_of_a_groups_name() -> None:
    """Else a person who may name a group of the proxy would choose the permissions."""
    cluster = Cluster()
    tried = Tried(cluster, proxies=["front-proxy"])
    tried.get("/", X_Remote_User="ann", X_Remote_Group="cn=dev,admins, b", peer=PROXY)
    assert {tuple(body["spec"]["groups"]) for body in cluster.asked} == {("cn=dev,admins, b", "system:authenticated")}


def test_the_answer_to_a_long_token_has_the_bound() -> None:
    answer = Tried(Cluster()).get("/", token="x" * (LONGEST_TOKEN + 1))
    assert answer.text == "Authorization: too long: a token has at most 16384 characters\n"


def test_without_an_answer_of_the_api_server_nothing_is_shown() -> None:
    cluster = Cluster()
    tried = Tried(cluster)
    cluster.down = True
    answer = tried.get("/", token="admin-token")
    assert (answer.status_code, "node-a" in answer.text) == (503, False)


def test_before_the_first_reading_nothing_is_shown() -> None:
    assert Tried(Cluster(), read=False).get("/", token="admin-token").status_code == 503


def test_a_failed_reading_keeps_the_views_and_shows_no_text_of_the_error() -> None:
    cluster = Cluster()
    tried = Tried(cluster)
    cluster.down = True
    tried.readings.read()
    tried.readings.read()
    cluster.down = False
    answer = tried.get("/", token="none-token")
    assert answer.status_code == 200
    assert "The cluster was not read again" in answer.text
    assert SECRET not in answer.text
    assert tried.reported == [f"the cluster cannot be read: cannot list {SECRET}"]


def test_answers_are_kept_for_seconds() -> None:
    now, cluster = [0.0], Cluster()
    tried = Tried(cluster, now=lambda: now[0])
    tried.get("/", token="shop-token")
    first = len(cluster.asked)
    now[0] = KEPT_SECONDS - 1
    tried.get("/", token="shop-token")
    assert len(cluster.asked) == first
    now[0] = KEPT_SECONDS
    tried.get("/", token="shop-token")
    assert len(cluster.asked) == 2 * first


def test_a_wrong_token_is_asked_about_once() -> None:
    cluster = Cluster()
    tried = Tried(cluster)
    assert [tried.get("/", token="wrong").status_code for _ in range(3)] == [401] * 3
    assert len(cluster.asked) == 1


def test_wrong_tokens_push_no_valid_one_out_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PER_ADDRESS", "OVER_ALL"):
        monkeypatch.setattr(limits, name, (1.0, 10_000))
    cluster = Cluster()
    tried = Tried(cluster)
    tried.get("/", token="admin-token")
    for number in range(MOST_TOKENS + 50):
        assert tried.reviews.identity(f"wrong-{number}") is None
    before = len(cluster.asked)
    assert tried.reviews.identity("admin-token") is not None
    assert len(cluster.asked) == before
    assert len(tried.reviews._tokens) == MOST_TOKENS + 1


def test_a_table_drops_the_row_that_was_used_least_recently() -> None:
    table = Recent[str, int](10, 2)
    table.put("a", 1)
    table.put("b", 2)
    assert table.get("a") == 1
    table.put("c", 3)
    assert [table.get(key) for key in "abc"] == [1, None, 3]


def test_an_answer_without_a_status_is_no_permission() -> None:
    cluster = Cluster()
    tried = Tried(cluster)
    tried.reviews._request = lambda method, path, body: {"kind": "Status"}
    assert tried.get("/", token="admin-token").status_code == 503
