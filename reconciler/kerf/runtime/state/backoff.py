"""How long to leave something alone: what failed, by doubling waits per subject; and what another writer undoes.

In the second case (another controller, a GitOps tool, or a process that still believes that it leads) each of two
writers finds the object other than it should be, and writes it again as fast as the API server answers. A write that
follows a foreign one each time is held back, so that such a fight costs about one request a second.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta
from typing import Final

from kerf.model.backoff import Steps

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
    """One thread uses it."""

    def __init__(self) -> None:
        #: By object, the version that our latest write gave it, and when.
        self._versions: dict[str, tuple[str, datetime]] = {}
        #: By verb and object, when our writes followed those of others.
        self._times: dict[str, deque[datetime]] = {}

    def written(self, key: str, ref: str, before: str, after: str, now: datetime) -> datetime | None:
        """Take in a write that the API server accepted; until when the same one is to wait, if it must.

        `key` is its verb and object; `before` the object's version as known when the answer came, `after` that of the
        answer.
        """
        own, self._versions[ref] = self._versions.get(ref), (after, now)
        if own is None or before in ("", own[0]):
            return None
        times = self._times.setdefault(key, deque(maxlen=LIMIT))
        times.append(now)
        # Not until the oldest one does not count any more: what else is to be done with the object waits as well.
        return now + WITHIN / LIMIT if len(times) == LIMIT and now - times[0] < WITHIN else None

    def forget_old(self, now: datetime) -> None:
        """Forget what is too old to count."""
        self._times = {key: times for key, times in self._times.items() if now - times[-1] < WITHIN}
        self._versions = {ref: known for ref, known in self._versions.items() if now - known[1] < WITHIN}

    def set_back(self, by: timedelta) -> None:
        """The clock was set back by so much: everything is as long ago as before."""
        self._versions = {ref: (version, at - by) for ref, (version, at) in self._versions.items()}
        self._times = {key: deque((at - by for at in times), LIMIT) for key, times in self._times.items()}
