"""What has changed, in order: the entries of tables that came, went or were replaced.

A module whose values rest on tables remembers a position, and later asks what has changed since.
"""

from __future__ import annotations

from collections.abc import Sequence

#: Rows that are kept; who has been away for longer looks at everything again.
_KEPT = 20_000


class Journal:
    """Rows of (table, key). A key may be recorded several times; positions only grow."""

    def __init__(self) -> None:
        self._first = 0
        self._rows: list[tuple[str, str]] = []

    @property
    def position(self) -> int:
        """Behind the newest row."""
        return self._first + len(self._rows)

    def touch(self, table: str, key: str) -> None:
        """This entry of the table is not what it was."""
        self._rows.append((table, key))
        if len(self._rows) > 2 * _KEPT:
            del self._rows[:_KEPT]
            self._first += _KEPT

    def since(self, position: int) -> Sequence[tuple[str, str]] | None:
        """The rows from a position on; None when they are not kept any more."""
        return None if position < self._first else self._rows[position - self._first :]
