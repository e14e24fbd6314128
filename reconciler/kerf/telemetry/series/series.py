"""What follows single objects: their conditions, what pods take of nodes, what nodes cost, pods that wait.

Each part keeps what it needs as objects change, and writes its series itself at a scrape: they are more than a
registry is made for. What has a series for each object or market is reported only where `DETAILED_METRICS` names it.
"""

from __future__ import annotations

from typing import Any, Final

from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.model.snapshot import Snapshot
from kerf.ports import Clock
from kerf.telemetry.catalogue.listing import NODES, OFFERINGS, PODS
from kerf.telemetry.precedence import GiveWay
from kerf.telemetry.series.markets import Markets
from kerf.telemetry.series.metrics import Metrics
from kerf.telemetry.series.pod_states import PodStates
from kerf.telemetry.series.pod_times import PodTimes
from kerf.telemetry.series.pool_costs import PoolCosts
from kerf.telemetry.series.usage import Usage
from kerf_api.foreign import own_pool

#: Kinds with conditions, as metrics spell them.
WITH_CONDITIONS: Final = {
    "NodeClaim": "nodeclaim",
    "NodePool": "nodepool",
    "Node": "node",
    "EC2NodeClass": "ec2nodeclass",
    "CapacityBuffer": "capacitybuffer",
}


class ObjectSeries:
    """`see` and `seen` belong to the loop's thread. Without `single_objects` there is none about one pod or node."""

    def __init__(self, metrics: Metrics, clock: Clock, *, single_objects: bool = True) -> None:
        details = metrics.details if single_objects else metrics.details - {NODES, PODS}
        self._metrics, self._clock = metrics, clock
        self.pods = PodTimes(metrics, clock, everything=PODS in details)
        self.markets = Markets(metrics)
        self._costs, self._usage = PoolCosts(), Usage(single_nodes=NODES in details)
        self._states = PodStates() if PODS in details else None
        metrics.writers += [self._conditions_text, self._usage_text, self._costs.text]
        if single_objects:
            metrics.writers.append(self.pods.text)
        if self._states is not None:
            metrics.writers.append(self._states.text)
        if OFFERINGS in details:
            metrics.writers.append(self.markets.text)

    def see(self, kind: Kind, old: Any | None, new: Any | None) -> None:
        """An object before (None: it was not there) and after (None: it is not there any more)."""
        if kind is kinds.POD:
            self._usage.see_pod(old, new)
            if self._states is not None:
                self._states.see_pod(old, new)
            return
        if kind.name in WITH_CONDITIONS:
            value: Any = old if new is None else new
            if kind is not kinds.NODE or own_pool(value.metadata.labels):
                self._metrics.conditions.see(WITH_CONDITIONS[kind.name], value.metadata, new)
        if kind is kinds.NODE:
            self._metrics.fleet.see(old, new)
            self._usage.see_node(old, new)
            if self._states is not None:
                self._states.see_node(old, new)
        elif kind is kinds.NODE_CLAIM:
            self._costs.see(old, new)

    def seen(self, snapshot: Snapshot) -> None:
        """What a look saw of types and prices."""
        self.markets.seen(snapshot)
        self._costs.seen(snapshot)

    def _conditions_text(self, give_way: GiveWay) -> bytes:
        return self._metrics.conditions.text(self._clock.now(), give_way)

    def _usage_text(self, give_way: GiveWay) -> bytes:
        return self._usage.text(self._clock.now(), give_way)
