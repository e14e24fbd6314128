"""Messages of the interruption queue that were received and not deleted yet, as what they mean."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from kerf.model.aws.interruptions import Interruption, InterruptionKind, Message
from kerf.runtime.state.notices import MessageRead, Notices

#: A message that was not deleted by then is forgotten: the queue gives it out again.
KEPT: Final = timedelta(minutes=10)


class Interruptions:
    """One thread uses it. `interpret` reads a message; None: it means nothing to the controller."""

    def __init__(self, interpret: Callable[[Message], Interruption | None], notices: Notices) -> None:
        self._interpret, self._notices = interpret, notices
        #: By the message's ID, with the time at which it was received.
        self._found: dict[str, tuple[Interruption, datetime]] = {}

    def received(self, message: Message, now: datetime) -> Interruption:
        """Take in a message."""
        error = found = None
        try:
            found = self._interpret(message)
        except Exception as bug:  # the other messages are read
            error = bug
        found = found or Interruption(InterruptionKind.NO_OP, (), message)
        self._notices.note(MessageRead(found.kind, message, error))
        self._found[message.id] = (found, now)
        return found

    def deleted(self, message_id: str) -> None:
        """The message is not in the queue any more."""
        self._found.pop(message_id, None)

    def set_back(self, by: timedelta) -> None:
        """The clock was set back by so much: messages were received as long ago as before."""
        self._found = {id_: (one, at - by) for id_, (one, at) in self._found.items()}

    def at(self, now: datetime) -> tuple[Interruption, ...]:
        """By the message's ID."""
        self._found = {id_: one for id_, one in self._found.items() if now - one[1] <= KEPT}
        return tuple(one for _, (one, _) in sorted(self._found.items()))
