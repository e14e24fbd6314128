"""Which connection a full listener closes, and how the bytes of requests are counted."""

from __future__ import annotations

import socket

import pytest

from kerf_webhook.connections import Connection, Door, Limits, Stage, Table, held

LIMITS = Limits(connections=6, connections_per_client=4)


def table() -> Table:
    return Table(Door(LIMITS))


def added(to: Table, address: str, stage: Stage = Stage.READ) -> Connection:
    connection = Connection(socket.socket(), (address, 1), ("127.0.0.1", 2), to)
    connection.stage = stage
    to.add(connection)
    return connection


def test_there_is_space_until_there_is_none() -> None:
    to = table()
    for _ in range(3):
        added(to, "a")
    assert to.surplus("a") is None
    assert not to.full("a")
    first = next(iter(to))
    added(to, "a")
    assert to.full("a")
    assert to.surplus("a") is first
    assert to.surplus("b") is None
    assert not to.full("b")


def test_connections_that_wait_go_before_idle_ones_and_the_oldest_first() -> None:
    to = table()
    idle, working = added(to, "a", Stage.IDLE), added(to, "a", Stage.WORK)
    waiting, younger = added(to, "a"), added(to, "a", Stage.HANDSHAKE)
    for expected in (waiting, younger, idle):
        assert to.surplus("a") is expected
        to.remove(expected)
        added(to, "a", Stage.WORK)
    assert to.surplus("a") is None
    assert to.full("a")
    assert working in to


def test_a_connection_that_moves_is_the_youngest() -> None:
    to = table()
    first, second = added(to, "a"), added(to, "a")
    to.move(first, Stage.WORK)
    to.move(first, Stage.ANSWER)
    assert to.least() is second


def test_a_full_listener_takes_from_the_address_with_the_most() -> None:
    to = table()
    for _ in range(2):
        added(to, "a")
    many = [added(to, "b") for _ in range(3)]
    added(to, "c")
    assert to.surplus("d") is many[0]
    assert len(to) == LIMITS.connections


def test_the_bytes_of_requests_are_counted_until_the_connection_goes() -> None:
    to = table()
    small, large = added(to, "a"), added(to, "a")
    for connection, size in ((small, 10), (large, 100)):
        connection.inbox += bytes(size)
        to.buffered += size
    assert to.largest() is large
    assert held(large) == 100
    to.remove(large)
    assert to.buffered == 10
    to.remove(small)
    assert (to.buffered, len(to), list(to)) == (0, 0, [])


@pytest.mark.parametrize("stage", list(Stage))
def test_every_stage_has_a_place(stage: Stage) -> None:
    to = table()
    connection = added(to, "a")
    to.move(connection, stage)
    assert list(to) == [connection]
    to.remove(connection)
    assert len(to) == 0
