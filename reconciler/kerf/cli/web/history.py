"""A record for the page: its decisions, newest first, the price over time, savings, and the views as of a time.

Memory is bounded: the newest decisions are kept with their texts, and prices at times that are equally far apart.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Final

from kerf.cli.answering.records import Note, Record, found
from kerf.cli.arguments import Mistake
from kerf.disruption.view import view
from kerf.model import kinds
from kerf.model.instants import rfc3339
from kerf.model.snapshot import Snapshot
from kerf.records.reading import Step
from kerf.snapshots.captured import Captured
from kerf.snapshots.reading import Unreadable
from kerf.views.board import Board, board
from kerf.views.cluster import pool_prices
from kerf.views.realised import Savings, Tally

#: Texts of decisions that are kept: names of changed objects, actions and reasons.
MOST_TEXTS: Final = 200_000
#: Times with a price.
MOST_MOMENTS: Final = 300
_FIRST_DISTANCE: Final = timedelta(minutes=1)
_BOARDS: Final = 4
_CLAIM: Final = f"{kinds.NODE_CLAIM.name} "


@dataclass(frozen=True, slots=True)
class Entry:
    """A decision with the objects that changed before it (`Kind namespace/name`) and its actions with reasons."""

    at: datetime
    changed: tuple[str, ...]
    actions: tuple[tuple[str, str], ...]
    more: int = 0

    def about(self, text: str) -> bool:
        """Whether a changed object or an action has the text in its name or reason."""
        wanted = text.lower()
        return any(wanted in one.lower() for one in self._texts())

    def _texts(self) -> Iterator[str]:
        yield from self.changed
        for key, reason in self.actions:
            yield from (key, reason)

    @property
    def size(self) -> int:
        return 1 + len(self.changed) + 2 * len(self.actions)


@dataclass(frozen=True, slots=True)
class Moment:
    """A time of the record, with its nodes and the price of each NodePool in millionths of a dollar per hour."""

    at: datetime
    nodes: int
    prices: dict[str, int]

    @property
    def price(self) -> int:
        return sum(self.prices.values())


@dataclass(slots=True)
class _Reading:
    entries: deque[Entry] = field(default_factory=deque)
    moments: list[Moment] = field(default_factory=list)
    decisions: int = 0
    omitted: int = 0
    savings: Tally = field(default_factory=Tally)
    _texts: int = 0
    _distance: timedelta = _FIRST_DISTANCE

    def take(self, step: Step, *, first: bool) -> None:
        """`first`: of its file, whose objects are all new. Raises Unreadable."""
        self.decisions += 1
        decision = step.decision
        self._save(step, first=first)
        if step.changed or decision.actions:
            acts = tuple((act.key, act.reason) for act in decision.actions)
            self._keep(Entry(decision.at, step.changed, acts, decision.more_actions))
        if not self.moments or not timedelta(0) <= decision.at - self.moments[-1].at < self._distance:
            self._sample(step.captured().snapshot)

    def _save(self, step: Step, *, first: bool) -> None:
        claims = step.objects(kinds.NODE_CLAIM)
        changed = [one.removeprefix(_CLAIM).split(" ")[0] for one in step.changed if one.startswith(_CLAIM)]
        names = list(claims) if first else changed
        if (first or names) and self.savings.concerns(claims, names):
            self.savings.take(view(step.captured().snapshot), names)
        else:
            self.savings.advance(step.decision.at)

    def _keep(self, entry: Entry) -> None:
        self.entries.appendleft(entry)
        self._texts += entry.size
        while self._texts > MOST_TEXTS and len(self.entries) > 1:
            self._texts -= self.entries.pop().size
            self.omitted += 1

    def _sample(self, snapshot: Snapshot) -> None:
        self.moments.append(Moment(snapshot.now, len(snapshot.state_nodes), pool_prices(view(snapshot))))
        if len(self.moments) > MOST_MOMENTS:
            self.moments, self._distance = self.moments[::2], 2 * self._distance


class History:
    """The decisions of a record up to now. Threads of requests share it."""

    def __init__(self, path: str, note: Note) -> None:
        """Read the record. Raises Mistake."""
        self._paths: list[Path] = found(path)
        self._lock, reading = threading.Lock(), _Reading()
        unreadable = set[Path]()
        for step, file, numbers in Record(self._paths, note).decisions(count):
            if file in unreadable:
                continue
            try:
                reading.take(step, first=not next(numbers))
            except Unreadable as error:
                unreadable.add(file)
                note(f"{file}: {error}")
        if not reading.moments:
            raise Mistake(f"{path}: the record has no decision: name the folder of RECORD_FOLDER after its first one")
        self.entries, self.moments = tuple(reading.entries), tuple(reading.moments)
        self.decisions, self.omitted = reading.decisions, reading.omitted
        self.savings: Savings | None = reading.savings.found()
        self._board = lru_cache(_BOARDS)(self._read)

    @property
    def began(self) -> datetime:
        return self.moments[0].at

    def latest(self) -> Captured:
        """The cluster of the last decision. Raises Mistake."""
        return self._captured(None)

    def board(self, at: datetime) -> Board:
        """The views of the latest decision up to a time. Raises Mistake."""
        with self._lock:
            return self._board(at)

    def _read(self, at: datetime) -> Board:
        return board(self._captured(at).snapshot)

    def _captured(self, at: datetime | None) -> Captured:
        step = Record(self._paths, lambda _: None, until=at).last()
        if step is None:
            raise Mistake(f"at: the record has no decision up to then: it begins at {rfc3339(self.began)}")
        try:
            return step.captured()
        except Unreadable as error:
            raise Mistake(f"at: {error}") from error
