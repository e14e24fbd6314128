"""What the nodes of each NodePool cost now: counted as node claims come and go, priced at a scrape.

A scrape walks sorts of nodes (pool, type, zone, capacity type), not nodes. Source: operations reference §2.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kerf.model.aws.instance_type import Catalogue
from kerf.model.snapshot import Snapshot
from kerf.telemetry.catalogue.names import METRICS
from kerf.telemetry.precedence import GiveWay, in_steps
from kerf.telemetry.series.exposition import head, line
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim

_COST, _UNPRICED = "karpenter_nodepools_cost_total", "kerf_nodepools_unpriced_nodes"
_MICRO: Final = 1_000_000
_STEP: Final = 200
#: Of a node: its pool and class, and its type, zone and capacity type.
_Market = tuple[str, str, str]
_Sort = tuple[str, str, _Market]


class PoolCosts:
    """`see…` belong to the loop's thread, `text` to any."""

    def __init__(self) -> None:
        self._sorts: dict[str, _Sort] = {}
        self._nodes: dict[_Sort, int] = {}
        self._snapshot: Snapshot | None = None
        #: What markets of a catalogue cost; catalogues are replaced, never changed.
        self._prices: dict[int, tuple[Catalogue, dict[_Market, int]]] = {}

    def see(self, old: NodeClaim | None, new: NodeClaim | None) -> None:
        """A node claim before and after. One that has no instance yet costs nothing."""
        value = new if new is not None else old
        if value is None:
            return
        before, after = self._sorts.pop(value.name, None), _sort(new)
        if after is not None:
            self._sorts[value.name] = after
            self._nodes[after] = self._nodes.get(after, 0) + 1
        if before is not None:
            self._nodes[before] -= 1
            if not self._nodes[before]:
                del self._nodes[before]

    def seen(self, snapshot: Snapshot) -> None:
        """Prices are those that this look saw."""
        self._snapshot = snapshot

    def text(self, give_way: GiveWay) -> bytes:
        """All series, in Prometheus' text format."""
        return "".join(self._lines(give_way)).encode()

    def _lines(self, give_way: GiveWay) -> Iterator[str]:
        snapshot = self._snapshot
        if snapshot is None:
            return
        costs, unpriced = dict.fromkeys(snapshot.node_pools, 0), dict.fromkeys(snapshot.node_pools, 0)
        for (pool, class_, market), count in in_steps(self._nodes.copy().items(), give_way, _STEP):
            price = self._priced(snapshot.types_for(pool, class_)).get(market, 0)
            costs[pool] = costs.get(pool, 0) + count * price
            unpriced[pool] = unpriced.get(pool, 0) + (0 if price or market[2] == labels.RESERVED else count)
        yield from _written(_COST, ((pool, cost / _MICRO) for pool, cost in sorted(costs.items())))
        yield from _written(_UNPRICED, sorted(unpriced.items()))

    def _priced(self, catalogue: Catalogue) -> dict[_Market, int]:
        known = self._prices.get(id(catalogue))
        if known is None or known[0] is not catalogue:
            markets = {(o.instance_type, o.zone, o.capacity_type): o.price for t in catalogue for o in t.offerings}
            if len(self._prices) > len(self._nodes):
                self._prices.clear()
            known = self._prices[id(catalogue)] = catalogue, markets
        return known[1]


def _written(name: str, rows: Iterable[tuple[str, float]]) -> Iterator[str]:
    yield head(name, METRICS[name].about)
    for pool, value in rows:
        yield line(name, (("nodepool", pool),), value)


def _sort(claim: NodeClaim | None) -> _Sort | None:
    if claim is None or not claim.status.provider_id:
        return None
    own = claim.metadata.labels
    market = own.get(labels.INSTANCE_TYPE, ""), own.get(labels.ZONE, ""), own.get(labels.CAPACITY_TYPE, "")
    return claim.pool_name, claim.spec.node_class_ref.name, market
