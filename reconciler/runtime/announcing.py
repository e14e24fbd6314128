"""Says that this process only watches, and why: a line, an event on the lease and a number, when it begins and ends.

Every replica says it of itself. `kubectl describe lease` shows the event where an operator looks for the leader.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.kinds import Ref
from reconciler.ports import Kube, PortError
from reconciler.runtime.karpenter import Obstacle
from reconciler.runtime.leases import LeaseName
from reconciler.telemetry.telemetry import Telemetry

WAITS, UNREAD = "WaitsForKarpenter", "LeaseUnread"
_STATES = ("free", "held", "unread")


class Announcer:
    """See the module. One thread calls `tell`."""

    def __init__(self, kube: Kube, telemetry: Telemetry, identity: str, leases: Iterable[LeaseName]) -> None:
        self._kube, self._telemetry, self._identity, self._leases = kube, telemetry, identity, tuple(leases)
        self._told: tuple[Obstacle, ...] = ()

    def tell(self, obstacles: tuple[Obstacle, ...]) -> None:
        """What stands in the way from now on; nothing when we may act again."""
        before, self._told = {(one.lease, one.state) for one in self._told}, obstacles
        self._count(obstacles)
        for one in obstacles:
            if (one.lease, one.state) not in before:
                self._begins(one)
        if before and not obstacles:
            self._telemetry.log.info("no Karpenter controller stands in the way any more")

    def _count(self, obstacles: tuple[Obstacle, ...]) -> None:
        gauge, states = self._telemetry.metrics.karpenter_lease, {one.lease: one.state for one in obstacles}
        for lease in self._leases:
            for state in _STATES:
                now = float(states.get(lease, "free") == state)
                gauge.labels(lease.namespace, lease.name, state).set(now)

    def _begins(self, obstacle: Obstacle) -> None:
        lease, words = obstacle.lease, f"Kerf ({self._identity}) only watches: {obstacle}"
        if obstacle.holder:
            type_, reason = "Normal", WAITS
            self._telemetry.log.info("only watching", Lease=str(lease), holder=obstacle.holder)
        else:
            type_, reason = "Warning", UNREAD
            self._telemetry.log.error("only watching: a lease cannot be read", Lease=str(lease), error=obstacle.error)
        try:
            self._kube.emit(Ref("Lease", lease.namespace, lease.name), obstacle.uid, type_, reason, words)
        except PortError as error:
            self._telemetry.event_failed(error)
