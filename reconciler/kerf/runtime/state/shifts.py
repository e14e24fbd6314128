"""The zones that traffic is shifted away from, as ARC said last; each comes back by itself when its time is over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from kerf.model.aws.cloud import ClassFacts, Instance, ZonalShift

#: A shift that does not say when it ends holds for so long after ARC returned it last.
HELD: Final = timedelta(minutes=5)


class ZonalShifts:
    """One thread uses it."""

    def __init__(self) -> None:
        self._until: dict[str, datetime] = {}

    def read(self, found: Iterable[ZonalShift], at: datetime) -> None:
        """All shifts that ARC returns; one that it no longer returns is over."""
        self._until = {one.zone_id: one.until or at + HELD for one in found}

    def at(self, now: datetime) -> Mapping[str, datetime]:
        """Until when, by zone ID."""
        return {id_: until for id_, until in self._until.items() if until > now}


def by_name(shifted: Mapping[str, datetime], facts: Iterable[ClassFacts]) -> Mapping[str, datetime]:
    """The same, by the names of zones too, as far as a subnet has them."""
    if not shifted:
        return shifted
    subnets = (subnet for known in facts for subnet in known.subnets)
    return {**{s.zone: shifted[s.zone_id] for s in subnets if s.zone_id in shifted}, **shifted}


def lies_there(instance: Instance, shifted: Mapping[str, datetime]) -> bool:
    """Whether an instance is in one of these zones."""
    return instance.zone in shifted or instance.zone_id in shifted
