"""The Secret behind launch marks: made once, read by all, mended, rotated by its deletion."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kerf.ports import AlreadyExists, AlreadyGone, Conflict, Forbidden, PortError, Unavailable
from kerf.runtime.secrets.launch_keys import LaunchKeys
from kerf.runtime.secrets.launch_secret import EARLIER_KEY, KEY, LaunchSecret

PATH = "/api/v1/namespaces/kerf/secrets"
KNOWN, OTHER = b"k" * 32, b"o" * 32


def coded(key: bytes) -> str:
    return base64.b64encode(key).decode()


class Server:
    """One Secret, as the API server has it; `refuses` is raised by the methods that it names."""

    def __init__(self, **data: str) -> None:
        self.secret: dict[str, Any] | None = {"metadata": {"resourceVersion": "1"}, "data": data} if data else None
        self.asked: list[str] = []
        self.refuses: dict[str, PortError] = {}

    def request(self, method: str, path: str, body: Any = None, *, content_type: str = "application/json") -> Any:
        self.asked.append(method)
        if method in self.refuses:
            raise self.refuses[method]
        assert path == (PATH if method == "POST" else f"{PATH}/launch")
        if method == "GET":
            if self.secret is None:
                raise AlreadyGone("404")
            return self.secret
        if method == "POST" and self.secret is not None:
            raise AlreadyExists("409")
        if method == "PUT":
            assert self.secret is not None
            assert body["metadata"]["resourceVersion"] == self.secret["metadata"]["resourceVersion"]
        self.secret = {**body, "metadata": {**body["metadata"], "resourceVersion": "2"}}
        return self.secret

    def data(self) -> dict[str, str]:
        assert self.secret is not None
        found: dict[str, str] = self.secret["data"]
        return found


class Replica:
    def __init__(self, server: Server, *, leads: bool = True) -> None:
        self.keys, self.leads, self.in_use, self.replaced = LaunchKeys("c"), leads, False, 0
        self.secret = LaunchSecret(
            server,
            self.keys,
            namespace="kerf",
            name="launch",
            leads=lambda: self.leads,
            earlier_key_in_use=lambda: self.in_use,
            replaced=self._count,
        )

    def _count(self) -> None:
        self.replaced += 1


def test_the_leader_makes_the_key_and_every_replica_reads_it() -> None:
    server = Server()
    standby, leader = Replica(server, leads=False), Replica(server)
    assert not standby.secret.keep()
    assert server.secret is None
    assert leader.secret.keep()
    assert standby.secret.keep()
    assert standby.keys.current == leader.keys.current
    assert set(server.data()) == {KEY}
    assert leader.replaced == 0


def test_two_leaders_in_turn_have_the_same_key() -> None:
    server = Server()
    first = Replica(server)
    first.secret.keep()
    second = Replica(server)
    second.secret.keep()
    assert second.keys.current == first.keys.current
    assert server.asked == ["GET", "POST", "GET"]


def test_a_key_that_another_replica_made_meanwhile_counts() -> None:
    server = Server(**{KEY: coded(KNOWN)})
    replica = Replica(server)
    server.refuses["GET"] = AlreadyGone("404")
    with pytest.raises(Conflict):
        replica.secret.keep()
    assert replica.keys.current is None
    del server.refuses["GET"]
    assert replica.secret.keep()
    assert replica.keys.current == KNOWN


@pytest.mark.parametrize("text", ["", "not base64!", coded(b"short"), "é"])
def test_a_malformed_key_is_replaced_and_reported(text: str) -> None:
    server = Server(**{KEY: text, "note": "x"})
    replica = Replica(server)
    assert replica.secret.keep()
    assert server.data()[KEY] == coded(replica.keys.current or b"")
    assert len(replica.keys.current or b"") == 32
    assert replica.replaced == 1
    assert replica.secret.keep()
    assert replica.replaced == 1


def test_a_standby_does_not_replace_a_malformed_key() -> None:
    server = Server(**{KEY: ""})
    standby = Replica(server, leads=False)
    assert not standby.secret.keep()
    assert server.data() == {KEY: ""}


def test_deletion_rotates_the_key_and_the_earlier_one_counts_until_no_claim_bears_it() -> None:
    server = Server()
    leader, standby = Replica(server), Replica(server, leads=False)
    leader.secret.keep()
    standby.secret.keep()
    first = leader.keys.current
    assert first is not None
    server.secret, leader.in_use = None, True
    assert leader.secret.keep()
    second = leader.keys.current
    assert second not in (None, first)
    assert server.data() == {KEY: coded(second or b""), EARLIER_KEY: coded(first)}
    standby.secret.keep()
    assert standby.keys.current == second
    for _ in range(2):
        leader.secret.keep()
    assert EARLIER_KEY in server.data()
    leader.in_use = False
    leader.secret.keep()
    assert set(server.data()) == {KEY}


def test_a_restarted_leader_reads_the_earlier_key_and_keeps_it_while_it_is_used() -> None:
    server = Server(**{KEY: coded(KNOWN), EARLIER_KEY: coded(OTHER)})
    leader = Replica(server)
    leader.secret.keep()
    assert leader.keys.version == 1
    assert EARLIER_KEY in server.data()
    leader.in_use = True
    leader.secret.keep()
    assert EARLIER_KEY in server.data()


def test_without_rights_a_key_of_the_process_is_used_and_a_server_that_is_away_changes_nothing() -> None:
    server = Server()
    replica = Replica(server)
    server.refuses["GET"] = Unavailable("timeout")
    with pytest.raises(Unavailable):
        replica.secret.keep()
    assert replica.keys.current is None
    server.refuses["GET"] = Forbidden("403")
    with pytest.raises(Forbidden):
        replica.secret.keep()
    own = replica.keys.current
    assert own is not None
    server.refuses.clear()
    replica.secret.keep()
    assert replica.keys.current != own
    assert server.data()[EARLIER_KEY] == coded(own)
