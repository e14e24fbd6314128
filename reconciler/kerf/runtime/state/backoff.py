"""How long to leave something alone: what failed, by doubling waits per subject; and what another writer undoes.

In the second case (another controller, a GitOps tool, or a process that still believes that it leads) each of two
writers finds the object other than it should be, and writes it again as fast as the API server answers. A write that
follows a foreign one each time is held back, so that such a fight costs about one request a second.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from kerf.model.backoff import Steps
from kerf.model.failures import CONTESTED, OVERTAKEN
from kerf.model.kept import written_values
from kerf.model.plan import PatchObject

#: Of a field within its object.
Path = tuple[str, ...]

#: Of an action that failed.
ACTION_STEPS: Final = Steps(timedelta(milliseconds=500), timedelta(seconds=60))
#: So many writes of one verb to one object within this time, each after one of another writer, are a fight.
LIMIT: Final = 10
WITHIN: Final = timedelta(seconds=10)
#: Of how many fields the latest values are known.
_FIELDS: Final = 100


class Backoff:
    """Back-offs of many subjects."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._failures: dict[str, int] = {}
        self._until: dict[str, datetime] = {}

    def failed(self, subject: str, now: datetime, at_least_seconds: float = 0.0) -> datetime:
        """Count a failure; the instant before which the subject should be left alone."""
        self._failures[subject] = self._failures.get(subject, 0) + 1
        wait = self._steps.after(self._failures[subject], subject)
        self._until[subject] = now + max(wait, timedelta(seconds=at_least_seconds))
        return self._until[subject]

    def succeeded(self, subject: str) -> None:
        self._failures.pop(subject, None)
        self._until.pop(subject, None)

    def end(self, subject: str, now: datetime) -> None:
        """Let the subject be tried at once. The next failure waits longer all the same."""
        self._until[subject] = now

    def set_back(self, by: timedelta) -> None:
        """The clock was set back by so much: every wait ends as far from now as before."""
        self._until = {subject: until - by for subject, until in self._until.items()}

    def until(self, subject: str) -> datetime | None:
        return self._until.get(subject)

    def holding(self, now: datetime) -> dict[str, datetime]:
        """Subjects to be left alone at `now`, until when. Forgets those that failed long ago (ten longest waits)."""
        stale = [s for s, until in self._until.items() if now - until > 10 * self._steps.longest]
        for subject in stale:
            self.succeeded(subject)
        return {s: until for s, until in self._until.items() if until > now}


@dataclass(frozen=True, slots=True)
class Contest:
    """The next write waits until then; the outcome (`CONTESTED`, `OVERTAKEN`) is how another writer interferes."""

    until: datetime
    outcome: str


@dataclass(slots=True)
class _Write:
    """The latest value that it gave each field, and when it was made. A write only contains what the object does not
    have, so one that gives each of its fields the value that it gave it before was undone, or did not come off.

    `followed` is when it was repeated after another writer. It is `held` while that happens at least every `WITHIN`,
    and `undone` when some of these times its values were lost.
    """

    at: datetime
    values: dict[Path, Any] = field(default_factory=dict)
    followed: deque[datetime] = field(default_factory=lambda: deque(maxlen=LIMIT))
    held: bool = False
    undone: bool = False

    def repeats(self, values: Mapping[Path, Any]) -> bool:
        """Take in what is written; whether all of it was written before."""
        known = all(path in self.values and self.values[path] == value for path, value in values.items())
        for path, value in values.items():
            self.values.pop(path, None)
            self.values[path] = value
        while len(self.values) > _FIELDS:
            del self.values[next(iter(self.values))]
        return known and bool(values)

    def count(self, *, undone: bool) -> Contest | None:
        """Another writer came before it, and has undone it or has only been faster; None while it need not wait."""
        if self.followed and self.at - self.followed[-1] >= WITHIN:
            self.held = self.undone = False
        self.undone |= undone
        self.followed.append(self.at)
        self.held |= len(self.followed) == LIMIT and self.at - self.followed[0] < WITHIN
        # Not until the oldest one does not count any more: what else is to be done with the object waits as well.
        return Contest(self.at + WITHIN / LIMIT, CONTESTED if self.undone else OVERTAKEN) if self.held else None

    def set_back(self, by: timedelta) -> None:
        self.at -= by
        self.followed = deque((at - by for at in self.followed), LIMIT)


class Contested:
    """One thread uses it. A write is one verb to one object, with its UID."""

    def __init__(self) -> None:
        #: By object, the version that our latest write gave it, and when; the oldest first, as in the other table.
        self._versions = OrderedDict[str, tuple[str, datetime]]()
        self._writes = OrderedDict[str, _Write]()

    def written(self, action: PatchObject, uid: str, before: str, after: str, now: datetime) -> Contest | None:
        """Take in a write that the API server accepted; whether the next one is to wait.

        `before` is the object's version as known when the answer came, unless the write itself names the version that
        it rests on; `after` that of the answer, which the watch may have brought earlier.
        """
        ref, repeated = f"{action.ref} {uid}", self._repeated(action, uid, now)
        own = self._versions.pop(ref, None)
        self._versions[ref] = after, now
        if own is None or (action.resource_version or before) in ("", own[0], after):
            return None
        return repeated.count(undone=True) if repeated is not None else None

    def refused(self, action: PatchObject, uid: str, now: datetime) -> Contest | None:
        """Take in a write that failed with a conflict, for another writer had changed the object; see `written`."""
        repeated = self._repeated(action, uid, now)
        return repeated.count(undone=False) if repeated is not None else None

    def _repeated(self, action: PatchObject, uid: str, now: datetime) -> _Write | None:
        """The write, when all of it was written before."""
        key = f"{action.key} {uid}"
        write = self._writes.setdefault(key, _Write(now))
        self._writes.move_to_end(key)
        write.at = now
        values = {path: _without_times(value) for path, value in written_values(action).items()}
        return write if write.repeats(values) else None

    def forget_old(self, now: datetime) -> None:
        """Forget what is too old to count."""
        while self._writes and now - next(iter(self._writes.values())).at >= WITHIN:
            self._writes.popitem(last=False)
        while self._versions and now - next(iter(self._versions.values()))[1] >= WITHIN:
            self._versions.popitem(last=False)

    def set_back(self, by: timedelta) -> None:
        """The clock was set back by so much: everything is as long ago as before."""
        for ref, (version, at) in self._versions.items():
            self._versions[ref] = version, at - by
        for write in self._writes.values():
            write.set_back(by)


def _without_times(value: Any) -> Any:
    """A field's value without the times of conditions: these are others when a condition is written again."""
    if isinstance(value, Mapping):
        return {name: _without_times(part) for name, part in value.items() if name != "lastTransitionTime"}
    return [_without_times(one) for one in value] if isinstance(value, (list, tuple)) else value
