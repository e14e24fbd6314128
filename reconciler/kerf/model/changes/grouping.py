"""An index of objects by something they have: kept up as they come, change and go."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from kerf.model.changes.journal import Journal


class Grouping:
    """Objects in groups, each a tuple sorted by name. `group` gives an object's group; the empty one is in none.

    Objects of one Grouping have different names; changes are recorded in the journal under the Grouping's own name.
    """

    def __init__(self, name: str, group: Callable[[Any], str], journal: Journal) -> None:
        self.name, self._group, self._journal = name, group, journal
        self._members: dict[str, tuple[Any, ...]] = {}

    @property
    def view(self) -> Mapping[str, tuple[Any, ...]]:
        """Live, read-only."""
        return MappingProxyType(self._members)

    def replace(self, old: Any | None, new: Any | None) -> None:
        """One object came (no `old`), changed, or went (no `new`)."""
        before = self._group(old) if old is not None else ""
        after = self._group(new) if new is not None else ""
        if before and (before != after or _name(old) != _name(new)):
            self._put(before, _name(old), ())
        if after:
            self._put(after, _name(new), (new,))

    def _put(self, group: str, name: str, instead: tuple[Any, ...]) -> None:
        """The group with this member replaced, added or (by nothing) removed."""
        members = self._members.get(group, ())
        place = bisect_left(members, name, key=_name)
        known = place < len(members) and _name(members[place]) == name
        members = (*members[:place], *instead, *members[place + known :])
        if members:
            self._members[group] = members
        else:
            self._members.pop(group, None)
        self._journal.touch(self.name, group)


def _name(value: Any) -> str:
    return value.metadata.name  # type: ignore[no-any-return]
