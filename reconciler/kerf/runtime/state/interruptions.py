"""Messages of the interruption queue that were received and not deleted yet, as what they mean; and the spot instances
that EC2 has reclaimed lately."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

from kerf.model.aws.interruptions import Interruption, InterruptionKind, Message
from kerf.runtime.state.notices import MessageRead, Notices
from kerf_api.v1.nodeclaim import NodeClaim

#: A message that was not deleted by then is forgotten: the queue gives it out again.
KEPT: Final = timedelta(minutes=10)
#: Spot interruptions are counted for so long, and so many instances of them at most.
COUNTED: Final = timedelta(hours=1)
_MOST: Final = 10_000


class Interruptions:
    """One thread uses it. `interpret` reads a message; None: it means nothing to the controller. `claims` are the
    NodeClaims by instance ID."""

    def __init__(
        self,
        interpret: Callable[[Message], Interruption | None],
        notices: Notices,
        claims: Mapping[str, tuple[NodeClaim, ...]],
    ) -> None:
        self._interpret, self._notices, self._claims = interpret, notices, claims
        #: By instance ID, the NodePool of a spot instance, with the time of its first message.
        self._reclaimed: dict[str, tuple[str, datetime]] = {}
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
        if found.kind is InterruptionKind.SPOT_INTERRUPTED and len(self._reclaimed) < _MOST:
            for instance in found.instance_ids:  # their NodeClaims are gone in two minutes
                for claim in self._claims.get(instance, ()):
                    self._reclaimed.setdefault(instance, (claim.pool_name, now))
        return found

    def reclaimed(self, now: datetime) -> dict[str, int]:
        """The number of spot instances that EC2 has reclaimed within `COUNTED`, by NodePool, sorted."""
        return dict(sorted(Counter(pool for pool, at in self._reclaimed.values() if now - at < COUNTED).items()))

    def deleted(self, message_id: str) -> None:
        """The message is not in the queue any more."""
        self._found.pop(message_id, None)

    def set_back(self, by: timedelta) -> None:
        """The clock was set back by so much: messages were received as long ago as before."""
        self._found = {id_: (one, at - by) for id_, (one, at) in self._found.items()}
        self._reclaimed = {id_: (pool, at - by) for id_, (pool, at) in self._reclaimed.items()}

    def at(self, now: datetime) -> tuple[Interruption, ...]:
        """By the message's ID."""
        self._found = {id_: one for id_, one in self._found.items() if now - one[1] <= KEPT}
        self._reclaimed = {id_: one for id_, one in self._reclaimed.items() if now - one[1] < COUNTED}
        return tuple(one for _, (one, _) in sorted(self._found.items()))
