"""A Karpenter controller that still runs has the right of way: while it holds and renews its lease, we only watch.

Two controllers over the same objects would launch everything twice and drain around each other's budgets. Karpenter
knows nothing of us, so it is for us to look: at its lease in every namespace where it may run. A lease that cannot be
read says nothing, in particular not that it is free: then we do not act either, and say what is missing.

Another release of ours, in another namespace, is no better. Of two exactly one yields: see `_rank`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kerf.model.instants import ALWAYS
from kerf.ports import Clock, Kube, Lease
from kerf.runtime.leadership.leader import is_replica
from kerf.runtime.leadership.leases import KARPENTER, RENEW_DEADLINE, RETRY, USUAL, LeaseName, Sighting


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why this process does not act: a lease that another controller holds, or (no `holder`) one not read."""

    lease: LeaseName
    holder: str = ""
    error: str = ""
    #: The lease's own, if it was ever read.
    uid: str = field(default="", compare=False)

    @property
    def state(self) -> str:
        return "held" if self.holder else "unread"

    def __str__(self) -> str:
        if self.holder:
            who = "another Kerf" if is_replica(self.holder) else "a Karpenter controller"
            return f"{who} ({self.holder}) holds the lease {self.lease}"
        return f"the lease {self.lease} could not be read{': ' if self.error else ' yet'}{self.error}"


class KarpenterLeases:
    """See the module. One thread calls `step`; any thread asks `may_act` and `obstacles`.

    `own` is the lease that this process vies for itself, if it does.
    """

    def __init__(self, kube: Kube, clock: Clock, leases: Iterable[LeaseName], own: LeaseName | None = None) -> None:
        self._kube, self._clock, self._own = kube, clock, own
        self.leases = tuple(sorted(set(leases)))
        self._sightings = {lease: Sighting(clock) for lease in self.leases}
        #: When each was read last, in seconds of the monotonic clock, and what the latest reading ran into.
        self._read: dict[LeaseName, float] = {}
        self._errors: dict[LeaseName, str] = {}
        #: By another's lease: its version, and when it was renewed.
        self._renewed: dict[LeaseName, tuple[str, datetime]] = {}

    def may_act(self) -> bool:
        """Whether every lease was read lately, and none is held by who has the right of way."""
        return not self.obstacles()

    def obstacles(self) -> tuple[Obstacle, ...]:
        """The blocking controllers, by lease."""
        return tuple(found for lease in self.leases if (found := self._obstacle(lease)) is not None)

    def last_led(self) -> datetime:
        """When a controller that has the right of way renewed its lease last, as far as the leases have been read."""
        return max((renewed for _, renewed in self._renewed.values()), default=ALWAYS)

    def step(self) -> None:
        """Read every lease once."""
        for lease in self.leases:
            began = self._clock.monotonic()
            try:
                found = self._kube.get_lease(lease.namespace, lease.name)
                self._sightings[lease].see(found)
            except Exception as error:  # not read, be it for the server or a bug of ours; the deadline decides
                self._errors[lease] = str(error) or type(error).__name__
                continue
            self._errors[lease] = ""
            self._read[lease] = began
            self._note_renewal(lease, found)
        now = self._clock.now()  # the clock may have been set back since
        self._renewed = {lease: (version, min(renewed, now)) for lease, (version, renewed) in self._renewed.items()}

    def _note_renewal(self, name: LeaseName, lease: Lease | None) -> None:
        """Remember when another's lease was renewed; a time that is ahead counts as when it was seen first."""
        if name == self._own or lease is None or lease.renewed is None or not self._yields_to(name, lease.holder):
            return
        version, _ = self._renewed.get(name, ("", ALWAYS))
        if version != lease.resource_version:
            self._renewed[name] = lease.resource_version, min(lease.renewed, self._clock.now())

    def _obstacle(self, lease: LeaseName) -> Obstacle | None:
        read, sighting = self._read.get(lease), self._sightings[lease]
        seen = sighting.lease
        uid = "" if seen is None else seen.uid
        if read is None or self._clock.monotonic() >= read + RENEW_DEADLINE.total_seconds():
            return Obstacle(lease, error=self._errors.get(lease, ""), uid=uid)
        if seen is None or not sighting.left() or not self._yields_to(lease, seen.holder):
            return None
        return Obstacle(lease, holder=seen.holder, uid=uid)

    def _yields_to(self, lease: LeaseName, holder: str) -> bool:
        """To Karpenter always; to one of ours unless it is a replica, or yields to us; without a lease no controller
        leads."""
        return not is_replica(holder) or self._own is None or _rank(lease) < _rank(self._own)

    def pause(self) -> timedelta:
        """Until the next reading; no longer than a lease that blocks Kerf still lasts."""
        lasting = [self._sightings[found.lease].left() for found in self.obstacles() if found.holder]
        return min([RETRY, *lasting])

    def run(self, stop: threading.Event, on_change: Callable[[tuple[Obstacle, ...]], None]) -> None:
        """Read until stopped. `on_change` gets the blocking leases, first of all and when that changes."""
        told: tuple[tuple[LeaseName, str], ...] | None = None
        while not stop.is_set():
            self.step()
            found = self.obstacles()
            key = tuple((one.lease, one.holder) for one in found)
            if key != told:
                told = key
                on_change(found)
            stop.wait(max(self.pause().total_seconds(), 0.1))


def _rank(lease: LeaseName) -> tuple[bool, bool, LeaseName]:
    """Of two releases of ours the lower acts: the one whose lease all look for, as it may not see the other's."""
    return lease not in USUAL, lease.name != KARPENTER, lease
