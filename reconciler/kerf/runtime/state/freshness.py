"""When each source of the snapshot was last complete, and which of them can be trusted no more."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from kerf.model.kinds import Kind
from kerf.model.plan import Source

_BY_NAME = {source.value: source for source in Source}


class Freshness:
    """Kinds on which nothing that is destroyed rests are no source: reports about them are ignored."""

    def __init__(self) -> None:
        self.at: dict[Source, datetime] = {}
        self._doubted: set[Source] = set()

    @property
    def doubted(self) -> frozenset[Source]:
        """What can be trusted no more until the process starts again."""
        return frozenset(self._doubted)

    def complete(self, name: str, at: datetime, now: datetime) -> None:
        """A source of this name was complete then."""
        source = _BY_NAME.get(name)
        if source is None or source in self._doubted:
            return
        known = self.at.get(source, at)
        self.at[source] = at if known > now else max(at, known)

    def withheld(self, kind: Kind) -> None:
        """The kind cannot be read any more."""
        if (source := _BY_NAME.get(kind.name)) is not None:
            self.at.pop(source, None)

    def doubt(self, kind: Kind) -> None:
        """An event of this kind could not be processed, and may be in one index and not in another.

        No list repairs that, because it passes over an object that is known in its version: a node may look empty that
        is not. So nothing is destroyed that rests on this kind until the process starts again.
        """
        if (source := _BY_NAME.get(kind.name)) is not None:
            self._doubted.add(source)
            self.at.pop(source, None)

    def within(self, sources: Iterable[Source], age: timedelta, now: datetime) -> bool:
        """Whether all of these are no older than that. Any thread may ask."""
        limit = now - age
        found = [self.at.get(source) for source in sources]
        return all(at is not None and limit <= at <= now for at in found)

    def forget_later_than(self, now: datetime) -> None:
        """What bears a later time is unknown: the clock was set back since."""
        for source in [s for s, at in self.at.items() if at > now]:
            del self.at[source]
