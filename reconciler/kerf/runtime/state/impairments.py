"""The impairments of instances, as EC2 returned them last; each new one is reported once, until the instance has
recovered."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from kerf.model.aws.cloud import Impairment
from kerf.runtime.state.notices import ImpairmentFound, Notices

#: An impairment this long ago need not exist now.
KEPT: Final = timedelta(minutes=5)


class Impairments:
    """Each impairment that is new is noted in `notices`."""

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._found: dict[str, tuple[Impairment, ...]] = {}
        #: When EC2 was asked last.
        self.examined_at: datetime | None = None

    def examined(self, found: Iterable[Impairment], ours: Container[str], at: datetime) -> None:
        """All that EC2 finds with instances; only those that are `ours` are of interest."""
        before, self._found, self.examined_at = self._pairs(), {}, at
        for one in found:
            if one.instance_id in ours:
                self._found[one.instance_id] = (*self._found.get(one.instance_id, ()), one)
        for _, category in sorted(self._pairs() - before):
            self._notices.note(ImpairmentFound(category))

    def at(self, now: datetime) -> Mapping[str, tuple[Impairment, ...]]:
        """By instance; nothing when EC2 has not answered for a while."""
        if self.examined_at is None or not timedelta(0) <= now - self.examined_at <= KEPT:
            return {}
        return MappingProxyType(self._found)

    def _pairs(self) -> set[tuple[str, str]]:
        return {(one.instance_id, one.category) for found in self._found.values() for one in found}
