"""Says that this process only watches, and why: a line, an event on the lease and a number, when it begins and ends.

Every replica says it of itself. `kubectl describe lease` shows the event where an operator looks for the leader.
"""

from __future__ import annotations

from collections.abc import Iterable

from kerf.model.kinds import Ref
from kerf.ports import Kube, PortError
from kerf.runtime.leadership.karpenter import Obstacle
from kerf.runtime.leadership.leader import is_replica
from kerf.runtime.leadership.leases import LeaseName
from kerf.telemetry.telemetry import Telemetry

WAITS, WAITS_FOR_OURS, UNREAD = "WaitsForKarpenter", "WaitsForKerf", "LeaseUnread"
_STATES = ("free", "held", "unread")


class Announcer:
    """See the module. One thread calls `tell`."""

    def __init__(self, kube: Kube, telemetry: Telemetry, identity: str, leases: Iterable[LeaseName]) -> None:
        self._kube, self._telemetry, self._identity, self._leases = kube, telemetry, identity, tuple(leases)
        self._told: tuple[Obstacle, ...] = ()

    def tell(self, obstacles: tuple[Obstacle, ...]) -> None:
        """The leases that block Kerf from now on; nothing when we may act again."""
        before, self._told = {(one.lease, _reason(one)) for one in self._told}, obstacles
        self._count(obstacles)
        for one in obstacles:
            if (one.lease, _reason(one)) not in before:
                self._begins(one)
        if before and not obstacles:
            self._telemetry.log.info("no other controller has a Lease any more")

    def _count(self, obstacles: tuple[Obstacle, ...]) -> None:
        gauge, states = self._telemetry.metrics.karpenter_lease, {one.lease: one.state for one in obstacles}
        for lease in self._leases:
            for state in _STATES:
                now = float(states.get(lease, "free") == state)
                gauge.labels(lease.namespace, lease.name, state).set(now)

    def _begins(self, obstacle: Obstacle) -> None:
        lease, words = obstacle.lease, f"Kerf ({self._identity}) only watches: {obstacle}"
        if obstacle.holder:
            self._telemetry.log.info("only watching", Lease=str(lease), holder=obstacle.holder)
        else:
            self._telemetry.log.error("only watching: a lease cannot be read", Lease=str(lease), error=obstacle.error)
        try:
            type_ = "Normal" if obstacle.holder else "Warning"
            self._kube.emit(Ref("Lease", lease.namespace, lease.name), obstacle.uid, type_, _reason(obstacle), words)
        except PortError as error:
            self._telemetry.event_failed(error)


def _reason(obstacle: Obstacle) -> str:
    """The reason of its event."""
    if not obstacle.holder:
        return UNREAD
    return WAITS_FOR_OURS if is_replica(obstacle.holder) else WAITS
