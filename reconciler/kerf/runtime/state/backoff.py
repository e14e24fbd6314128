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
from kerf.model.plan import PatchObject

#: Of an action that failed.
ACTION_STEPS: Final = Steps(timedelta(milliseconds=500), timedelta(seconds=60))
#: So many writes of one verb to one object within this time, each after one of another writer, are a fight.
LIMIT: Final = 10
WITHIN: Final = timedelta(seconds=10)
#: How many contents of a write are compared with the next one.
_CONTENTS: Final = 4


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


@dataclass(slots=True)
class _Write:
    """What a write contained the latest times, and when: one that contains something new was not undone. Several other
    writers may undo a part each, so that a few contents alternate.

    `followed` is when it was repeated after another writer. It is `held` while that happens at least every `WITHIN`.
    """

    at: datetime
    contents: deque[Any] = field(default_factory=lambda: deque(maxlen=_CONTENTS))
    followed: deque[datetime] = field(default_factory=lambda: deque(maxlen=LIMIT))
    held: bool = False

    def count(self) -> datetime | None:
        """Another writer came before it; until when the next one is to wait, if it must."""
        if self.followed and self.at - self.followed[-1] >= WITHIN:
            self.held = False
        self.followed.append(self.at)
        self.held |= len(self.followed) == LIMIT and self.at - self.followed[0] < WITHIN
        # Not until the oldest one does not count any more: what else is to be done with the object waits as well.
        return self.at + WITHIN / LIMIT if self.held else None

    def set_back(self, by: timedelta) -> None:
        self.at -= by
        self.followed = deque((at - by for at in self.followed), LIMIT)


class Contested:
    """One thread uses it. A write is one verb to one object, with its UID."""

    def __init__(self) -> None:
        #: By object, the version that our latest write gave it, and when; the oldest first, as in the other table.
        self._versions = OrderedDict[str, tuple[str, datetime]]()
        self._writes = OrderedDict[str, _Write]()

    def written(self, action: PatchObject, uid: str, before: str, after: str, now: datetime) -> datetime | None:
        """Take in a write that the API server accepted; until when the same one is to wait, if it must.

        `before` is the object's version as known when the answer came, unless the write itself names the version that
        it rests on; `after` that of the answer, which the watch may have brought earlier.
        """
        ref, repeated = f"{action.ref} {uid}", self._repeated(action, uid, now)
        own = self._versions.pop(ref, None)
        self._versions[ref] = after, now
        if own is None or (action.resource_version or before) in ("", own[0], after):
            return None
        return repeated.count() if repeated is not None else None

    def refused(self, action: PatchObject, uid: str, now: datetime) -> datetime | None:
        """Take in a write that failed with a conflict, for another writer had changed the object; see `written`."""
        repeated = self._repeated(action, uid, now)
        return repeated.count() if repeated is not None else None

    def _repeated(self, action: PatchObject, uid: str, now: datetime) -> _Write | None:
        """The write if it contains the same as one of the latest times."""
        key, content = f"{action.key} {uid}", _without_times(action.patch)
        write = self._writes.setdefault(key, _Write(now))
        self._writes.move_to_end(key)
        write.at, known = now, content in write.contents
        if not known:
            write.contents.append(content)
        return write if known else None

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


def _without_times(patch: Any) -> Any:
    """A patch without the times of its conditions: these are others when a condition is written again."""
    if isinstance(patch, Mapping):
        return {name: _without_times(value) for name, value in patch.items() if name != "lastTransitionTime"}
    return [_without_times(one) for one in patch] if isinstance(patch, (list, tuple)) else patch
