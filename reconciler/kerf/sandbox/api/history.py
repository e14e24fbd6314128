"""What changed, in order, kept for a while: the source of every watch.

Each kind has its own bounded history. A watch remembers the version it has seen; when the history no longer reaches
back that far it has Expired, and its reader lists again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LENGTH = 20_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One change of one object; `type` is ADDED, MODIFIED or DELETED."""

    version: int
    type: str
    manifest: Mapping[str, Any]


class History:
    """The changes of one kind. `length` is how many are kept at least."""

    def __init__(self, length: int = LENGTH) -> None:
        self._length = length
        self._versions: list[int] = []
        self._entries: list[Entry] = []
        self._forgotten = 0
        #: The version of the latest change, or up to which everything is forgotten.
        self.latest = 0

    def add(self, entry: Entry) -> None:
        self._versions.append(entry.version)
        self._entries.append(entry)
        self.latest = entry.version
        if len(self._entries) > 2 * self._length:
            self._forget(len(self._entries) - self._length)

    def forget_all(self, upto: int) -> None:
        """Forget everything; watches that have not seen version `upto` expire."""
        self._forget(len(self._entries))
        self._forgotten = self.latest = max(self._forgotten, upto)

    def since(self, version: int) -> Sequence[Entry] | None:
        """What came after a version; None when that is not known any more."""
        if version < self._forgotten:
            return None
        return self._entries[bisect_right(self._versions, version) :]

    def _forget(self, count: int) -> None:
        if count:
            self._forgotten = self._versions[count - 1]
            del self._versions[:count], self._entries[:count]
