"""Launches that EC2 refuses now: since when, and its latest error by code. `kerf status`, `kerf why` and the metrics of
troubles are made of these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kerf.ec2.errors import LACKS_OF_ACCOUNT, REFUSED_WITHIN, classify
from kerf.model.aws.cloud import FleetError
from kerf.model.instants import since_words
from kerf.model.snapshot import LaunchFailure


@dataclass(frozen=True, slots=True)
class RefusedLaunch:
    """An error of EC2 for which launches fail.

    Attributes:
        code: EC2's error code.
        message: EC2's first message, in alphabetical order, for the latest launch: as an event begins.
        since: the first of the launches that failed one after another; `at_least`: earlier ones may have failed, too.
        times: the number of launch groups that failed lately.
        latest: the latest of them.
    """

    code: str
    message: str
    since: datetime
    at_least: bool
    times: int
    latest: datetime

    @property
    def text(self) -> str:
        """The error in words, then its code and message."""
        error = f"{self.code}: {self.message}"
        return f"{classify(error)[1]}: {error}"

    @property
    def fix(self) -> str:
        """The edit that helps; empty when Kerf tries other offerings by itself."""
        return LACKS_OF_ACCOUNT.get(self.code, "")

    def standing(self, pool: str, now: datetime) -> str:
        """The refusal in words, with the NodePool, the time and the fix."""
        launches = f"{self.times} launch{'' if self.times == 1 else 'es'}"
        when = since_words(self.since, now, at_least=self.at_least)
        fix = f"; {self.fix}" if self.fix else ""
        return f"EC2 refuses launches of NodePool {pool}: {self.text} ({launches}, {when}){fix}"


def refused(launches: Iterable[LaunchFailure], now: datetime, pool: str | None = None) -> tuple[RefusedLaunch, ...]:
    """The errors of launches that failed lately, of one NodePool or of all, sorted by code."""
    known: dict[str, list[tuple[LaunchFailure, str]]] = {}
    for one in launches:
        if now - one.at >= REFUSED_WITHIN or pool not in (None, one.pool):
            continue
        errors = sorted((error.code, error.message) for error in one.errors)
        for code, message in dict(reversed(errors)).items():
            known.setdefault(code, []).append((one, message))
    return tuple(_of_code(code, rows) for code, rows in sorted(known.items()))


def _of_code(code: str, rows: Sequence[tuple[LaunchFailure, str]]) -> RefusedLaunch:
    latest, message = max(rows, key=lambda row: row[0].at)
    first = _first(one for one, _ in rows)
    return RefusedLaunch(code, message, first.began, first.at_least, len(rows), latest.at)


def _first(launches: Iterable[LaunchFailure]) -> LaunchFailure:
    """The launch that began to fail first; of several one that may have failed before."""
    return min(launches, key=lambda one: (one.began, not one.at_least))


def following(
    known: Iterable[LaunchFailure], errors: tuple[FleetError, ...], at: datetime, watched: timedelta
) -> tuple[datetime, bool]:
    """Since when launches fail as this one does, and whether earlier ones may have failed, too.

    Args:
        known: the earlier failures.
        errors: the errors of the launch that failed.
        at: the time of that launch.
        watched: for how long before it failures would be known.
    """
    codes = {error.code for error in errors}
    before = [one for one in known if at - one.at <= REFUSED_WITHIN and codes & {error.code for error in one.errors}]
    if before:
        first = _first(before)
        return first.began, first.at_least
    return at, watched <= REFUSED_WITHIN
