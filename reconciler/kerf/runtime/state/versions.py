"""The cluster's Kubernetes version, as it counts here.

While a control plane is upgraded its API servers answer with both versions by turns. So another version counts once two
answers, a minute or more apart, have named it with no other between. Once confirmed, a version never goes down: nodes
with images for the later one would be replaced, and again afterwards. A restart takes any first answer.

The leader writes its version on the lease. Another replica takes it from there, so that both select the same images.
Source: AWS, "Update existing cluster to new Kubernetes version" (one minor version at a time).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from kerf.model.aws.cloud import ClusterFacts
from kerf.runtime.inbox import ClusterRead, VersionNoted

#: Two equal answers are so far apart.
CONFIRMED_AFTER: Final = timedelta(minutes=1)


class KnownCluster:
    """The cluster's facts as they were read last, with the version that counts. One thread writes."""

    def __init__(self) -> None:
        self.facts: ClusterFacts | None = None
        self.version = KubernetesVersion()

    def agrees(self, version: str) -> bool:
        """Whether images for this version ("" for unknown) are those that count."""
        return version in ("", self.version.counted)

    def take(self, news: ClusterRead | VersionNoted) -> bool:
        """Take in facts, or the version on another's lease; whether another version counts than before."""
        facts, before = self.facts, self.version.counted
        if isinstance(news, ClusterRead):
            facts = news.facts
            self.version.answered(facts.kubernetes_version, news.at)
        else:
            self.version.noted(news.version)
        if facts is not None:
            self.facts = replace(facts, kubernetes_version=self.version.counted)
        return self.version.counted != before


@dataclass(frozen=True, slots=True)
class _Answer:
    version: str
    at: datetime


class KubernetesVersion:
    """One thread writes; any thread may read `counted`."""

    def __init__(self) -> None:
        #: `MAJOR.MINOR`; empty before the first answer.
        self.counted = ""
        self._confirmed = False
        #: The first of the latest equal answers.
        self._first: _Answer | None = None
        #: The version that another replica, which leads, has written on the lease; empty without one.
        self._noted = ""

    @property
    def settled(self) -> bool:
        """Whether the latest answers are confirmed; else the next one should come in a minute."""
        return self._confirmed and (self._first is None or self._first.version == self.counted)

    def answered(self, version: str, at: datetime) -> str:
        """Take in an answer of the control plane ("" for none); the version that counts."""
        if not version:
            return self.counted
        if self._first is None or self._first.version != version or self._first.at > at:
            self._first = _Answer(version, at)
        if not self.counted:
            self.counted = version
            self._take_noted()
        kept = self._confirmed or self.counted == self._noted
        if at - self._first.at >= CONFIRMED_AFTER and not (kept and _is_lower(version, self.counted)):
            self.counted, self._confirmed = version, True
        return self.counted

    def noted(self, version: str) -> str:
        """Take in the version on another's lease, "" when this replica has taken the lease; the version that counts.

        It is taken once, and only if it is the next minor version. While the other replica leads, lower answers do not
        count; a lease that was left behind gives way to them.
        """
        if version != self._noted:
            self._noted = version
            self._take_noted()
        return self.counted

    def _take_noted(self) -> None:
        number = _number(self._noted)
        if number is not None and number == _next(self.counted):
            self.counted = self._noted


def _number(version: str) -> tuple[int, int] | None:
    major, _, minor = version.partition(".")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None


def _next(version: str) -> tuple[int, int] | None:
    number = _number(version)
    return None if number is None else (number[0], number[1] + 1)


def _is_lower(version: str, other: str) -> bool:
    one, two = _number(version), _number(other)
    return one is not None and two is not None and one < two
