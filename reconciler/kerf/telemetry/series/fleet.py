"""How many nodes there are, by node pool, capacity type and zone: counted as nodes come, change and go.

Karpenter reports the same only by a series for each node and resource. Any replica counts, whether or not it leads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kerf.model.kubernetes.objects import Node
from kerf.telemetry.catalogue.names import METRICS
from kerf_api import labels
from kerf_api.foreign import own_pool

_NAME = "kerf_nodes"
_Place = tuple[str, str, str]


class Fleet(Collector):
    """The loop's thread sees, any collects."""

    def __init__(self) -> None:
        self._nodes: Counter[_Place] = Counter()

    def see(self, old: Node | None, new: Node | None) -> None:
        """A node before (None: it was not there) and after (None: it is gone)."""
        before, after = _place(old), _place(new)
        if before == after:
            return
        if before is not None:
            self._nodes[before] -= 1
        if after is not None:
            self._nodes[after] += 1

    def collect(self) -> Iterable[Metric]:
        row = METRICS[_NAME]
        family = GaugeMetricFamily(_NAME, row.about, labels=row.labels)
        for place, count in sorted(self._nodes.copy().items()):
            if count > 0:
                family.add_metric(place, count)
        yield family


def _place(node: Node | None) -> _Place | None:
    """Of nodes that belong to no node pool there are no series."""
    own = node.metadata.labels if node is not None else {}
    pool = own_pool(own)
    if not pool:
        return None
    return pool, own.get(labels.CAPACITY_TYPE, ""), own.get(labels.ZONE, "")
