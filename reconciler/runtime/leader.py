"""Leader election by a Lease: one process acts, the others watch and wait.

Nobody's clock is believed but our own: another holder's lease has run out when we have not seen it renewed for its
whole duration. We stop acting when our own renewal is older than the renew deadline, which is shorter, so that two
leaders never act at once. Source: operations reference §5.2.
"""

from __future__ import annotations

import socket
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.ports import Clock, Kube, Lease, PortError

DURATION, RENEW_DEADLINE, RETRY = timedelta(seconds=15), timedelta(seconds=10), timedelta(seconds=2)
#: A renewal that failed is tried again sooner: the deadline is near, and a server that starts may answer any moment.
RETRY_RENEWAL = timedelta(milliseconds=500)

_AT_LEAST = timedelta(milliseconds=100)


def own_identity() -> str:
    """`<hostname>_<uuid>`, new for every process."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Leader:
    """The election, from one candidate's view. One thread calls `step` and `release`; any thread asks `may_act`."""

    def __init__(
        self,
        kube: Kube,
        clock: Clock,
        namespace: str,
        name: str,
        identity: str,
        on_error: Callable[[PortError], None] = lambda error: None,
    ) -> None:
        self._kube, self._clock, self._namespace, self._name = kube, clock, namespace, name
        self._identity, self._on_error = identity, on_error
        self._seen: Lease | None = None
        self._seen_at: datetime | None = None
        self._renewed: datetime | None = None
        self._failing = False

    def may_act(self) -> bool:
        """Whether the lease is ours, and was renewed recently enough to start something now."""
        renewed = self._renewed
        return renewed is not None and self._clock.now() < renewed + RENEW_DEADLINE

    @property
    def lost(self) -> bool:
        """Whether we led and do not any more: the process should end, and start again as a candidate."""
        return self._renewed is not None and not self.may_act()

    def step(self) -> bool:
        """Try once to take or renew the lease; whether it is ours."""
        try:
            leading = self._try(self._clock.now())
        except PortError as error:  # a lease that cannot be read or written is not renewed; the deadline decides
            self._failing = True
            self._on_error(error)
            return self.may_act()
        self._failing = False
        return leading

    def _try(self, now: datetime) -> bool:
        lease = self._kube.get_lease(self._namespace, self._name)
        if self._seen_at is None or lease != self._seen:
            self._seen, self._seen_at = lease, now
        mine = lease is not None and lease.holder == self._identity
        if lease is not None and lease.holder and not mine and now < self._seen_at + self._duration(lease):
            self._renewed = None if self._renewed is None else datetime.min.replace(tzinfo=now.tzinfo)
            return False
        wanted = self._wanted(lease, now, mine)
        self._seen, self._seen_at = self._kube.put_lease(self._namespace, self._name, wanted), now
        self._renewed = now
        return True

    def _wanted(self, lease: Lease | None, now: datetime, mine: bool) -> Lease:
        own = Lease(self._identity, now, now, int(DURATION.total_seconds()))
        if lease is None:
            return own
        if mine:
            return replace(
                own, acquired=lease.acquired, transitions=lease.transitions, resource_version=lease.resource_version
            )
        return replace(own, transitions=lease.transitions + 1, resource_version=lease.resource_version)

    def _duration(self, lease: Lease) -> timedelta:
        return timedelta(seconds=lease.duration_seconds or DURATION.total_seconds())

    def pause(self) -> timedelta:
        """Until the next try; not longer than another's lease still lasts."""
        if self._failing and self.may_act():
            return RETRY_RENEWAL
        if self._seen is None or self._seen_at is None or self._renewed is not None:
            return RETRY
        left = self._seen_at + self._duration(self._seen) - self._clock.now()
        return min(max(left, _AT_LEAST), RETRY)

    def release(self) -> None:
        """Give the lease up, so that another need not wait for it to run out.

        Also after the renew deadline: whoever took it meanwhile has changed it, and keeps it.
        """
        if self._renewed is None or self._seen is None or self._seen.holder != self._identity:
            return
        self._renewed = None
        empty = replace(self._seen, holder="", renewed=self._clock.now(), duration_seconds=1)
        try:
            self._kube.put_lease(self._namespace, self._name, empty)
        except PortError as error:
            self._on_error(error)

    def run(self, stop: threading.Event, on_change: Callable[[bool], None] = lambda leading: None) -> None:
        """Step until stopped or the lease is lost. `on_change` is told when we begin or cease to lead."""
        leading = False
        while not stop.is_set() and not self.lost:
            if self.step() != leading:
                leading = not leading
                on_change(leading)
            if not self.lost:
                stop.wait(self.pause().total_seconds())
        if leading and self.lost:
            on_change(False)
