"""Reviews and probes are answered within a second while other clients keep connections open in every way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from benchmarks.table import quantile

from .attacks import ATTACKS, attacked, closed, healthy, plain, reviewed, secure
from .test_server import Server, served

ANSWERED_SECONDS = 1.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Its threads are few, so that an attack that gets one to wait shows at once."""
    with served(tmp_path_factory.mktemp("attacked"), threads=2) as running:
        yield running


def calm(server: Server, reviews: int) -> None:
    took = reviewed(server, reviews)
    assert quantile(took, 0.95) <= ANSWERED_SECONDS, sorted(took)[-3:]
    assert healthy(server) <= ANSWERED_SECONDS


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_reviews_are_answered_under(server: Server, name: str) -> None:
    with attacked(server, name):
        calm(server, 12)
    assert server.process.poll() is None
    assert server.log.read_text() == ""


def test_reviews_are_answered_under_silent_connections_and_slow_bodies_together(server: Server) -> None:
    with attacked(server, "silent"), attacked(server, "a slow body", every=3.0):
        calm(server, 60)


@pytest.mark.long
def test_reviews_are_answered_under_all_attacks_for_a_minute(server: Server) -> None:
    with ExitStack() as attacks:
        for name in ATTACKS:
            attacks.enter_context(attacked(server, name, every=3.0))
        until = time.monotonic() + 60
        while time.monotonic() < until:
            calm(server, 40)
    assert server.log.read_text() == ""


def test_a_full_server_closes_the_oldest_silent_connection_of_the_client(server_of_ten: Server) -> None:
    """The honest client has the same address, as behind a proxy."""
    kept = server_of_ten.connect()
    kept.connect()
    silent = [plain(server_of_ten) for _ in range(30)]
    calm(server_of_ten, 6)
    time.sleep(0.1)
    still = [not closed(one) for one in silent]
    assert 0 < sum(still) <= 10
    assert still == sorted(still)  # the last ones


def test_one_client_does_not_take_the_connections_of_others(server_of_ten: Server) -> None:
    others = [secure(server_of_ten, f"127.0.0.{n}") for n in (2, 3, 4)]
    many = [plain(server_of_ten, "127.0.0.9") for _ in range(200)]
    calm(server_of_ten, 6)
    assert not any(closed(one) for one in others)
    for one in (*others, *many):
        one.close()


def test_many_addresses_with_few_connections_each_keep_no_review_out(server_of_ten: Server) -> None:
    many = [plain(server_of_ten, f"127.0.1.{n}") for n in range(1, 120) for _ in range(2)]
    calm(server_of_ten, 6)
    for one in many:
        one.close()
    connection = server_of_ten.connect()
    connection.request("GET", "/metrics")
    assert 'kerf_webhook_connections_dropped_total{reason="crowded"}' in connection.getresponse().read().decode()


@pytest.mark.parametrize("name", ["silent", "a slow head", "a slow body", "answers unread", "not closed"])
def test_time_is_up_for(server_of_ten: Server, name: str) -> None:
    """However often a byte comes."""
    _, begin, byte = ATTACKS[name]
    connection, began = begin(server_of_ten), time.monotonic()
    while not closed(connection):
        assert time.monotonic() - began < 15, "the server does not close it"
        time.sleep(0.1)
        try:
            connection.send(byte)
        except OSError:
            break


@pytest.fixture(scope="module")
def server_of_ten(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """It has space for few connections, and little patience."""
    limits = ("--connections", "16", "--connections-per-client", "10")
    times = ("--handshake-seconds", "0.5", "--request-seconds", "0.5")
    with served(tmp_path_factory.mktemp("small"), *limits, *times) as running:
        yield running
        assert running.log.read_text() == ""
