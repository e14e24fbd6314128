"""Messages of the interruption queue: a bug over one costs no other, and each is noted for those who tell it."""

from __future__ import annotations

from datetime import UTC, datetime

from kerf.model.aws.interruptions import Interruption, InterruptionKind, Message
from kerf.runtime.state.interruptions import Interruptions
from kerf.runtime.state.notices import MessageRead, Notices

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ODD, SPOT, OTHER = (Message(id=name, receipt=name, body=name) for name in ("odd", "spot", "other"))


def read(message: Message) -> Interruption | None:
    if message is ODD:
        raise KeyError("a bug")
    return Interruption(InterruptionKind.SPOT_INTERRUPTED, ("i-1",), message) if message is SPOT else None


def test_a_message_that_a_bug_keeps_from_being_read_costs_no_other() -> None:
    notices = Notices()
    found = Interruptions(read, notices)
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
    Interruptions(read, notices).received(SPOT, NOW)
    assert (len(notices.drain()), notices.drain()) == (1, [])
