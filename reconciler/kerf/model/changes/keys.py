"""The keys of tables in their order, kept up as keys come and go."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence


class SortedKeys:
    """By name of a table, its keys: sorted once, and then followed."""

    def __init__(self) -> None:
        self._keys: dict[str, list[str]] = {}

    def of(self, table: str, keys: Iterable[str]) -> Sequence[str]:
        """The sorted keys of a table; `keys` are read when it is asked for the first time."""
        if table not in self._keys:
            self._keys[table] = sorted(keys)
        return self._keys[table]

    def follow(self, table: str, key: str, present: Callable[[], bool]) -> None:
        """Take in that a table may have a key, or may have it no more: `present` says which."""
        keys = self._keys.get(table)
        if keys is not None:
            self._put(keys, key, present())

    @staticmethod
    def _put(keys: list[str], key: str, present: bool) -> None:
        place = bisect_left(keys, key)
        known = place < len(keys) and keys[place] == key
        if present and not known:
            keys.insert(place, key)
        elif known and not present:
            del keys[place]
