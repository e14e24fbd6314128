"""How long to leave something alone: what failed, by doubling waits per subject; and what another writer undoes.

In the second case (another controller, a GitOps tool, or a process that still believes that it leads) each of two
writers finds the object other than it should be, and writes it again as fast as the API server answers. A write that
follows a foreign one each time is held back, so that such a fight costs about one request a second.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from kerf.model.backoff import Steps
from kerf.model.plan import PatchObject

#: Of an action that failed.
ACTION_STEPS: Final = Steps(timedelta(milliseconds=500), timedelta(seconds=60))
#: So many writes of one verb to one object within this time, each after one of another writer, are a fight.
LIMIT: Final = 10
WITHIN: Final = timedelta(seconds=10)


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


class Contested:
    """One thread uses it. A write is one verb to one object, with its UID."""

    def __init__(self) -> None:
        #: By object, the version that our latest write gave it, and when.
        self._versions: dict[str, tuple[str, datetime]] = {}
        #: What each write contained the latest time, and when: one that contains something else was not undone.
        self._patches: dict[str, tuple[Any, datetime]] = {}
        #: When a write that was repeated had followed one of another writer.
        self._times: dict[str, deque[datetime]] = {}
        #: The writes that are held back: for as long as one comes at least every `WITHIN`.
        self._held: set[str] = set()

    def written(self, action: PatchObject, uid: str, before: str, after: str, now: datetime) -> datetime | None:
        """Take in a write that the API server accepted; until when the same one is to wait, if it must.

        `before` is the object's version as known when the answer came, unless the write itself names the version that
        it rests on; `after` that of the answer, which the watch may have brought earlier.
        """
        ref, repeated = f"{action.ref} {uid}", self._is_repeated(action, uid, now)
        own, self._versions[ref] = self._versions.get(ref), (after, now)
        if own is None or (action.resource_version or before) in ("", own[0], after):
            return None
        return self._count(f"{action.key} {uid}", now) if repeated else None

    def refused(self, action: PatchObject, uid: str, now: datetime) -> datetime | None:
        """Take in a write that failed with a conflict, for another writer had changed the object; see `written`."""
        return self._count(f"{action.key} {uid}", now) if self._is_repeated(action, uid, now) else None

    def _is_repeated(self, action: PatchObject, uid: str, now: datetime) -> bool:
        key, content = f"{action.key} {uid}", _without_times(action.patch)
        latest, self._patches[key] = self._patches.get(key), (content, now)
        return latest is not None and latest[0] == content

    def _count(self, key: str, now: datetime) -> datetime | None:
        times = self._times.setdefault(key, deque(maxlen=LIMIT))
        if times and now - times[-1] >= WITHIN:
            self._held.discard(key)
        times.append(now)
        if len(times) == LIMIT and now - times[0] < WITHIN:
            self._held.add(key)
        # Not until the oldest one does not count any more: what else is to be done with the object waits as well.
        return now + WITHIN / LIMIT if key in self._held else None

    def forget_old(self, now: datetime) -> None:
        """Forget what is too old to count."""
        self._times = {key: times for key, times in self._times.items() if now - times[-1] < WITHIN}
        self._held &= self._times.keys()
        self._versions = {ref: known for ref, known in self._versions.items() if now - known[1] < WITHIN}
        self._patches = {key: known for key, known in self._patches.items() if now - known[1] < WITHIN}

    def set_back(self, by: timedelta) -> None:
        """The clock was set back by so much: everything is as long ago as before."""
        self._versions = {ref: (version, at - by) for ref, (version, at) in self._versions.items()}
        self._patches = {key: (content, at - by) for key, (content, at) in self._patches.items()}
        self._times = {key: deque((at - by for at in times), LIMIT) for key, times in self._times.items()}


def _without_times(patch: Any) -> Any:
    """A patch without the times of its conditions: these are others when a condition is written again."""
    if isinstance(patch, Mapping):
        return {name: _without_times(value) for name, value in patch.items() if name != "lastTransitionTime"}
    return [_without_times(one) for one in patch] if isinstance(patch, (list, tuple)) else patch
