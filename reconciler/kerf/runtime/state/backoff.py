"""How long to leave something alone after it failed: doubling waits per subject, forgotten on success."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from kerf.model.backoff import Steps

#: Of an action that failed.
ACTION_STEPS: Final = Steps(timedelta(milliseconds=500), timedelta(seconds=60))


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
