"""A lease as one process sees it.

No clock is trusted but our own: another holder is taken to be alive until we have not seen the lease change for
its whole duration. So what a lease says about times is never compared with what we think the time is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kerf.model.instants import rfc3339
from kerf.ports import Clock, Lease
from kerf_api import labels

DURATION, RENEW_DEADLINE, RETRY = timedelta(seconds=15), timedelta(seconds=10), timedelta(seconds=2)
#: How often who waits for a lease looks at it: from when it is given up until then no replica acts.
LOOK = timedelta(milliseconds=500)
#: Karpenter's name for its lease, and ours too: in one namespace the lease itself lets only one of the two lead.
KARPENTER = "karpenter-leader-election"


@dataclass(frozen=True, slots=True, order=True)
class LeaseName:
    """The address of a lease."""

    namespace: str
    name: str = KARPENTER

    @classmethod
    def parse(cls, text: str) -> LeaseName:
        """From `namespace` or `namespace/name`. Raises ValueError."""
        namespace, slash, name = text.partition("/")
        if not namespace or "/" in name or (slash and not name):
            raise ValueError(f"{text!r} is not of the form namespace or namespace/name")
        return cls(namespace, name or KARPENTER)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


#: The namespace of the lease by default.
USUAL = (LeaseName("kube-system"), LeaseName("karpenter"))


def leading_since(lease: Lease) -> datetime | None:
    """Since when processes of Kerf lead by this lease; None when it does not say, or if another controller took it
    since: that keeps the annotations, and counts the transition."""
    since, _, transitions = lease.annotations.get(labels.LEADING_SINCE, "").partition("/")
    if transitions != str(lease.transitions):
        return None
    try:
        return datetime.strptime(since, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def leading_note(since: datetime, transitions: int) -> str:
    """The annotation that `leading_since` reads."""
    return f"{rfc3339(since)}/{transitions}"


class Sighting:
    """What was seen of one lease, and since when it has been so."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: tuple[Lease | None, float] | None = None

    @property
    def lease(self) -> Lease | None:
        """As it was read last; None when it is not there."""
        return self._seen[0] if self._seen is not None else None

    def see(self, lease: Lease | None) -> None:
        """It was read just now."""
        if self._seen is None or lease != self._seen[0]:
            self._seen = lease, self._clock.monotonic()

    def left(self) -> timedelta:
        """For how long its holder must still be taken to be alive; nothing when it is free."""
        if self._seen is None:
            return timedelta(0)
        lease, since = self._seen
        if lease is None or not lease.holder:
            return timedelta(0)
        lasts = timedelta(seconds=lease.duration_seconds) or DURATION
        return max(lasts - timedelta(seconds=self._clock.monotonic() - since), timedelta(0))
