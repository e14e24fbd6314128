"""The actions that fail: since when, how often, and the latest error of each."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from kerf.model import failures
from kerf.model.failures import Failure
from kerf.runtime.inbox import ChoreRecovered, Polled, PricesRead, RegionRead, Reported, outcome_of

#: An action that was not tried again for this long is not wanted any more. The longest back-off is a minute.
FORGOTTEN_AFTER: Final = timedelta(minutes=5)
#: An action that fails is tried again within this time: a fault that is older than this process, or than its lease,
#: fails so soon after the first action, or the first read.
_TRIED_WITHIN: Final = timedelta(minutes=2)
#: The verbs of what a standby does, too.
_OF_STANDBY: Final = frozenset({failures.READ, failures.ANSWER})
#: The API's own texts may be long; a condition and an event hold about as much.
_LONGEST: Final = 1000


class Failures:
    """The failures by verb and object. One thread uses it."""

    def __init__(self) -> None:
        self._known: dict[str, Failure] = {}
        #: The time of the first read, and of the first action, by whether a standby does it, too.
        self._begun: dict[bool, datetime] = {}
        #: Reported failures whose end was not reported: `read` may still have to see them.
        self._reported: set[str] = set()

    def is_new(self, news: Reported) -> bool:
        """Whether a report is worth reading: a failure, or the end of one. Any thread may ask, once for each report."""
        key = failures.key(news.verb, news.object)
        if news.outcome:
            self._reported.add(key)
            return True
        ends = key in self._reported or key in self._known
        self._reported.discard(key)
        return ends

    def failed(self, verb: str, subject: str, outcome: str, error: str, now: datetime) -> None:
        """Count a failed attempt."""
        key, text = failures.key(verb, subject), error[:_LONGEST]
        old, begun = self._known.get(key), self._begun.setdefault(verb in _OF_STANDBY, now)
        if old is None:
            early = now - begun <= _TRIED_WITHIN
            self._known[key] = Failure(verb, subject, outcome, text, now, now, at_least=early)
        else:
            self._known[key] = replace(old, outcome=outcome, error=text, latest=now, times=old.times + 1)

    def succeeded(self, verb: str, subject: str, now: datetime) -> None:
        """Forget the failure of an action that the API has accepted."""
        self._begun.setdefault(verb in _OF_STANDBY, now)
        self._known.pop(failures.key(verb, subject), None)

    def read(self, news: PricesRead | RegionRead | Polled | Reported) -> None:
        """Count a failed read of AWS, or what a part of this process reports; forget those that do not fail any more.
        The first answer to a read is the begin of reads; later ones change nothing."""
        if isinstance(news, Reported) and news.outcome:
            self.failed(news.verb, news.object, news.outcome, news.error, news.at)
        elif isinstance(news, Reported):
            self.succeeded(news.verb, news.object, news.at)
        elif isinstance(news, Polled):
            self._polled(news)
        else:
            self._begun.setdefault(True, news.at)

    def _polled(self, news: Polled) -> None:
        subject = failures.of_aws(news.key)
        if isinstance(news, ChoreRecovered):
            self.succeeded(failures.READ, subject, news.at)
            return
        self.failed(failures.READ, subject, outcome_of(news.error), str(news.error), news.at)

    def gone(self, subject: str) -> None:
        """Forget the failures about an object that does not exist any more."""
        for key in [key for key, one in self._known.items() if one.object == subject]:
            del self._known[key]

    def set_back(self, by: timedelta) -> None:
        """Move every instant with a clock that was set back."""
        self._known = {
            key: replace(one, since=one.since - by, latest=one.latest - by) for key, one in self._known.items()
        }
        self._begun = {standby: at - by for standby, at in self._begun.items()}

    def at(self, now: datetime) -> dict[str, Failure]:
        """Return a copy of the failures by key; those of actions that are not tried any more are forgotten."""
        for key in [key for key, one in self._known.items() if now - one.latest > FORGOTTEN_AFTER]:
            del self._known[key]
        return dict(self._known)
