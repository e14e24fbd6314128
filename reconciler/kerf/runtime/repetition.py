"""Whether the slow half would be asked what it has answered already: a cluster at rest needs no thinking.

Then it is not asked, and after a while its worker process ends, which is a third of the memory of a small cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from kerf.model.cluster import FACTS
from kerf.model.snapshot import Proposal, Snapshot
from kerf.runtime.inbox import Proposed
from kerf.runtime.state.changes import Changes

#: No inputs of the slow half, and some change without end: times of reading, actions that failed or are under way,
#: interruptions and the accounts of earlier commands, of which it reads the traces on objects. Its own words are
#: compared with its answer.
UNCONSIDERED: Final = frozenset(
    {
        "now",
        "resolved_at",
        "examined_at",
        "fresh_at",
        "inventories",
        "dry_runs",
        "failures",
        "under_way",
        "interruptions",
        "accounts",
        "proposals",
        "kept",
        "dropped_fields",
        "left_over",
        "had_turn",
        "candidates_left_over",
    }
)
_CONSIDERED: Final = tuple(name for name in FACTS if name not in UNCONSIDERED)
#: The worker process ends when nothing new has come up for so long: to start it takes a second of CPU.
REST_AFTER: Final = timedelta(minutes=2)


class Repetition:
    """The latest question, its answer's life, and since when nothing new has come up. It belongs to the loop."""

    def __init__(self, due: datetime) -> None:
        #: When the next question may be asked.
        self.due = due
        self._question: Mapping[str, Any] = {}
        self._asked_at = self._new_at = datetime.min
        self._until: datetime | None = None
        self._proposals: tuple[Proposal, ...] = ()

    def forget(self) -> None:
        """Changes were not kept: the next question counts as new."""
        self._question, self._until = {}, None

    def asked(self, snapshot: Snapshot) -> None:
        """This snapshot is what the slow half thinks about now."""
        question = _question(snapshot)
        if question != self._question:
            self._new_at = snapshot.now
        self._question, self._asked_at, self._until = question, snapshot.now, None

    def answered(self, answer: Proposed) -> None:
        if answer.made_at == self._asked_at:
            self._until, self._proposals = answer.until, answer.proposals

    def same(self, snapshot: Snapshot, changes: Changes) -> bool:
        """Whether the slow half would say again what it said last."""
        if self._until is None or changes.different or not self._asked_at <= snapshot.now < self._until:
            return False
        if snapshot.proposals != self._proposals:  # some were forgotten, or a clock was set back
            return False
        return _question(snapshot) == self._question

    def rests(self, now: datetime) -> bool:
        """Whether nothing new has come up for a while, and no proposal stands that is soon asked for again."""
        return not self._proposals and now - self._new_at >= REST_AFTER


def _question(snapshot: Snapshot) -> Mapping[str, Any]:
    """The facts as they are now: the snapshot's maps may be views of tables that change. (Objects are in `Changes`.)"""
    found = {name: getattr(snapshot, name) for name in _CONSIDERED}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in found.items()}
