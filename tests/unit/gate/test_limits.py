"""The limits of TokenReviews: strangers are refused, and the people behind the same address are not."""

from __future__ import annotations

import pytest

from kerf.cli.gate.limits import MOST_ADDRESSES, OVER_ALL, PER_ADDRESS, Crowded, ReviewLimits
from kerf.cli.gate.reviews import KEPT_SECONDS
from kerf.cli.gate.tokens import TRUSTED_SECONDS
from kerf.kube.transport import Limiter
from tests.unit.gate.worlds import USERS, Cluster, Tried

BURST = PER_ADDRESS[1]


def flooded(tried: Tried, address: str = "192.0.2.1") -> list[int]:
    """The answers to as many wrong tokens as an address may send at once, and five more."""
    return [tried.get("/", token=f"wrong-{number}", address=address).status_code for number in range(BURST + 5)]


def test_an_address_sends_a_number_of_new_tokens_and_is_told_when_to_come_back() -> None:
    cluster = Cluster()
    tried = Tried(cluster, now=lambda: 0.0)
    assert flooded(tried) == [401] * BURST + [429] * 5
    assert len(cluster.asked) == BURST
    answer = tried.get("/", token="one-more", address="192.0.2.1")
    assert (answer.headers["Retry-After"], answer.text) == ("1", "too many new tokens: try again in 1 second\n")
    assert tried.get("/", token="admin-token", address="192.0.2.2").status_code == 200


def test_people_behind_the_address_of_a_flood_stay_in() -> None:
    now = [0.0]
    tried = Tried(Cluster(), now=lambda: now[0])
    assert tried.get("/", token="admin-token", address="192.0.2.1").status_code == 200
    for second in (0.0, KEPT_SECONDS, 2 * KEPT_SECONDS, TRUSTED_SECONDS):
        now[0] = second
        assert 429 in flooded(tried)
        assert tried.get("/", token="admin-token", address="192.0.2.1").status_code == 200


def test_wrong_tokens_are_never_exempt() -> None:
    """They push no exempt one out either."""
    now, cluster = [0.0], Cluster()
    tried = Tried(cluster, now=lambda: now[0])
    tried.get("/", token="admin-token")
    for minute in range(20):
        now[0] = 60.0 * minute
        assert 429 in flooded(tried, "127.0.0.1")
    asked = len(cluster.asked)
    assert tried.get("/", token="admin-token").status_code == 200
    assert len(cluster.asked) > asked


def test_a_token_that_was_withdrawn_is_limited_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    tried = Tried(Cluster(), now=lambda: now[0])
    assert tried.get("/", token="admin-token").status_code == 200
    monkeypatch.delitem(USERS, "admin-token")
    now[0] = KEPT_SECONDS
    assert tried.get("/", token="admin-token").status_code == 401
    now[0] = 2 * KEPT_SECONDS
    flooded(tried, "127.0.0.1")
    assert tried.get("/", token="admin-token").status_code == 429


def test_a_proxys_user_needs_no_token_review() -> None:
    proxy = {"subject": ((("commonName", "front-proxy"),),)}
    tried = Tried(Cluster(), proxies=["front-proxy"], now=lambda: 0.0)
    flooded(tried)
    assert tried.get("/", X_Remote_User="ann", peer=proxy, address="192.0.2.1").status_code == 200


def test_all_addresses_share_a_limit() -> None:
    limits = ReviewLimits(lambda: 0.0)
    for number in range(OVER_ALL[1]):
        limits.take(f"192.0.2.{number}")
    with pytest.raises(Crowded):
        limits.take("198.51.100.1")


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("", "192.0.2.1", False),
    ],
)
def test_a_network_of_ipv6_counts_as_one_address(first: str, second: str, same: bool) -> None:
    limits = ReviewLimits(lambda: 0.0)
    for _ in range(BURST):
        limits.take(first)
    if same:
        with pytest.raises(Crowded):
            limits.take(second)
    else:
        limits.take(second)


def test_the_table_of_addresses_is_bounded() -> None:
    now = [0.0]
    limits = ReviewLimits(lambda: now[0])
    for number in range(MOST_ADDRESSES + 10):
        now[0] += 1
        limits.take(f"a{number}")
    assert len(limits._addresses) == MOST_ADDRESSES


def test_a_turn_that_is_not_there_is_not_taken() -> None:
    now = [0.0]
    limiter = Limiter(2.0, 1, lambda: now[0])
    assert [limiter.take(), limiter.take(), limiter.take()] == [0.0, 0.5, 0.5]
    now[0] = 0.5
    assert limiter.take() == 0.0
