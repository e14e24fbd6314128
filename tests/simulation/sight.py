"""What the controller can see of the world, and what a fault keeps from it until it is told again.

A source is a watched kind's plural, or `instances` for EC2's list. One that could not be read, that said nothing
although there was news, or whose write took effect although it failed, hides something; the next read that comes off
shows it. A write that was refused hides nothing, nor does the death of a process: the next one lists everything first.
"""

from __future__ import annotations

from datetime import datetime

INSTANCES = "instances"


class Sight:
    """See the module."""

    def __init__(self) -> None:
        self._hidden: set[str] = set()
        self._until: dict[str, datetime] = {}

    def hides(self, source: str) -> None:
        self._hidden.add(source)

    def shows(self, source: str, now: datetime) -> None:
        if source in self._hidden:
            self._hidden.discard(source)
            self._until[source] = now

    def of(self, *sources: str) -> bool:
        """Whether all there is to know of these has been told."""
        return self._hidden.isdisjoint(sources)

    def since(self, now: datetime, *sources: str) -> datetime | None:
        """Since when that is so (`now` while it is not); None when it has always been."""
        if not self.of(*sources):
            return now
        return max((self._until[source] for source in sources if source in self._until), default=None)
