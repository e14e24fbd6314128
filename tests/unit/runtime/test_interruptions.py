"""Messages of the interruption queue: a bug over one costs no other, and each is noted for those who tell it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kerf.model.aws.interruptions import Interruption, InterruptionKind, Message
from kerf.runtime.state.interruptions import COUNTED, Interruptions
from kerf.runtime.state.notices import MessageRead, Notices
from tests.unit.disruption.worlds import claim

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ODD, SPOT, OTHER = (Message(id=name, receipt=name, body=name) for name in ("odd", "spot", "other"))


def read(message: Message) -> Interruption | None:
    if message is ODD:
        raise KeyError("a bug")
    return Interruption(InterruptionKind.SPOT_INTERRUPTED, ("i-1",), message) if message is SPOT else None


def test_a_message_that_a_bug_keeps_from_being_read_costs_no_other() -> None:
    notices = Notices()
    found = Interruptions(read, notices, {})
    kinds = [found.received(message, NOW).kind for message in (ODD, SPOT, OTHER)]
    assert kinds == [InterruptionKind.NO_OP, InterruptionKind.SPOT_INTERRUPTED, InterruptionKind.NO_OP]
    noted = [one for one in notices.drain() if isinstance(one, MessageRead)]
    assert [(one.kind, one.message, type(one.error)) for one in noted] == [
        (InterruptionKind.NO_OP, ODD, KeyError),
        (InterruptionKind.SPOT_INTERRUPTED, SPOT, type(None)),
        (InterruptionKind.NO_OP, OTHER, type(None)),
    ]
    assert len(found.at(NOW)) == 3


def test_what_was_noticed_is_told_once() -> None:
    notices = Notices()
    Interruptions(read, notices, {}).received(SPOT, NOW)
    assert (len(notices.drain()), notices.drain()) == (1, [])


def test_reclaimed_spot_instances_are_counted_once_each_for_an_hour_by_nodepool() -> None:
    """Also when the queue repeats a message, and when the NodeClaim is gone since."""
    claims = {"i-1": (claim("a"),)}
    found = Interruptions(read, Notices(), claims)
    found.received(SPOT, NOW)
    claims.clear()
    found.received(SPOT, NOW + timedelta(minutes=3))
    found.received(OTHER, NOW)
    assert found.reclaimed(NOW + COUNTED - timedelta(seconds=1)) == {"default": 1}
    found.at(NOW + COUNTED - timedelta(seconds=1))
    assert found.reclaimed(NOW) == {"default": 1}
    found.set_back(timedelta(minutes=30))
    assert found.reclaimed(NOW + timedelta(minutes=30)) == {}


def test_an_interrupted_instance_without_a_nodeclaim_is_not_counted() -> None:
    found = Interruptions(read, Notices(), {})
    found.received(SPOT, NOW)
    assert found.reclaimed(NOW) == {}
