"""Second half of a solve: pods that need new nodes are packed into them, by price.

Items go lane by lane (a lane: the same requirements), those with the fewest offerings first. Each takes what room there
is on the nodes in the making and opens new ones of the sizes that give most for their price.
At last every node gets the types that hold what is on it. A later pool gets what a heavier one refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kerf.pods.topology_constraints import TopologyGroup
from kerf.scheduling.devices.ledger import DeviceLedger
from kerf.scheduling.improving.merge import merged
from kerf.scheduling.improving.search import improved
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.packing.draft import Bin, PoolDemand, stocks_of
from kerf.scheduling.packing.drafts import Draft
from kerf.scheduling.packing.effort import Effort
from kerf.scheduling.packing.fill import Filling
from kerf.scheduling.packing.finalize import Packed, close
from kerf.scheduling.placing.strategy import PLAIN, Strategy
from kerf.scheduling.placing.ways import PodGroup
from kerf.scheduling.seating.colocated import seat_together
from kerf.scheduling.seating.devices import Seating
from kerf_api.requirements import EMPTY, Requirements

#: Limits and minValues may hand pods back; they are packed again at most so often.
_PASSES = 12


@dataclass(frozen=True, slots=True, eq=False)
class Packer:
    """Packs what is left of items, pool by pool; `seated` are the groups that have a pod on a new node.

    A pool's share of the `effort` is as large as its share of the pods that are left. All nodes are `within` what is
    asked. Where there are `few` pods, nodes are merged at last.
    """

    seated: set[TopologyGroup]
    most_types: int
    effort: Effort
    within: Requirements = EMPTY
    devices: DeviceLedger | None = None
    strategy: Strategy = PLAIN
    few: bool = False

    def pack(self, template: NodeClaimTemplate, items: Sequence[PodGroup], left: dict[PodGroup, int]) -> list[Packed]:
        """Nodes for as many pods as the pool can take; `left` (pods per item) goes down accordingly."""
        stocks = stocks_of(template, items, left, self.within)
        search = self.effort.left * sum(stock.left for stock in stocks) // max(sum(left.values()), 1)
        seating = None if self.devices is None else Seating(template, self.devices, self.seated)
        started = seating.seat(stocks) if seating is not None else ()
        together = [] if self.strategy.late else seat_together(template, stocks, self.seated, started)
        done: list[Packed] = []
        for _ in range(_PASSES):
            closed, refused = self._filled(template, stocks, together, search)
            done += closed
            for packed in closed:
                for stock, number in packed.content:
                    stock.left -= number
            together, search = [], 0
            if not closed or not refused:
                break
        if seating is not None:
            seating.keep(done)
        for stock in stocks:
            left[stock.item] = stock.left
        return done

    def _filled(
        self, template: NodeClaimTemplate, stocks: Sequence[PoolDemand], together: list[Bin], search: int
    ) -> tuple[list[Packed], list[Draft]]:
        """Nodes for what is left, made cheaper as far as the effort goes, and those that may not be made."""
        frugal = self.strategy.frugal
        filling = Filling(template, stocks, frugal=frugal, late=self.strategy.late)
        drafts = filling.fill({stock: stock.left for stock in filling.stocks if stock.left}, together)
        better = improved(filling, drafts, search)
        if self.few:
            better = merged(template, better, self.effort)
        self.effort.used += filling.seats
        return _closed(template, drafts, better, self.most_types, frugal)


def _closed(
    template: NodeClaimTemplate, drafts: list[Draft], better: list[Draft], most_types: int, frugal: bool
) -> tuple[list[Packed], list[Draft]]:
    """The better nodes, unless limits then leave pods over: they are reckoned with the largest type of each node."""
    before = template.remaining
    template.remaining = None if before is None else dict(before)
    closed, refused = close(template, better, most_types, frugal=frugal)
    if refused and better is not drafts:
        template.remaining = before
        return close(template, drafts, most_types, frugal=frugal)
    return closed, refused
