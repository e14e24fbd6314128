"""Leader election by a Lease: one process acts, the others watch and wait.

We stop acting when our own renewal is older than the renew deadline, which is shorter than the lease's duration, so
that two leaders never act at once. Source: operations reference §5.2.
"""

from __future__ import annotations

import math
import socket
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from kerf.model.instants import ALWAYS
from kerf.ports import Clock, Kube, Lease
from kerf.runtime.leadership.leases import DURATION, LOOK, RENEW_DEADLINE, RETRY, Sighting, leading_note, leading_since
from kerf_api import labels

#: A renewal that failed is tried again sooner: the deadline is near, and a server that starts may answer any moment.
RETRY_RENEWAL = timedelta(milliseconds=500)
#: In every identity of ours, and in no host name: so a replica is distinguished from a Karpenter controller.
_MARK = "_kerf_"

_AT_LEAST = timedelta(milliseconds=100)


def own_identity() -> str:
    """`<hostname>_kerf_<uuid>`, new for every process."""
    return f"{socket.gethostname()}{_MARK}{uuid.uuid4()}"


def is_replica(holder: str) -> bool:
    """Whether the holder of a lease is a process like this one."""
    return _MARK in holder


@dataclass(frozen=True, slots=True)
class Candidate:
    """Who vies for which lease: its namespace and name, and the holder's name that it would bear."""

    namespace: str
    name: str
    identity: str


class Leader:
    """The election, from one candidate's view. One thread calls `step` and `release`; any thread asks `may_act`."""

    def __init__(
        self,
        kube: Kube,
        clock: Clock,
        candidate: Candidate,
        *,
        on_error: Callable[[Exception], None] = lambda error: None,
        kubernetes_version: Callable[[], str] = str,
        on_version: Callable[[str], None] = lambda version: None,
        not_before: Callable[[], datetime] = lambda: ALWAYS,
    ) -> None:
        """`kubernetes_version` is what the lease is to bear while we hold it. `on_version` gets what another holder has
        written there, whenever that changes, and "" once the lease is ours. `not_before` returns the time when a
        controller with another lease led last; the lease records it, for that other lease may be deleted."""
        self._kube, self._clock, self._namespace, self._name = kube, clock, candidate.namespace, candidate.name
        self._identity, self._on_error, self._version = candidate.identity, on_error, kubernetes_version
        self._on_version, self._others_version, self._not_before = on_version, "", not_before
        self._sighting = Sighting(clock)
        #: When we renewed it last, in seconds of the monotonic clock; None until we have led.
        self._renewed: float | None = None
        self._failing = False
        self._since: datetime | None = None

    def may_act(self) -> bool:
        """Whether the lease is ours, and was renewed recently enough to start something now."""
        renewed = self._renewed
        return renewed is not None and self._clock.monotonic() < renewed + RENEW_DEADLINE.total_seconds()

    @property
    def holder(self) -> str:
        """Who had the lease when it was read last; empty when there is none, or when it has not been read yet."""
        lease = self._sighting.lease
        return "" if lease is None else lease.holder

    @property
    def since(self) -> datetime | None:
        """Since when this process and those before it lead, with no other controller in between; before this one leads,
        what the lease says. None when nothing is known."""
        lease = self._sighting.lease
        return self._since or (leading_since(lease) if lease is not None else None)

    @property
    def lost(self) -> bool:
        """Whether we led and do not any more: the process should end, and start again as a candidate."""
        return self._renewed is not None and not self.may_act()

    def step(self) -> bool:
        """Try once to take or renew the lease; whether it is ours."""
        try:
            leading = self._try(self._clock.monotonic())
        except Exception as error:  # not renewed, be it for the server or a bug of ours; the deadline decides
            self._failing = True
            self._on_error(error)
            return self.may_act()
        self._failing = False
        return leading

    def _try(self, began: float) -> bool:
        lease = self._kube.get_lease(self._namespace, self._name)
        self._sighting.see(lease)
        mine = lease is not None and lease.holder == self._identity
        if lease is not None and not mine and _version_on(lease) != self._others_version:
            self._others_version = _version_on(lease)
            self._on_version(self._others_version)
        if not mine and self._sighting.left():
            self._renewed = None if self._renewed is None else -math.inf
            return False
        now = self._clock.now()
        since = self._since if mine else None
        if since is None and lease is not None:
            since = leading_since(lease)
        self._since = min(max(since or now, self._not_before()), now)  # a clock that was ahead may be set back
        self._sighting.see(self._kube.put_lease(self._namespace, self._name, self._wanted(lease, mine, now)))
        self._renewed = began
        if not mine and self._others_version:
            self._on_version("")
        return True

    def _wanted(self, lease: Lease | None, mine: bool, now: datetime) -> Lease:
        own = Lease(self._identity, now, now, int(DURATION.total_seconds()))
        if lease is not None:
            own = replace(
                own,
                acquired=lease.acquired if mine else now,
                transitions=lease.transitions if mine else lease.transitions + 1,
                resource_version=lease.resource_version,
                annotations=lease.annotations,
            )
        notes = {labels.LEADING_SINCE: leading_note(self._since or now, own.transitions)}
        if version := self._version() or self._others_version:
            notes[labels.KUBERNETES_VERSION] = version
        return replace(own, annotations={**own.annotations, **notes})

    def pause(self) -> timedelta:
        """Until the next try; not longer than another's lease still lasts."""
        if self._failing and self.may_act():
            return RETRY_RENEWAL
        if self._sighting.lease is None or self._renewed is not None:
            return RETRY
        return min(max(self._sighting.left(), _AT_LEAST), LOOK)

    def release(self) -> None:
        """Give the lease up, so that another need not wait for it to run out.

        Also after the renew deadline: a replica that took it meanwhile has changed it, and keeps it.
        """
        held = self._sighting.lease
        if self._renewed is None or held is None or held.holder != self._identity:
            return
        self._renewed = None
        empty = replace(held, holder="", renewed=self._clock.now(), duration_seconds=1)
        try:
            self._kube.put_lease(self._namespace, self._name, empty)
        except Exception as error:  # it runs out by itself
            self._on_error(error)

    def run(self, stop: threading.Event, on_change: Callable[[bool], None] = lambda leading: None) -> None:
        """Step until stopped or the lease is lost. `on_change` is called when we begin or cease to lead."""
        leading = False
        while not stop.is_set() and not self.lost:
            if self.step() != leading:
                leading = not leading
                on_change(leading)
            if not self.lost:
                stop.wait(self.pause().total_seconds())
        if leading and self.lost:
            on_change(False)


def _version_on(lease: Lease) -> str:
    """The Kubernetes version that the holder selects images for; empty when it does not say."""
    return lease.annotations.get(labels.KUBERNETES_VERSION, "")
