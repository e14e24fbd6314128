"""The pauses between the passes of a model, and the candidates of a pass."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from kerf.disruption.candidates.candidates import Candidate, candidate
from kerf.disruption.view import View
from kerf.model.plan import Plan

#: Returns an equal value for as long as nothing changes in the world.
Changes = Callable[[], object]
EVERY: Final = timedelta(seconds=10)
#: After a pass without a result the next one is so much later, unless something changes.
AGAIN: Final = timedelta(minutes=5)


class Pace:
    """A pass every ten seconds. After a pass without a result there is one more; then the next one follows a change."""

    def __init__(self) -> None:
        self._due: datetime | None = None
        self._in_vain: tuple[object, datetime] | None = None
        self._tired = False

    def waits(self, now: datetime, changes: object) -> Plan | None:
        """The time of the next pass; None for now."""
        if self._in_vain is not None and self._in_vain[0] == changes:
            again = self._in_vain[1] + AGAIN
            if self._tired or now < again:
                return Plan(next_due=None if self._tired else again)
        elif self._due is not None and now < self._due:
            return Plan(next_due=self._due)
        self._due = now + EVERY
        return None

    def found_nothing(self, now: datetime, changes: object) -> Plan:
        """The time of the pass after one without a result."""
        self._tired = self._in_vain is not None and self._in_vain[0] == changes
        self._in_vain = (changes, now)
        return Plan(next_due=None if self._tired else now + AGAIN)


def candidates(view: View) -> list[Candidate]:
    """The nodes that may be disrupted, by key."""
    found = [candidate(view, key) for key in sorted(view.snapshot.state_nodes)]
    return [one for one in found if isinstance(one, Candidate)]
